#include "runtime/kernels/cuda/DropoutDraw.h"
#include "runtime/kernels/cuda/Row.h"
#include "runtime/kernels/cuda/RowExponentials.h"
#include "runtime/kernels/cuda/Runs.h"
#include "runtime/kernels/cuda/ShardParts.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

using namespace fsdp::rt;
using namespace fsdp::rt::device;

namespace {

TEST(Index, ARowGetsAsManyThreadsAsItNeeds) {
  for (std::size_t width = 1; width <= 5000; ++width) {
    const RowPlan plan = rowPlan(width, 8, 4, 128);
    ASSERT_EQ(plan.threads % 32, 0u);
    ASSERT_GE(plan.threads, 32u);
    ASSERT_LE(plan.threads, 128u);
    // All of it is held if and only if it may be, by no more warps than that takes.
    ASSERT_EQ(plan.fits, width <= 128 * 4 * 8);
    if (plan.fits) {
      ASSERT_GE(plan.threads * 4 * 8, width);
      ASSERT_TRUE(plan.threads == 32 || (plan.threads - 32) * 4 * 8 < width);
    }
  }
  EXPECT_EQ(rowPlan(0, 8, 4, 128).threads, 32u);
}

TEST(Index, ScansHaveWholeWarps) {
  for (std::size_t count : {0, 1, 100, 50257, 1000000}) {
    EXPECT_EQ(scanThreads<float>(count) % 32, 0u);
    EXPECT_GE(scanThreads<bf16>(count), 32u);
    EXPECT_LE(scanThreads<bf16>(count), 512u);
  }
  EXPECT_EQ(scanThreads<bf16>(50257), 512u);
}

TEST(Index, BlocksCoverTheWork) {
  EXPECT_EQ(stridingBlocks(0, 256), 0u);
  EXPECT_EQ(stridingBlocks(1, 256), 1u);
  EXPECT_EQ(stridingBlocks(257, 256), 2u);
  EXPECT_EQ(stridingBlocks(std::size_t(1) << 40, 256), 1056u);
}

/// Where the units that are written come from.
std::map<std::size_t, std::size_t> moves(const Runs &runs) {
  std::map<std::size_t, std::size_t> all;
  for (std::size_t n = 0; n < runs.units(); ++n) {
    const Runs::Move move = runs.move(n);
    if (move.from != Runs::kNowhere || !runs.leave)
      EXPECT_TRUE(all.emplace(move.to, move.from).second) << "unit " << move.to << " twice";
  }
  return all;
}

TEST(Index, PackAndUnpackAreOpposites) {
  const ShardLayout tile{3, 4, 5, 10};
  const auto packed = moves(Runs::packPieces(tile, 4, 1)),
             unpacked = moves(Runs::unpackPieces(tile, 4, 1));
  EXPECT_EQ(packed.size(), 4 * tile.pieceCount());
  std::size_t held = 0;
  for (auto [piece, whole] : packed)
    held += whole != Runs::kNowhere;
  EXPECT_EQ(held, tile.wholeCount());
  EXPECT_EQ(unpacked.size(), tile.wholeCount());
  for (auto [whole, piece] : unpacked)
    EXPECT_EQ(packed.at(piece), whole);
}

TEST(Index, UnitsAreAsWideAsEverythingAllows) {
  alignas(16) char memory[64];
  const Runs runs = Runs::slice(Part{2, 32, 8, 16}, 4);
  EXPECT_EQ(runs.widest(memory, memory), 16u);
  EXPECT_EQ(runs.widest(memory + 4, memory), 4u);
  EXPECT_EQ(Runs::slice(Part{2, 32, 8, 17}, 4).widest(memory, memory), 4u);
  EXPECT_EQ(Runs::pad(Part{2, 32, 7, 16}, 2).widest(memory, memory), 2u);
  EXPECT_EQ(Runs::pad(Part{2, 32, 7, 16}, 1).widest(memory, memory), 1u);
  const Runs wide = runs.inUnitsOf(16);
  EXPECT_EQ(wide.units(), runs.units() / 16);
  EXPECT_EQ(wide.move(5).from * 16, runs.move(5 * 16).from);
}

TEST(Index, EveryElementIsOfTheMemberThatHoldsIt) {
  std::vector<Parameter> members;
  const std::size_t each = 7, many = 100, total = each * many;
  for (std::size_t m = 0; m < many; ++m)
    members.push_back({"p", nullptr, {7}, {7}, each * m, Initializer::zeros(), m % 3 == 1});
  Storage storage = {"unit", Layout::Flat, {},       0,  0,
                     total,  40,           Buffer(), {}, {members.data(), members.size()}};
  storage.shard.count = 256;
  // Separate rates for some members, or for none. Forty parameters are before these.
  std::vector<UpdateSetting> scaled(40 + many);
  for (std::size_t m = 0; m < many; ++m)
    scaled[40 + m] = {m % 5 < 2 ? 0.5f : 2.0f, m % 3 == 1};
  for (int number = 0; number < 8; ++number) {
    const int coordinate = number % 4;
    const UpdateSetting *settings = number < 4 ? nullptr : scaled.data();
    std::size_t covered = 0;
    while (covered < 256) {
      ShardParts parts;
      const std::size_t end = parts.fill({&storage, coordinate, settings}, covered);
      ASSERT_GT(end, covered);
      ASSERT_LE(parts.count, ShardParts::kMax);
      int part = 0;
      for (std::size_t i = covered; i < end; ++i) {
        part = parts.partOf(i, part);
        const std::size_t member = (256 * coordinate + i) / each;
        if (member >= many)
          continue; // padding may count as any
        ASSERT_EQ(parts.firstParameter + part, int(40 + member)) << coordinate << " " << i;
        ASSERT_EQ(parts.decays(part), member % 3 == 1);
        ASSERT_EQ(parts.rateScale, settings ? scaled[40 + member].rateScale : 1);
      }
      covered = end;
    }
    EXPECT_EQ(covered, 256u);
  }
}

TEST(Index, DrawsMeetEveryElementOnce) {
  for (std::int64_t first : {0, 3})
    for (std::size_t size : {1, 4, 10}) {
      const auto runs =
          DropoutRuns::of(DropoutMask<3>{0.5, 1, first, {{2, 100}, {3, 11}, {size, 1}}});
      std::size_t met = 0;
      for (std::size_t run = 0; run < runs.runs; ++run) {
        EXPECT_EQ(runs.start(run), first + run / 3 * 100 + run % 3 * 11);
        std::size_t at = 0;
        for (std::size_t group = 0; group < runs.groups; ++group) {
          const DropoutRuns::Piece piece = runs.piece(run, group);
          if (piece.begin == piece.end)
            continue;
          EXPECT_EQ(piece.begin, at);
          EXPECT_EQ(piece.index, runs.start(run) + at);
          // All of it is of one draw.
          EXPECT_EQ(piece.index / 4, (piece.index + piece.end - piece.begin - 1) / 4);
          met += piece.end - piece.begin, at = piece.end;
        }
        EXPECT_EQ(at, size);
      }
      EXPECT_EQ(met, 6 * size);
    }
}

} // namespace
