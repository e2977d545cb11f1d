#include "runtime/data/Mixture.h"
#include "runtime/data/OpenDataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

using namespace fsdp::rt;

namespace {

/// Sources with weights, and the draws that are asked of them; see test/golden/make_mixture.py.
struct Case {
  std::vector<std::vector<std::int64_t>> sources; ///< samples of each file of each source
  std::vector<double> weights;
  std::uint64_t seed;
  bool shuffle;
  std::int64_t first, count;
};

constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

Case makeCase(std::uint64_t state) {
  const auto below = [&](std::uint64_t bound) {
    state += 0x9E3779B97F4A7C15u;
    return static_cast<std::int64_t>(mix(state) % bound);
  };
  Case made;
  made.sources.resize(static_cast<std::size_t>(1 + below(6)));
  for (auto &files : made.sources) {
    files.resize(static_cast<std::size_t>(1 + below(4)));
    for (std::int64_t &samples : files)
      samples = 1 + below(50);
  }
  for (std::size_t i = 0; i < made.sources.size(); ++i) {
    const double weight = static_cast<double>(1 + below(1000));
    constexpr double powers[] = {1, 10, 100, 1000, 10000, 100000, 1000000};
    made.weights.push_back(weight / powers[below(7)]);
  }
  made.seed = static_cast<std::uint64_t>(below(std::uint64_t(1) << 63));
  made.shuffle = below(2) == 1;
  made.first = below(4) ? below(300) : below(std::uint64_t(1) << 50);
  made.count = 1 + below(40);
  return made;
}

using Samples = std::vector<std::array<std::uint64_t, 3>>; ///< source, file, sample of the file

/// A file that gives its source, its number and the sample that is read.
class File final : public Dataset {
public:
  File(std::size_t source, std::size_t file, std::int64_t count, int &checks, Samples &ahead)
      : source(source), file(file), count(count), checks(checks), ahead(ahead) {}

  std::int64_t samples() const override { return count; }
  void read(std::size_t, std::int64_t sample, void *to) const override {
    EXPECT_TRUE(sample >= 0 && sample < count) << sample;
    std::uint64_t *values = static_cast<std::uint64_t *>(to);
    values[0] = source, values[1] = file, values[2] = static_cast<std::uint64_t>(sample);
  }
  void readAhead(std::size_t, std::int64_t sample) const override {
    ahead.push_back({source, file, static_cast<std::uint64_t>(sample)});
  }
  void requireWhole() const override { ++checks; }
  const char *form() const override { return "numbers"; }

private:
  std::size_t source, file;
  std::int64_t count;
  int &checks;
  Samples &ahead;
};

struct Opened {
  std::unique_ptr<Dataset> data;
  SampleOrder order;
  int checks = 0; ///< of files that they are whole
  Samples ahead;  ///< that are read ahead

