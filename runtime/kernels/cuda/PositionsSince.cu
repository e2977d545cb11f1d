//===- PositionsSince.cu - where a sequence of tokens ended last ----------===//
//
// Floor: the latency of reading a row tile by tile; a row has little to read beside the activations
// of its tokens. A warp takes a row, 32 positions at a time: the ends among these are one vote.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/KernelLaunch.h"
#include "runtime/kernels/cuda/Kernels.h"
#include "runtime/kernels/cuda/Row.h"

namespace fsdp::rt {

namespace {

using namespace device;

constexpr unsigned kThreads = 128;

template <class Id>
__global__ void __launch_bounds__(kThreads)
    count(SequenceShape shape, const Id *tokens, std::int32_t *since) {
  const std::size_t row = (blockIdx.x * std::size_t(kThreads) + threadIdx.x) / kWarp;
  if (row >= shape.rows)
    return;
  const unsigned lane = threadIdx.x % kWarp;
  tokens += row * shape.positions;
  since += row * shape.positions;
  // The lanes at whose positions an end counts for this one.
  const unsigned before = (1u << lane) - 1, upTo = before | 1u << lane;
  std::int64_t last = -1; // end in the tiles before
  for (std::size_t begin = 0; begin < shape.positions; begin += kWarp) {
    const std::size_t t = begin + lane;
    bool ends = t < shape.positions && t + 1 >= shape.length;
    for (std::size_t k = 0; ends && k < shape.length; ++k)
      ends = std::int64_t(tokens[t - k]) == shape.sequence[shape.length - 1 - k];
    const unsigned all = __ballot_sync(kAllLanes, ends);
    const auto latest = [&](unsigned of) {
      return of ? std::int64_t(begin) + (31 - __clz(int(of))) : last;
    };
    const std::int64_t end = latest(all & (shape.documents ? before : upTo));
    if (t < shape.positions)
      since[t] = static_cast<std::int32_t>(std::int64_t(t) - end - (shape.documents ? 1 : 0));
    last = latest(all);
  }
}

template <class Id>
cudaError_t launch(SequenceShape shape, const Id *tokens, std::int32_t *since,
                   cudaStream_t stream) {
  const std::size_t blocks = ceilDiv<std::size_t>(shape.rows, kThreads / kWarp);
  return launchKernel(count<Id>, dim3(static_cast<unsigned>(blocks)), kThreads, 0, stream, shape,
                      tokens, since);
}

} // namespace

cudaError_t positions_since(SequenceShape shape, const std::int32_t *tokens, std::int32_t *since,
                            cudaStream_t stream) {
  return launch(shape, tokens, since, stream);
}
cudaError_t positions_since(SequenceShape shape, const std::int64_t *tokens, std::int32_t *since,
                            cudaStream_t stream) {
  return launch(shape, tokens, since, stream);
}

} // namespace fsdp::rt
