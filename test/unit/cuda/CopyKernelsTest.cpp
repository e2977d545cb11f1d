#include "runtime/comm/Reduction.h"
#include "runtime/comm/ShardRuns.h"
#include "runtime/kernels/Kernels.h"
#include "test/unit/cuda/DeviceKernels.h"

#include <numeric>

using namespace fsdp::rt;

namespace {

template <class T> class CopyKernels : public DeviceKernels {
protected:
  static std::vector<T> counted(std::size_t count) {
    std::vector<T> values(count);
    for (std::size_t i = 0; i < count; ++i)
      values[i] = static_cast<T>(static_cast<float>(i % 120 + 1));
    return values;
  }
  static void expectEqual(const std::vector<T> &got, const std::vector<T> &expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(double(got[i]), double(expected[i])) << i;
  }
};
using Elements = ::testing::Types<float, bf16, std::int64_t, std::int8_t>;
TYPED_TEST_SUITE(CopyKernels, Elements);

TYPED_TEST(CopyKernels, PartsAreTheCpus) {
  using T = TypeParam;
  for (const Part &part :
       {Part{1, 1, 0, 1}, Part{3, 10, 2, 5}, Part{5, 64, 16, 32}, Part{2, 48, 0, 48},
        Part{4, 33, 32, 1}, Part{0, 8, 2, 4}, Part{7, 9, 3, 0}})
    for (std::size_t offset : {0, 1}) {
      const std::vector<T> whole = this->counted(part.outer * part.whole),
                           piece = this->counted(part.outer * part.size);
      std::vector<T> cut(piece.size()), padded(whole.size());
      kernels::slice(part, whole.data(), cut.data());
      kernels::pad(part, piece.data(), padded.data());
      Device<T> whole_(whole), cut_(cut.size(), offset), piece_(piece, offset),
          padded_(padded.size());
      OK(slice<T>(part, whole_, cut_, this->stream));
      this->expectEqual(cut_.values(), cut);
      OK(pad<T>(part, piece_, padded_, this->stream));
      this->expectEqual(padded_.values(), padded);
    }
}

TYPED_TEST(CopyKernels, ConcatJoins) {
  using T = TypeParam;
  const Join<3> join{4, {3, 16, 5}};
  std::vector<T> inputs[3], joined(4 * 24);
  std::size_t start = 0;
  for (int i = 0; i < 3; start += join.sizes[i++]) {
    inputs[i] = this->counted(4 * join.sizes[i]);
    kernels::insert(Part{4, 24, start, join.sizes[i]}, inputs[i].data(), joined.data());
  }
  Device<T> a(inputs[0]), b(inputs[1]), c(inputs[2]), joined_(joined.size());
  const T *first = a;
  OK(concat(join, first, b.data(), c.data(), joined_.data(), this->stream));
  this->expectEqual(joined_.values(), joined);
}

TYPED_TEST(CopyKernels, PiecesOfATile) {
  using T = TypeParam;
  // Even and uneven, inner and outer, ranks that hold nothing but padding.
  for (const ShardLayout &tile :
       {ShardLayout{1, 4, 1, 12}, ShardLayout{3, 4, 5, 10}, ShardLayout{2, 16, 8, 40},
        ShardLayout{1, 5, 1, 6}, ShardLayout{4, 2, 16, 5}})
    for (std::size_t ranks : {3, 5}) {
      if (tile.local * ranks < tile.total)
        continue;
      const std::vector<T> whole = this->counted(tile.wholeCount());
      std::vector<T> pieces(ranks * tile.pieceCount());
      for (std::size_t r = 0; r < ranks; ++r)
        forEachRun(tile, r, [&](std::size_t inPiece, std::size_t inWhole, std::size_t count) {
          std::copy_n(whole.data() + inWhole, count,
                      pieces.data() + r * tile.pieceCount() + inPiece);
        });
      Device<T> whole_(whole), pieces_(pieces.size()), back(whole.size(), 1);
      OK(pack_pieces(tile, ranks, sizeof(T), whole_.data(), pieces_.data(), this->stream));
      this->expectEqual(pieces_.values(), pieces);
      OK(unpack_pieces(tile, ranks, sizeof(T), pieces_.data(), back.data(), this->stream));
      this->expectEqual(back.values(), whole);
      for (std::size_t r = 0; r < ranks; ++r) {
        Device<T> piece(tile.pieceCount());
        OK(slice_piece(tile, r, sizeof(T), whole_.data(), piece.data(), this->stream));
        const T *expected = pieces.data() + r * tile.pieceCount();
        this->expectEqual(piece.values(), {expected, expected + tile.pieceCount()});
      }
    }
}

template <class T> class ArithmeticKernels : public DeviceKernels {};
using Floating = ::testing::Types<float, bf16>;
TYPED_TEST_SUITE(ArithmeticKernels, Floating);

TYPED_TEST(ArithmeticKernels, DropoutDrawsWhatTheCpuDraws) {
  using T = TypeParam;
  StepState state{};
  state.seed = 17, state.step = 4;
  state.microbatch = 3;
  Device<StepState> state_(std::vector<StepState>{state});
  const auto check = [&](const auto &mask, std::size_t count, std::size_t offset) {
    const Floats x = rounded<T>(normal(count, this->random));
    Floats y(count);
    kernels::dropout(mask.rate, mask.name,
                     static_cast<std::uint64_t>(mask.first + 3 * mask.microbatch), mask.extents,
                     std::size(mask.extents), state, x.data(), y.data());
    Device<T> x_(x, offset);
    OK(dropout(mask, state_, x_.data(), x_.data(), this->stream));
    EXPECT_EQ(x_.floats(), rounded<T>(y));
  };
  for (std::size_t offset : {0, 1}) {
    check(DropoutMask<1>{0.25, 99, 0, {{1000, 1}}}, 1000, offset);
    check(DropoutMask<1>{0.25, 99, 44, {{1003, 1}}}, 1003, offset); // parts of a pack and of a draw
    check(DropoutMask<1>{0.25, 99, 4, {{100, 1}}, 1000}, 100, offset);
    check(DropoutMask<1>{0.25, 99, 4, {{100, 1}}, 999}, 100, offset);
    check(DropoutMask<1>{0.25, 99, 6, {{1000, 1}}}, 1000, offset); // no draw begins with it
    check(DropoutMask<1>{0.1, 99, 13, {{7, 1}}}, 7, offset);
    check(DropoutMask<1>{0.1, 99, 8, {{3, 1}}}, 3, offset);
    check(DropoutMask<2>{0.5, 1, 40, {{9, 64}, {32, 1}}}, 288, offset);
    check(DropoutMask<3>{0.5, 1, 3, {{2, 1000}, {3, 37}, {5, 1}}}, 30, offset);
  }
}

/// Sums and maxima over ranks, into the memory of the last: `offset` elements behind an aligned
/// address, or the target alone.
template <class T>
void ranksAreCombined(std::mt19937 &random, WorkStream stream, std::size_t count,
                      std::size_t offset, std::size_t offsetOfLast) {
  for (ReduceOp op : {ReduceOp::Sum, ReduceOp::Max})
    for (int ranks : {1, 2, 7}) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, " << count << " elements");
      std::vector<Floats> values;
      std::vector<std::unique_ptr<Device<T>>> sources;
      std::vector<const void *> pointers;
      RankSources from{ranks, {}};
      for (int r = 0; r < ranks; ++r) {
        values.push_back(rounded<T>(normal(count, random)));
        if (r == ranks / 2)
          values[r][3] = std::nanf("");
        sources.push_back(
            std::make_unique<Device<T>>(values[r], r == ranks - 1 ? offsetOfLast : offset));
        from.address[r] = sources[r]->data();
      }
      for (const Floats &v : values)
        pointers.push_back(v.data());
      Floats expected(count);
      reduceInRankOrder(expected.data(), pointers.data(), ranks, count, DType::F32, op);
      Device<T> &target = *sources[ranks - 1];
      OK(reduce_in_rank_order(from, target.data(), count, dtypeOf<T>, op, stream));
      Floats got = target.floats();
      EXPECT_TRUE(std::isnan(got[3]) && std::isnan(expected[3]));
      got[3] = expected[3] = 0;
      EXPECT_EQ(got, rounded<T>(expected));
    }
}

