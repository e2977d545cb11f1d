//===- KernelArguments.h - arguments of kernels -----------------*- C++ -*-===//
//
// Plain data: shapes, strides and constants of a launch, the same for the CPU's kernels, CUDA's and
// the recording of either. Sizes are in elements.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_PROGRAM_KERNELARGUMENTS_H
#define FSDP_RUNTIME_PROGRAM_KERNELARGUMENTS_H

#include "runtime/program/Limits.h"
#include "runtime/program/ShardLayout.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace fsdp::rt {

/// Strides of one operand, in elements.
struct GemmStrides {
  std::int64_t row = 0, column = 0;
  std::int64_t batch[3] = {}; ///< 0 where the operand does not vary along a batch dimension
};

/// c[..., i, j] = beta * c[..., i, j] + sum over l of a[..., i, l] * b[..., l, j], for up to three
/// batch dimensions. Any extent may be 0 or 1; with k = 0 the sum is 0. Of an operand's row and
/// column stride one must be 1 unless the extent it steps over is 1; c's strides must not overlap.
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t batch[3] = {1, 1, 1};
  GemmStrides a, b, c;
  float beta = 0; ///< 0 or 1
};

/// A product whose rows a fused kernel adds up.
struct RowSums : Gemm {};

/// A product beside which a fused kernel adds up the k rows of its right operand (`ofRight`), as b
/// has them, or of the left one, transposed.
struct OperandSum : Gemm {
  bool ofRight;
};

/// One of `count` parts of the columns of a kernel that adds up over rows.
struct ColumnPart {
  std::int64_t index = 0, count = 1;

  /// The first of the part's columns of `size`, and the one behind the last; parts begin at
  /// multiples of 16.
  constexpr std::int64_t begin(std::int64_t size) const { return size * index / count / 16 * 16; }
  constexpr std::int64_t end(std::int64_t size) const {
    return index + 1 == count ? size : ColumnPart{index + 1, count}.begin(size);
  }
};

/// A matrix, row-major, each row of which is normalized.
struct NormRows {
  std::size_t rows;
  std::size_t width;
  double epsilon; ///< added to the variance, or to the mean square
};

/// A matrix, row-major.
struct SoftmaxRows {
  std::size_t rows;
  std::size_t width;
};

/// Elements from one index to the next of an operand of attention; rows are contiguous.
struct HeadStrides {
  std::size_t batch = 0, head = 0, row = 0;
};

/// Queries have batch, heads, positions and width; keys and values groups for heads. Consecutive
/// heads / groups heads share a group's keys and values. The gradient of a tensor has the tensor's
/// layout; logSumExp is (batch, heads, queries), row-major.
struct AttentionShape {
  std::uint32_t batch;
  std::uint32_t heads;
  std::uint32_t groups; ///< divides heads
  std::uint32_t queries;
  std::uint32_t keys;
  std::uint32_t width;
  float scale; ///< of the scores
  bool causal; ///< query t sees keys 0 to positionOf(t)
  HeadStrides q = {};
  HeadStrides k = {}; ///< and v
  HeadStrides out = {};
  std::size_t part = 0; ///< from queries to keys and from keys to values, where one operand is all
  std::uint32_t window = 0; ///< only the last keys that a causal query attends to; 0: all
  float softcap = 0;        ///< scores x become softcap * tanh(x / softcap); 0: they stay
  std::size_t bias = 0;     ///< from the bias of one head to that of the next; 0: one for all
  std::int32_t offset = 0;  ///< of the queries' positions; 0: the last query is at the last key

  /// The key at the position of query t, or the place of one before or behind all keys.
  constexpr std::int64_t positionOf(std::int64_t t) const {
    return t + static_cast<std::int64_t>(keys) - static_cast<std::int64_t>(queries) + offset;
  }
};

/// The number of rank `index` in a list of one for each.
constexpr std::int32_t ofRank(std::initializer_list<std::int32_t> numbers, int index) {
  return numbers.begin()[index];
}

/// The shape with the strides of row-major operands, the width inside of positions, those of heads.
constexpr AttentionShape rowMajor(AttentionShape s) {
  const auto strides = [&](std::size_t heads, std::size_t rows) {
    return HeadStrides{heads * rows * s.width, rows * s.width, s.width};
  };
  s.q = s.out = strides(s.heads, s.queries);
  s.k = strides(s.groups, s.keys);
  return s;
}

/// A matrix of logits, row-major, one row for each label.
struct LogitRows {
  std::size_t rows;
  std::size_t classes;
};

/// A table of `vocabulary` rows of `width` numbers, and how many of them are looked up.
struct EmbeddingShape {
  std::size_t ids;
  std::size_t vocabulary;
  std::size_t width;
  bool partial =
      false; ///< the table is a rank's part of the rows: an id of -1 is of a row elsewhere
};

/// `count` indices into a dimension of `size` elements, of which each rank has `part` consecutive
/// ones; or that dimension alone.
struct IndexShard {
  std::size_t count;
  std::int64_t size;
  std::int64_t part;  ///< ceil(size / ranks) at least
  std::int64_t index; ///< of this rank among those that share the dimension

  constexpr std::int64_t first() const { return index * part; }
  /// How many elements of the dimension this rank has.
  constexpr std::int64_t held() const {
    const std::int64_t behind = size - first();
    return behind < 0 ? 0 : behind < part ? behind : part;
  }
};

/// The argument of the share of a rate that rope does not scale: the index of the pair or its rate.
enum class RopeRamp { None, Index, Rate };

