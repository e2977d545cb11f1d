//===- Reduction.h - sums and maxima over ranks, in rank order --------------===//
#ifndef FSDP_RUNTIME_COMM_REDUCTION_H
#define FSDP_RUNTIME_COMM_REDUCTION_H

#include "runtime/comm/Communicator.h"

namespace fsdp::rt {

/// target[i] = ((sources[0][i] + sources[1][i]) + sources[2][i]) + ..., for `count` elements; every
/// backend uses this loop, so their results are bitwise equal. `target` may be one of the sources
/// and overlaps no other. A sum of bf16 is taken in float and rounded once. A maximum with a NaN is
/// NaN. Threads that help the calling one share large sums.
void reduceInRankOrder(void *target, const void *const *sources, int sourceCount, std::size_t count,
                       DType type, ReduceOp op);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_REDUCTION_H
