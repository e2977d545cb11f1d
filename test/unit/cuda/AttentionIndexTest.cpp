#include "runtime/kernels/cuda/AttentionBlocks.h"
#include "runtime/kernels/cuda/Mma.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <set>
#include <utility>
#include <vector>

using namespace fsdp::rt;

namespace {

/// Eight rows of one chunk, which ldmatrix reads at a time, are in all banks once.
template <int D> void expectNoConflicts() {
  using ShardLayout = device::SharedTile<D, 64>;
  std::set<int> places;
  for (int row = 0; row < 64; ++row)
    for (int chunk = 0; chunk < ShardLayout::kChunks; ++chunk) {
      EXPECT_EQ(ShardLayout::place(row, chunk) / ShardLayout::kPartChunks % 64, row)
          << "chunks stay in their row";
      places.insert(ShardLayout::place(row, chunk));
    }
  EXPECT_EQ(places.size(), std::size_t(64 * ShardLayout::kChunks));
  for (int row = 0; row < 64; row += 8)
    for (int chunk = 0; chunk < ShardLayout::kChunks; ++chunk) {
      std::set<int> banks;
      for (int r = 0; r < 8; ++r)
        banks.insert(ShardLayout::place(row + r, chunk) % 8);
      EXPECT_EQ(banks.size(), 8u) << "rows from " << row << " of chunk " << chunk;
    }
}

TEST(AttentionIndex, SharedTilesHaveNoBankConflicts) {
  expectNoConflicts<32>();
  expectNoConflicts<64>();
  expectNoConflicts<128>();
}

TEST(AttentionIndex, BlocksHoldAllThatIsSeen) {
  for (unsigned queries : {1, 5, 64, 100})
    for (unsigned keys : {1, 7, 64, 130})
      for (int offset : {INT_MAX, 0, 3, -70, 200, -200}) {
        const bool causal = offset != INT_MAX;
        AttentionShape s{1, 1, 1, queries, keys, 8, 1, causal};
        s.offset = causal ? offset : 0;
        const auto sees = [&](int t, int key) { return !causal || key <= s.positionOf(t); };
        for (int first = 0; first < int(queries); first += 16) {
          // The last block has a key that is seen, and those after it have none.
          const int blocks = device::keyBlocks(device::placed(s), first, 16, 8);
          int seen = 0;
          for (int t = first; t < first + 16 && t < int(queries); ++t)
            for (int key = 0; key < int(keys); ++key)
              if (sees(t, key))
                seen = std::max(seen, key + 1);
          EXPECT_EQ(blocks, (seen + 7) / 8);
        }
        for (int first = 0; first < int(keys); first += 8) {
          int block = 0;
          while (block * 16 < int(queries) &&
                 !sees(std::min(block * 16 + 15, int(queries) - 1), first))
            ++block;
          EXPECT_EQ(std::min(device::firstQueryBlock(device::placed(s), first, 16),
                             int(queries + 15) / 16),
                    block);
        }
      }
}

TEST(AttentionIndex, RangesHoldAllThatIsSeenInAWindow) {
  for (unsigned queries : {1, 5, 64, 100})
    for (unsigned keys : {1, 7, 64, 130})
      for (const std::pair<unsigned, int> &drawn : std::vector<std::pair<unsigned, int>>{
               {0, 0}, {1, 0}, {9, 0}, {64, 0}, {200, 0}, {0, 90}, {9, 40}, {150, 64}, {9, -50}}) {
        AttentionShape s{1, 1, 1, queries, keys, 8, 1, true};
        const unsigned window = drawn.first;
        s.window = window, s.offset = drawn.second;
        const auto sees = [&](int t, int key) {
          const int position = static_cast<int>(s.positionOf(t));
          return key <= position && (window == 0 || key > position - int(window));
        };
        // Nothing outside of a range is seen, and of one that holds something its ends are.
        const auto check = [](device::Range got, int count, auto isSeen) {
          int begin = count, end = 0;
          for (int i = 0; i < count; ++i)
            if (isSeen(i))
              begin = std::min(begin, i), end = i + 1;
          if (end > 0) {
            EXPECT_EQ(got.begin, begin);
            EXPECT_EQ(got.end, end);
          } else {
            EXPECT_LE(got.end, std::max(got.begin, 0));
          }
        };
        for (int first = 0; first < int(queries); first += 16)
          check(device::keysOf(device::placed(s), first, 16), int(keys), [&](int key) {
            for (int t = first; t < std::min(first + 16, int(queries)); ++t)
              if (sees(t, key))
                return true;
            return false;
          });
        for (int first = 0; first < int(keys); first += 8)
          check(device::queriesOf(device::placed(s), first, 8), int(queries), [&](int t) {
            for (int key = first; key < std::min(first + 8, int(keys)); ++key)
              if (sees(t, key))
                return true;
            return false;
          });
      }
}

} // namespace
