//===- AttentionBlocks.h - which keys a block of queries sees ----*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_CUDA_ATTENTIONBLOCKS_H
#define FSDP_RUNTIME_KERNELS_CUDA_ATTENTIONBLOCKS_H

#include "runtime/device/cuda/KernelLaunch.h"
#include "runtime/device/cuda/StreamWorkspace.h"
#include "runtime/kernels/cuda/BlockReduce.h"
#include "runtime/kernels/cuda/Element.h"
#include "runtime/program/KernelArguments.h"
#include "runtime/program/Limits.h"

#include <cuda_runtime.h>

#include <climits>
#include <cstddef>
#include <cstdint>

namespace fsdp::rt::device {

/// Whether the kernels compute this: heads no wider than limits::kMaxHeadWidth, in groups of equal
/// size.
inline bool takes(const AttentionShape &s) {
  return s.width >= 1 && s.width <= limits::kMaxHeadWidth && s.groups > 0 &&
         s.heads % s.groups == 0;
}

/// Blocks of a kernel without options and bias.
struct WithoutOptions {
  static constexpr bool kOptions = false, kBias = false;
};
/// The same blocks of a kernel that takes options that few shapes have, too: a window, a cap of
/// scores and documents. Separate, so that other attention does not pay for them.
template <class Blocks> struct WithOptions : Blocks {
  static constexpr bool kOptions = true;
};
/// Those and a bias.
template <class Blocks> struct WithBias : WithOptions<Blocks> {
  static constexpr bool kBias = true;
};
inline bool hasOptions(const AttentionShape &s, const std::int32_t *documents) {
  return s.window > 0 || s.softcap != 0 || documents;
}

/// The shape as kernels take it: its offset is the key at the position of query 0. One number of
/// the shape is all that a position takes there.
inline AttentionShape placed(AttentionShape s) {
  s.offset = static_cast<std::int32_t>(s.positionOf(0));
  return s;
}
/// The key at the position of query t, or the place of one before or behind all keys.
__host__ __device__ inline int positionOf(const AttentionShape &s, int t) { return t + s.offset; }
/// How many keys query t sees, if there were more of them.
__host__ __device__ inline int keysSeen(const AttentionShape &s, int t) {
  if (!s.causal)
    return static_cast<int>(s.keys);
  const int seen = positionOf(s, t) + 1;
  return seen < 0 ? 0 : seen;
}
/// How many blocks of `size` keys any of the queries [first, first + count) sees.
__host__ __device__ inline int keyBlocks(const AttentionShape &s, int first, int count, int size) {
  const int last =
      first + count < static_cast<int>(s.queries) ? first + count : static_cast<int>(s.queries);
  const int seen = keysSeen(s, last - 1), keys = static_cast<int>(s.keys);
  return ((seen < keys ? seen : keys) + size - 1) / size;
}
/// The first key in its window that query t attends to.
__host__ __device__ inline int firstSeen(const AttentionShape &s, int t) {
  if (s.window == 0)
    return 0;
  const int first = keysSeen(s, t) - static_cast<int>(s.window);
  return first < 0 ? 0 : first;
}
/// The first query that sees `key`: all behind it do, too, up to the end of the window.
__host__ __device__ inline int firstToSee(const AttentionShape &s, int key) {
  const int query = s.causal ? key - positionOf(s, 0) : 0;
  return query < 0 ? 0 : query;
}
/// The first query whose window has passed `key`, as those of all behind it have.
__host__ __device__ inline int endOfWindow(const AttentionShape &s, int key) {
  const int queries = static_cast<int>(s.queries);
  if (s.window == 0)
    return queries;
  const int end = key + static_cast<int>(s.window) - positionOf(s, 0);
  return end < 0 ? 0 : end < queries ? end : queries;
}
/// The first block of `size` queries with one that sees any of the keys [first, ...); behind all
/// where none does.
__host__ __device__ inline int firstQueryBlock(const AttentionShape &s, int first, int size) {
  const int query = firstToSee(s, first), queries = static_cast<int>(s.queries);
  return query < queries ? query / size : (queries + size - 1) / size;
}

/// Keys, or queries.
struct Range {
  int begin, end;
};
/// The keys that any of the queries [first, first + count) attends to by position.
__host__ __device__ inline Range keysOf(const AttentionShape &s, int first, int count) {
  const int queries = static_cast<int>(s.queries), keys = static_cast<int>(s.keys);
  const int last = (first + count < queries ? first + count : queries) - 1;
  const int seen = keysSeen(s, last);
  return {firstSeen(s, first), seen < keys ? seen : keys};
}
/// The queries that attend to any of the keys [first, first + count) by position.
__host__ __device__ inline Range queriesOf(const AttentionShape &s, int first, int count) {
  const int keys = static_cast<int>(s.keys);
  return {firstToSee(s, first), endOfWindow(s, (first + count < keys ? first + count : keys) - 1)};
}

/// The ids of a batch's documents.
struct Documents {
  const std::int32_t *ids; ///< of the keys; null: all are of one document
  int offset, keys;        ///< query t is at key t + offset