/// `blocks` sequences of `positions` times `inner` vectors of `width` numbers; the width is even.
struct RopeShape {
  std::size_t blocks;
  std::size_t positions;
  std::size_t inner; ///< vectors of one position, such as heads
  std::size_t width;
  double theta;
  bool inverse;         ///< rotate back, as the gradient does
  double magnitude = 1; ///< of the results, in both directions
  double factor = 1;    ///< rates are divided by it, but for a share
  RopeRamp ramp = RopeRamp::None;
  double from = 0, to = 0; ///< where the share is 0 and 1
  std::size_t repeats = 1; ///< blocks of a sample, whose positions are given

  /// Values that do not depend on the pair, so that kernels divide once.
  struct Scale {
    double inverse; ///< 1 / factor
    double slope;   ///< of the share
  };
  constexpr Scale scale() const {
    return {1 / factor, ramp == RopeRamp::None ? 0 : 1 / (to - from)};
  }
  /// The rate of pair `i`, which is `rate` = theta^(-2 i / width) without scaling.
  constexpr double scaledRate(double rate, double i, const Scale &scale) const {
    double share = ((ramp == RopeRamp::Index ? i : rate) - from) * scale.slope;
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    return rate * (scale.inverse + share * (1 - scale.inverse));
  }
};

/// A table of `samples` times `outer` times `positions` rows of `width` elements, and `rows` of
/// them per sample and outer index, whose positions are (samples, rows).
struct WriteShape {
  std::size_t samples;
  std::size_t outer;
  std::size_t positions;
  std::size_t rows;
  std::size_t width;
};

/// `queries` of each sample, which stand at consecutive positions, and keys and values
/// (batch, groups, keys, width), row-major. Consecutive heads / groups heads share a group's.
struct CachedAttentionShape {
  std::uint32_t batch;
  std::uint32_t heads;
  std::uint32_t groups; ///< divides heads
  std::uint32_t queries;
  std::uint32_t keys;
  std::uint32_t width;
  float scale;          ///< of the scores
  std::uint32_t window; ///< maximum number of keys of a query, its own position included; 0: all
  float softcap;        ///< c: scores s become c tanh(s / c); 0: they stay
  HeadStrides q;        ///< and of the result

  /// The nearest position to `position` at which a first query may stand, so that each query has a
  /// key of its own.
  constexpr std::uint32_t firstPosition(std::int32_t position) const {
    const std::uint32_t last = keys - queries;
    const std::uint32_t first = position < 0 ? 0 : static_cast<std::uint32_t>(position);
    return first < last ? first : last;
  }
};

/// `outer` times `inner` lines of `size` numbers that lie `inner` apart, each of which is summed
/// up.
struct ScanShape {
  std::size_t outer;
  std::size_t size;
  std::size_t inner;
  bool exclusive; ///< a sum leaves out the number at its own place
  bool reverse;   ///< from the last number down
};

/// `rows` of `positions` tokens each, in which a sequence of `length` tokens is searched.
struct SequenceShape {
  static constexpr std::size_t kMaxLength = 16;

  std::size_t rows;
  std::size_t positions;
  bool documents; ///< the sequence ends documents, and positions in them are counted
  std::size_t length;
  std::int64_t sequence[kMaxLength];
};

/// `size` pieces of a tensor that lie `stride` elements of the whole tensor apart.
struct DropoutExtent {
  std::size_t size;
  std::size_t stride;
};

/// Which elements of a whole tensor this rank holds, and how they are drawn.
template <std::size_t N> struct DropoutMask {
  double rate;
  std::uint64_t name;          ///< hashName of the name of the draws
  std::int64_t first;          ///< index in the whole tensor of the first element
  DropoutExtent extents[N];    ///< outermost first; the last has stride 1
  std::int64_t microbatch = 0; ///< by how much the first element's index grows from one to the next
};

/// Draws below this of the 2^24 that are equally likely drop an element.
inline std::uint32_t dropThreshold(double rate) {
  return static_cast<std::uint32_t>(std::ceil(rate * 0x1p24));
}

/// The samples of a rank, in parts that follow one another.
struct Microbatches {
  std::int64_t part;        ///< samples of one of them
  std::int64_t batch;       ///< samples on all ranks together
  std::int64_t rows;        ///< samples of a rank: ceil(batch / ranks)
  std::int64_t index;       ///< of this rank among those that share the batch
  std::int64_t number = -1; ///< of the part; -1: it is in the step state
};

/// The samples of a batch of `batch` that the rank with this `index` has of its `rows` rows.
constexpr std::int64_t samplesOfRank(std::int64_t batch, std::int64_t rows, std::int64_t index) {
  const std::int64_t behind = batch - rows * index;
  return behind < 0 ? 0 : behind < rows ? behind : rows;
}

/// A piece of each of `outer` runs: elements [start, start + size) of `whole`.
struct Part {
  std::size_t outer;
  std::size_t whole;
  std::size_t start;
  std::size_t size;
};

/// The part that rank `index` of those that share a dimension keeps of a value that all have.
struct RankPiece {
  std::size_t outer, local, inner, total; ///< see ShardLayout
  std::int64_t index;

  constexpr ShardLayout layout() const { return {outer, local, inner, total}; }
};

/// N tensors one after another in each of `outer` runs; `sizes`: elements of a run of each.
template <std::size_t N> struct Join {
  std::size_t outer;
  std::size_t sizes[N];
};

/// The elements of each of N tensors.
template <std::size_t N> struct Counts {
  std::size_t of[N];
};

/// Arguments of an update rule besides parameter, gradient and states. Plain, as it may be in
/// shared memory.
struct UpdateStep {
  float lr;
  float scale;  ///< factor of the gradient
  double count; ///< number of this update, from 1
  bool decays;  ///< whether weight decay applies to the elements of a call
  float constants[limits::kMaxUpdateConstants]; ///< of the rule, in the order of its row
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_PROGRAM_KERNELARGUMENTS_H
