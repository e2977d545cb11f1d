//===- ShardRuns.h - contiguous runs of a split buffer --------------------===//
#ifndef FSDP_RUNTIME_COMM_SHARDRUNS_H
#define FSDP_RUNTIME_COMM_SHARDRUNS_H

#include "runtime/program/CollectiveRequest.h"

#include <algorithm>

namespace fsdp::rt {

inline ShardLayout layoutOf(const CollectiveRequest &request) {
  return {request.outer, request.local, request.inner, request.total};
}

inline AllToAllLayout exchangeOf(const CollectiveRequest &r) {
  return {r.outer, r.middle,      r.inner,       r.local,
          r.total, r.concatLocal, r.concatTotal, r.splitFirst != 0};
}

/// Calls `run(pieceIndex, wholeIndex, count)` for each contiguous run of elements that rank `r`
/// holds, without padding.
template <class Run> void forEachRun(ShardLayout layout, std::size_t r, Run run) {
  const std::size_t count = layout.held(r) * layout.inner;
  if (!count)
    return;
  for (std::size_t o = 0; o < layout.outer; ++o)
    run(o * layout.local * layout.inner, (o * layout.total + r * layout.local) * layout.inner,
        count);
}

/// Calls `run(skipped, count)` for the part of [first, first+count) in [low, high), if it is not
/// empty.
template <class Run>
void clip(std::size_t first, std::size_t count, std::size_t low, std::size_t high, Run run) {
  std::size_t from = std::max(first, low), to = std::min(first + count, high);
  if (from < to)
    run(from - first, to - from);
}

/// Zeros in the padding of rank `r`'s piece.
inline void clearPadding(ShardLayout layout, std::size_t r, void *piece, std::size_t elementBytes) {
  const std::size_t held = layout.held(r) * layout.inner, row = layout.local * layout.inner;
  if (held == row)
    return;
  for (std::size_t o = 0; o < layout.outer; ++o)
    std::fill_n(static_cast<char *>(piece) + (o * row + held) * elementBytes,
                (row - held) * elementBytes, char(0));
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_SHARDRUNS_H