  explicit Opened(const Case &of) {
    std::vector<std::unique_ptr<Dataset>> files;
    std::vector<WeightedSamples> weighted;
    for (std::size_t source = 0; source < of.sources.size(); ++source) {
      weighted.push_back({0, of.weights[source]});
      for (std::size_t file = 0; file < of.sources[source].size(); ++file) {
        files.push_back(
            std::make_unique<File>(source, file, of.sources[source][file], checks, ahead));
        weighted.back().count += of.sources[source][file];
      }
    }
    data = concatenate(std::move(files));
    order = SampleOrder(of.shuffle, of.seed, weighted);
  }
};

TEST(MixtureTest, DrawsAsTheReferenceDoes) {
  std::ifstream golden(MIXTURE_GOLDEN);
  std::string line;
  constexpr std::uint64_t kGroup = 100;
  std::uint64_t group = 0;
  for (; std::getline(golden, line); ++group) {
    std::uint64_t digest = 0;
    for (std::uint64_t number = group * kGroup; number < (group + 1) * kGroup; ++number) {
      const Case each = makeCase(number);
      const Opened opened(each);
      Mixture::Block block;
      for (std::int64_t at = each.first; at < each.first + each.count; ++at) {
        std::uint64_t draw[3];
        opened.data->read(0, opened.order.sampleAt(at, opened.data->samples(), block), draw);
        for (std::uint64_t value : draw)
          digest = mix(digest * 3 + value);
      }
    }
    ASSERT_EQ(digest, std::stoull(line, nullptr, 16)) << "one of the cases from " << group * kGroup;
  }
  EXPECT_EQ(group, 100u);
}

TEST(MixtureTest, IndicesCountTheDrawsOfASource) {
  for (const std::vector<double> &weights :
       {std::vector<double>{0.7, 0.3}, {1}, {1, 1e-9, 5, 5, 1e-3}, {1e-300, 1e300}, {3, 1, 1, 1}}) {
    const Mixture mixture(weights, 3);
    double total = 0;
    for (double weight : weights)
      total += weight;
    std::vector<std::int64_t> drawn(weights.size());
    Mixture::Block block;
    for (std::int64_t at = 0; at < 1000; ++at) {
      ASSERT_EQ(mixture.drawsBefore(at), drawn) << at;
      const Mixture::Draw draw = mixture.at(at, block), alone = mixture.at(at);
      ASSERT_EQ(draw.source, alone.source);
      ASSERT_EQ(draw.index, alone.index);
      ASSERT_EQ(draw.index, drawn[draw.source]++) << at;
      if ((at + 1) % static_cast<std::int64_t>(Mixture::kBlock) == 0)
        for (std::size_t i = 0; i < weights.size(); ++i)
          ASSERT_LT(std::abs(static_cast<double>(drawn[i]) -
                             static_cast<double>(at + 1) * weights[i] / total),
                    static_cast<double>(weights.size()));
    }
  }
}

// A position that a run does not reach in the age of the universe has its draw at once, too.
TEST(MixtureTest, LastPositionsHaveDraws) {
  const Mixture mixture({0.5, 1}, 1);
  const Mixture::Draw last = mixture.at(INT64_MAX);
  EXPECT_LT(last.source, 2u);
  const std::int64_t third = INT64_MAX / 3, expected = last.source == 0 ? third : 2 * third;
  EXPECT_LT(std::abs(last.index - expected), 64);
}

TEST(MixtureTest, SeedsOrderTheDrawsOfABlockAndNotTheirNumber) {
  const Mixture one({0.5, 0.5}, 1), other({0.5, 0.5}, 2);
  int differ = 0;
  for (std::int64_t at = 0; at < 640; ++at)
    differ += one.at(at).source != other.at(at).source;
  EXPECT_GT(differ, 100);
  EXPECT_EQ(one.drawsBefore(640), other.drawsBefore(640));
}

TEST(MixtureTest, OneSourceIsDrawnAsWithoutWeights) {
  const SampleOrder with(true, 9, {{70, 0.3}}), without(true, 9);
  for (std::int64_t at = 0; at < 200; ++at)
    EXPECT_EQ(with.sampleAt(at, 70), without.sampleAt(at, 70));
  EXPECT_TRUE(with.drawsBefore(100).empty());
}

TEST(MixtureTest, EverySampleOfASourceIsDrawnOncePerEpoch) {
  Opened opened({{{5, 3}, {7}}, {0.6, 0.4}, 4, true, 0, 0});
  std::vector<std::vector<std::int64_t>> epochs[2];
  for (std::int64_t at = 0; at < 640; ++at) {
    const std::int64_t sample = opened.order.sampleAt(at, 15);
    auto &of = epochs[sample >= 8];
    if (of.empty() || of.back().size() == (sample >= 8 ? 7u : 8u))
      of.emplace_back();
    of.back().push_back(sample);
  }
  EXPECT_NE(epochs[0][0], epochs[0][1]);
  for (auto &of : epochs) {
    of.pop_back(); // not complete
    for (auto &epoch : of) {
      std::sort(epoch.begin(), epoch.end());
      for (std::size_t i = 0; i < epoch.size(); ++i)
        ASSERT_EQ(epoch[i], epoch[0] + static_cast<std::int64_t>(i));
    }
  }
}

// What is read ahead of a batch is what the batch then reads, repeats left out; of a batch in the
// order of the files nothing, as the system does that.
TEST(MixtureTest, BatchesAreReadAheadInRandomOrder) {
  for (const bool shuffle : {true, false}) {
    Opened opened({{{5, 3}, {7}}, {0.6, 0.4}, 4, shuffle, 0, 0});
    const Input input{"x",        {3}, 0, ArenaSpan<std::int64_t>{0, 18}, /*batch=*/10,
                      /*rows=*/6, {0}, 0};
    const BatchRows rows = rowsOf(input, /*ranks=*/2, /*coordinate=*/1);
    std::array<std::uint64_t, 3> slice[6];
    readAhead(*opened.data, opened.order, 0, 100, rows, input.rows);
    readBatch(*opened.data, opened.order, input, 0, 100, rows, nullptr, slice);
    EXPECT_EQ(opened.ahead, shuffle ? Samples(slice, slice + 5) : Samples());
    EXPECT_EQ(slice[4], slice[5]);
  }
}

// Over the ranks of any mesh they add up to the same; repeats do not count.
TEST(MixtureTest, DigestsOfABatchAddUpOverRanks) {
  Opened opened({{{5, 3}, {7}}, {0.6, 0.4}, 4, true, 0, 0});
  std::vector<std::uint64_t> sums;
  for (const int ranks : {1, 2, 3, 7}) {
    const Input input{
        "x", {3}, 0, ArenaSpan<std::int64_t>{0, 30}, /*batch=*/10, (10 + ranks - 1) / ranks,
        {0}, 0};
    std::uint64_t sum = 0;
    std::array<std::uint64_t, 3> slice[10];
    for (int rank = 0; rank < ranks; ++rank)
      sum += readBatch(*opened.data, opened.order, input, 0, 30, rowsOf(input, ranks, rank),
                       nullptr, slice);
    sums.push_back(sum & kSampleDigestMask);
  }
  std::uint64_t expected = 0;
  for (std::int64_t at = 30; at < 40; ++at)
    expected += digestOfSample(at, opened.order.sampleAt(at, 15));
  for (std::uint64_t sum : sums)
    EXPECT_EQ(sum, expected & kSampleDigestMask);
}

TEST(MixtureTest, FilesThatWereReadAreCheckedOnce) {
  const Opened opened({{{1, 1, 1}}, {1}, 0, false, 0, 0});
  std::uint64_t draw[3];
  opened.data->requireWhole();
  EXPECT_EQ(opened.checks, 0);
  opened.data->read(0, 0, draw);
  opened.data->read(0, 2, draw);
  opened.data->read(1, 2, draw);
  opened.data->requireWhole();
  opened.data->requireWhole();
  EXPECT_EQ(opened.checks, 2);
}

} // namespace
