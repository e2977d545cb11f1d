//===- ReplayTest.cpp - readers on what fuzzing has found, and on random changes -===//
//
// Needs no libFuzzer. Every file of test/fuzz/seeds/READER and test/fuzz/findings/READER is read,
// and so are random changes of them and of right inputs: FSDP_MUTANTS=N for each reader,
// FSDP_MUTATION_SEED=S, FSDP_MUTANT=N as in test/mutation/Seeds.h. Each is taken or refused with a
// message, in bounded time and memory.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/Readers.h"
#include "test/mutation/Batches.h"
#include "test/mutation/FileReaders.h"
#include "test/mutation/Seeds.h"
#include "test/mutation/TextMutator.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

using namespace fsdp::fuzz;
using namespace fsdp::mutation;
namespace files = std::filesystem;

namespace {

constexpr std::int64_t kMutants = 1500; // a few seconds for all readers
enum Counter { kTaken, kRefused };

std::vector<std::string> contentsOf(const std::string &folder) {
  std::vector<std::string> names, found;
  if (files::is_directory(folder))
    for (const auto &entry : files::directory_iterator(folder))
      names.push_back(entry.path().string());
  std::sort(names.begin(), names.end());
  for (const std::string &name : names) {
    std::ifstream file(name, std::ios::binary);
    found.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return found;
}

[[maybe_unused]] void PrintTo(const Reader &reader, std::ostream *out) { *out << reader.name; }

class Replay : public testing::TestWithParam<Reader> {};

std::vector<Reader> readers() {
  std::vector<Reader> all = runtimeReaders;
  all.insert(all.end(), compilerReaders.begin(), compilerReaders.end());
  all.insert(all.end(), logReaders.begin(), logReaders.end());
  return all;
}

TEST_P(Replay, TakesOrRefusesEverything) {
  const Reader &reader = GetParam();
  const std::string folder = std::string(std::getenv("FSDP_SOURCE_DIR")) + "/test/fuzz/";
  std::vector<std::string> known = contentsOf(folder + "seeds/" + reader.name);
  EXPECT_FALSE(known.empty()) << "no seeds in " << folder << "seeds/" << reader.name;
  for (std::string &finding : contentsOf(folder + "findings/" + reader.name))
    known.push_back(std::move(finding));
  const auto first = static_cast<std::int64_t>(known.size());
  const auto input = [&](std::int64_t number) {
    if (number < first)
      return known[static_cast<std::size_t>(number)];
    std::mt19937 random = randomFor(number);
    std::string bytes = random() % 4 ? reader.right(random) : known[random() % known.size()];
    if (random() % 50 == 0)
      return bytes;
    if (reader.isText && random() % 3)
      return mutateText(bytes, reader.right(random), random);
    mutateBytes(bytes, random);
    return bytes;
  };
  Limits limits;
  limits.bytes = std::int64_t(3) << 30;
  const std::int64_t count = first + getNumMutants(kMutants);
  const fsdp::mutation::Outcome outcome =
      runBatches(count, limits, [&](std::int64_t number, std::int64_t *counters) -> std::string {
        const fsdp::fuzz::Outcome found = reader.read(input(number));
        ++counters[found.taken ? kTaken : kRefused];
        return found.complaint;
      });
  std::printf("%s: %lld seeds, %lld inputs: %lld taken, %lld refused\n", reader.name,
              static_cast<long long>(first), static_cast<long long>(count),
              static_cast<long long>(outcome.counters[kTaken]),
              static_cast<long long>(outcome.counters[kRefused]));
  // Readers that refuse, or take, everything show nothing.
  if (!getRange() && count > 1000) {
    EXPECT_GT(outcome.counters[kTaken], count / 100);
    EXPECT_GT(outcome.counters[kRefused], count / 100);
  }
  for (const auto &[number, what] : outcome.findings)
    ADD_FAILURE() << reader.name << ", input " << number << " " << what;
}

INSTANTIATE_TEST_SUITE_P(All, Replay, testing::ValuesIn(readers()), [](const auto &info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

} // namespace