  /// `number`: of the head, among batch * heads.
  __device__ Documents(const AttentionShape &s, const std::int32_t *documents, std::size_t number)
      : ids(documents ? documents + number / s.heads * s.keys : nullptr), offset(positionOf(s, 0)),
        keys(static_cast<int>(s.keys)) {}
  __device__ explicit operator bool() const { return ids != nullptr; }
  /// The id of a key; of no key, that of one.
  __device__ std::int32_t at(int key) const {
    return ids[key < 0 ? 0 : key < keys ? key : keys - 1];
  }
  __device__ std::int32_t ofQuery(int query) const { return at(query + offset); }

  /// Leaves of `keys` those between which all are that may be of the documents of the keys `own`:
  /// whose ids lie between the least and the largest there. All threads take part.
  template <int kThreads> __device__ Range narrow(Range own, Range keys) const {
    __shared__ int scratch[2 * kMaxWarps];
    const int none = INT_MIN;
    int most[2] = {none,
                   none}; // the largest id, and that of ~id, of which the least has the largest
    for (int key = own.begin + static_cast<int>(threadIdx.x); key < own.end; key += kThreads) {
      const std::int32_t id = at(key);
      most[0] = max(most[0], id), most[1] = max(most[1], ~id);
    }
    blockReduce<Larger>(most, scratch);
    int ends[2] = {none, none}; // the last key, and ~ of the first
    for (int key = keys.begin + static_cast<int>(threadIdx.x); key < keys.end; key += kThreads)
      if (const std::int32_t id = at(key); id <= most[0] && ~id <= most[1])
        ends[0] = max(ends[0], key), ends[1] = max(ends[1], ~key);
    blockReduce<Larger>(ends, scratch);
    return ends[0] == none ? Range{keys.begin, keys.begin} : Range{~ends[1], ends[0] + 1};
  }
  /// The same for queries, of which those are kept that may see one of the keys `own`.
  template <int kThreads> __device__ Range narrowQueries(Range own, Range queries) const {
    const Range kept = narrow<kThreads>(own, {queries.begin + offset, queries.end + offset});
    return {kept.begin - offset, kept.end - offset};
  }
};

/// How many heads have shifts of their own, among all heads, or, without documents, among those of
/// the bias: a query then sees the same keys in every batch.
__host__ __device__ inline std::size_t shiftedHeads(const AttentionShape &s, bool documents) {
  return documents ? std::size_t(s.batch) * s.heads : s.bias == 0 ? 1 : s.heads;
}
/// Writes to `shifts`, (shiftedHeads, queries), the number that is subtracted from the bias of each
/// query: the largest of the keys that it sees, a NaN passed over; 0 where that is -infinity. See
/// Kernels.def.
cudaError_t launchShifts(const AttentionShape &s, const float *bias, const std::int32_t *documents,
                         float *shifts, cudaStream_t stream);

/// The same in the workspace, for a kernel that needs nothing else there; null without a bias.
inline cudaError_t shiftsOf(const AttentionShape &s, const float *bias,
                            const std::int32_t *documents, const float *&shifts,
                            WorkStream stream) {
  if (!bias)
    return cudaSuccess;
  float *to = nullptr;
  if (cudaError_t status =
          stream.workspace->reserve(shiftedHeads(s, documents) * s.queries * sizeof(float), to))
    return status;
  shifts = to;
  return launchShifts(s, bias, documents, to, stream);
}

/// The bias of one head, less the shift of each query.
struct HeadBias {
  const float *at;     ///< (queries, keys)
  const float *shifts; ///< (queries)
  int queries, keys;

