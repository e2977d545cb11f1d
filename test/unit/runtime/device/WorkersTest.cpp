#include "runtime/device/Workers.h"
#include "runtime/device/Stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace fsdp::rt;

namespace {

/// The pieces of the calling thread go to `threads` threads, as long as this lives.
class Helped {
public:
  explicit Helped(int threads, bool spins = false) : workers(threads, spins) {
    Workers::setOfThread(&workers);
  }
  ~Helped() { Workers::setOfThread(nullptr); }

private:
  Workers workers;
};

TEST(Workers, PerformEachPieceOnceInSeparateSlots) {
  for (int threads : {1, 2, 4, 9})
    for (bool spins : {false, true}) {
      const Helped helped(threads, spins);
      for (std::size_t count : {0, 1, 2, 3, 64, 1000}) {
        const std::size_t slots = slotsOfPieces(count);
        EXPECT_LE(slots, std::size_t(threads));
        std::vector<std::atomic<int>> times(count), inSlot(slots);
        std::atomic<int> shared{0};
        forEachPiece(count, [&](std::size_t piece, std::size_t slot) {
          ASSERT_LT(slot, slots);
          shared += inSlot[slot].fetch_add(1);
          ++times[piece];
          inSlot[slot].fetch_sub(1);
        });
        EXPECT_EQ(shared, 0) << "two threads have had one slot";
        for (const std::atomic<int> &each : times)
          EXPECT_EQ(each, 1);
      }
    }
}

TEST(Workers, HelpSeveralThreadsAtOnce) {
  Workers workers(3);
  std::vector<std::size_t> sums(4);
  std::vector<std::thread> streams;
  for (std::size_t stream = 0; stream < sums.size(); ++stream)
    streams.emplace_back([&, stream] {
      Workers::setOfThread(&workers);
      for (int round = 0; round < 50; ++round) {
        std::vector<std::size_t> squares(100);
        forEachPiece(squares.size(), [&](std::size_t piece, std::size_t) {
          squares[piece] = piece * piece; // visible to this thread afterwards
        });
        sums[stream] += std::accumulate(squares.begin(), squares.end(), std::size_t(0));
      }
    });
  for (std::thread &stream : streams)
    stream.join();
  for (std::size_t sum : sums)
    EXPECT_EQ(sum, 50u * 328350);
}

TEST(Workers, ThrowTheErrorOfTheFirstPiece) {
  for (int threads : {1, 2, 4}) {
    const Helped helped(threads);
    for (int round = 0; round < 20; ++round)
      try {
        forEachPiece(100, [](std::size_t piece, std::size_t) {
          if (piece % 10 == 7)
            throw std::runtime_error("piece " + std::to_string(piece));
        });
        FAIL() << "no error";
      } catch (const std::runtime_error &error) {
        EXPECT_STREQ(error.what(), "piece 7");
      }
  }
}

TEST(Workers, DoNotCutPiecesFurther) {
  const Helped helped(4);
  std::atomic<std::size_t> inner{0};
  forEachPiece(8, [&](std::size_t, std::size_t) {
    EXPECT_EQ(slotsOfPieces(8), 1u);
    forEachPiece(8, [&](std::size_t, std::size_t slot) { inner += 1 + slot; });
  });
  EXPECT_EQ(inner, 64u);
}

TEST(Workers, BelongToTheThreadsOfStreams) {
  EXPECT_EQ(slotsOfPieces(8), 1u) << "a thread of no stream is alone";
  Workers workers(3);
  base::Failure failure;
  Stream stream("test", 0, failure, nullptr, &workers);
  std::size_t slots = 0;
  stream.push("count", [to = &slots] { *to = slotsOfPieces(8); });
  stream.synchronize();
  EXPECT_EQ(slots, 3u);
}

TEST(Workers, CutPartsByShapeAlone) {
  for (std::size_t count : {1, 63, 1000, 100000, 5000000})
    for (std::size_t elements : {1, 7, 4096})
      for (std::size_t multiple : {1, 64}) {
        const Parts parts(count, elements, multiple);
        EXPECT_LE(parts.number(), 64u);
        EXPECT_EQ(parts.extent % multiple, 0u);
        EXPECT_GE(parts.number() * parts.extent, count);
        EXPECT_LT((parts.number() - 1) * parts.extent, count);
        if (parts.number() > 1) {
          EXPECT_GE((parts.extent + 1) * elements, 16384u);
        }
      }
  const Helped helped(3);
  std::vector<std::atomic<int>> times(50001);
  forEachPart(times.size(), 1, [&](std::size_t begin, std::size_t end) {
    EXPECT_EQ(begin % Parts(times.size(), 1).extent, 0u);
    for (std::size_t i = begin; i < end; ++i)
      ++times[i];
  });
  for (const std::atomic<int> &each : times)
    ASSERT_EQ(each, 1);
}

TEST(Workers, CutColumnsForMoreThanFourThreads) {
  for (int threads : {1, 2, 4, 5, 8}) {
    const Helped helped(threads);
    std::vector<std::atomic<int>> times(1000);
    std::atomic<int> parts = 0;
    forEachColumnPart(times.size(), 4096, [&](std::size_t begin, std::size_t end) {
      EXPECT_EQ(begin % 128, 0u);
      ++parts;
      for (std::size_t i = begin; i < end; ++i)
        ++times[i];
    });
    EXPECT_EQ(parts, threads > 4 ? 8 : 1);
    for (const std::atomic<int> &each : times)
      ASSERT_EQ(each, 1);
  }
}

} // namespace
