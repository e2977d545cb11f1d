//===- AttentionBlocks.h - which keys a block of queries sees ----*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_CUDA_ATTENTIONBLOCKS_H
#define FSDP_RUNTIME_KERNELS_CUDA_ATTENTIONBLOCKS_H

#include "runtime/program/KernelArguments.h"
#include "runtime/program/Limits.h"

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace fsdp::rt::device {

/// Whether the kernels compute this: heads no wider than limits::kMaxHeadWidth, in groups of equal
/// size.
inline bool takes(const AttentionShape &s) {
  return s.width >= 1 && s.width <= limits::kMaxHeadWidth && s.groups > 0 &&
         s.heads % s.groups == 0;
}

/// How many keys query t sees.
__host__ __device__ inline int keysSeen(const AttentionShape &s, int t) {
  if (!s.causal)
    return static_cast<int>(s.keys);
  const int seen = t + 1 + static_cast<int>(s.keys) - static_cast<int>(s.queries);
  return seen < 0 ? 0 : seen;
}
/// How many blocks of `size` keys any of the queries [first, first + count) sees.
__host__ __device__ inline int keyBlocks(const AttentionShape &s, int first, int count, int size) {
  const int last =
      first + count < static_cast<int>(s.queries) ? first + count : static_cast<int>(s.queries);
  return (keysSeen(s, last - 1) + size - 1) / size;
}
/// The first query that sees `key`: all behind it do, too.
__host__ __device__ inline int firstToSee(const AttentionShape &s, int key) {
  const int query = s.causal ? key + static_cast<int>(s.queries) - static_cast<int>(s.keys) : 0;
  return query < 0 ? 0 : query;
}
/// The first block of `size` queries with one that sees any of the keys [first, ...).
__host__ __device__ inline int firstQueryBlock(const AttentionShape &s, int first, int size) {
  return firstToSee(s, first) / size;
}

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

/// Whether rows that begin at aligned addresses are all aligned to `elements`, in whole such parts.
inline bool inWholeParts(const AttentionShape &s, std::size_t elements) {
  std::size_t bits = s.width | s.part;
  for (const HeadStrides &strides : {s.q, s.k, s.out})
    bits |= strides.batch | strides.head | strides.row;
  return bits % elements == 0;
}

} // namespace fsdp::rt::device

#endif // FSDP_RUNTIME_KERNELS_CUDA_ATTENTIONBLOCKS_H