  /// `number`: of the head, among batch * heads; `shifts`: of all.
  __device__ HeadBias(const AttentionShape &s, const float *bias, const float *shifts,
                      const std::int32_t *documents, std::size_t number)
      : queries(static_cast<int>(s.queries)), keys(static_cast<int>(s.keys)) {
    const std::size_t head = number % s.heads;
    at = bias + head * s.bias;
    this->shifts = shifts + (documents ? number : s.bias == 0 ? 0 : head) * s.queries;
  }
  /// Of a query or a key behind the last, that of the last.
  __device__ float operator()(int query, int key) const {
    const int row = query < queries ? query : queries - 1;
    return at[std::size_t(row) * keys + (key < keys ? key : keys - 1)] - shifts[row];
  }
};

/// Where the rows of one head begin.
struct Head {
  std::size_t q;    ///< element of the queries
  std::size_t k;    ///< of the keys, and the values
  std::size_t out;  ///< of the output
  std::size_t sums; ///< of logSumExp
};
/// `number`: among batch * heads.
__host__ __device__ inline Head headOf(const AttentionShape &s, std::size_t number) {
  const std::size_t batch = number / s.heads, head = number % s.heads;
  return {batch * s.q.batch + head * s.q.head,
          batch * s.k.batch + head / (s.heads / s.groups) * s.k.head,
          batch * s.out.batch + head * s.out.head, number * s.queries};
}

/// sums[r] = row r of `a` times row r of `b`, which lie as the output does. `lanes` of a warp, a
/// power of two, share a row, in parts of 16 bytes: in one order whether they are loaded at once.
template <class T, bool kVectors>
__global__ void __launch_bounds__(256)
    rowProducts(AttentionShape s, std::size_t rows, unsigned lanes, const T *a, const T *b,
                float *sums) {
  constexpr unsigned N = kPack<T>;
  const std::size_t row = (blockIdx.x * std::size_t(blockDim.x) + threadIdx.x) / lanes;
  float sum = 0;
  if (row < rows) {
    const std::size_t start = headOf(s, row / s.queries).out + row % s.queries * s.out.row;
    for (unsigned i = threadIdx.x % lanes * N; i < s.width; i += lanes * N) {
      float left[N] = {}, right[N] = {};
      if constexpr (kVectors) {
        loadFloats(a + start + i, true, left);
        loadFloats(b + start + i, true, right);
      } else {
#pragma unroll
        for (unsigned n = 0; n < N; ++n)
          if (i + n < s.width) {
            left[n] = toFloat(a[start + i + n]);
            right[n] = toFloat(b[start + i + n]);
          }
      }
#pragma unroll
      for (unsigned n = 0; n < N; ++n)
        sum = fmaf(left[n], right[n], sum);
    }
  }
  for (unsigned distance = lanes / 2; distance > 0; distance /= 2)
    sum += __shfl_xor_sync(kAllLanes, sum, distance);
  if (row < rows && threadIdx.x % lanes == 0)
    sums[row] = sum;
}
/// `along` gets room in the workspace for a number of each row, and behind them, with a bias, for
/// the shifts, which are written.
inline cudaError_t reserveRows(const AttentionShape &s, const float *bias,
                               const std::int32_t *documents, float *&along, WorkStream stream) {
  const std::size_t rows = std::size_t(s.batch) * s.heads * s.queries,
                    shifts = bias ? shiftedHeads(s, documents) * s.queries : 0;
  if (cudaError_t status = stream.workspace->reserve((rows + shifts) * sizeof(float), along))
    return status;
  return bias ? launchShifts(s, bias, documents, along + rows, stream) : cudaSuccess;
}
/// Where the shifts lie that are behind the numbers of rows.
__host__ __device__ inline const float *shiftsBehind(const AttentionShape &s, const float *along) {
  return along + std::size_t(s.batch) * s.heads * s.queries;
}
/// Whether rows that begin at aligned addresses are all aligned to `elements`, in whole such parts.
inline bool inWholeParts(const AttentionShape &s, std::size_t elements) {
  std::size_t bits = s.width | s.part;
  for (const HeadStrides &strides : {s.q, s.k, s.out})
    bits |= strides.batch | strides.head | strides.row;
  return bits % elements == 0;
}

/// As reserveRows, and writes the products.
template <class T>
cudaError_t launchRowProducts(const AttentionShape &s, const T *a, const T *b, const float *bias,
                              const std::int32_t *documents, float *&along, WorkStream stream) {
  if (cudaError_t status = reserveRows(s, bias, documents, along, stream))
    return status;
  constexpr unsigned kThreads = 256;
  const bool vectors = inWholeParts(s, kPack<T>) && aligned16(a, b);
  const std::size_t rows = std::size_t(s.batch) * s.heads * s.queries;
  unsigned lanes = 1;
  while (lanes < kWarp && lanes * kPack<T> < s.width)
    lanes *= 2;
  return launchKernel(vectors ? rowProducts<T, true> : rowProducts<T, false>,
                      dim3(static_cast<unsigned>(ceilDiv<std::size_t>(rows * lanes, kThreads))),
                      kThreads, 0, stream, s, rows, lanes, a, b, along);
}

} // namespace fsdp::rt::device

#endif // FSDP_RUNTIME_KERNELS_CUDA_ATTENTIONBLOCKS_H