TEST_F(DeviceKernels, RanksAreSummedInOrder) {
  for (std::size_t count : {4, 1000, 1003, 10007}) {
    ranksAreCombined<float>(random, stream, count, 0, 0);
    ranksAreCombined<bf16>(random, stream, count, 0, 0);
  }
  ranksAreCombined<float>(random, stream, 1003, 1, 1);
  ranksAreCombined<bf16>(random, stream, 1003, 0, 1);
  ranksAreCombined<bf16>(random, stream, 1003, 3, 0);
  Device<bf16> whole(Floats(20, 3.0f)), behind(20, 1);
  OK(reduce_in_rank_order({2, {whole.data(), whole.data()}}, behind.data(), 20, DType::BF16,
                          ReduceOp::Sum, stream));
  EXPECT_EQ(behind.floats(), Floats(20, 6.0f)) << "at an address that packs may not have";
  Device<bf16> a(Floats{1, 256}), b(Floats{0.00390625f, 1}), c(Floats{0.00390625f, 1}), sum(2);
  OK(reduce_in_rank_order({3, {a.data(), b.data(), c.data()}}, sum.data(), 2, DType::BF16,
                          ReduceOp::Sum, stream));
  EXPECT_EQ(sum.floats(), (Floats{1.0078125f, 258})) << "rounded once, after the sum";
  EXPECT_EQ(
      reduce_in_rank_order({1, {a.data()}}, sum.data(), 2, DType::Bool, ReduceOp::Sum, stream),
      cudaErrorInvalidValue);
}

} // namespace
