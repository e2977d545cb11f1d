//===- SegmentCapture.h - a segment that becomes a graph --------*- C++ -*-===//
#ifndef FSDP_RUNTIME_EXECUTION_CUDA_SEGMENTCAPTURE_H
#define FSDP_RUNTIME_EXECUTION_CUDA_SEGMENTCAPTURE_H

#include <cuda_runtime.h>
#include <cuda_runtime_api.h>

#include <set>
#include <vector>

namespace fsdp::rt {

/// The events, inputs and outputs that the capture of a segment records (SegmentGraphs.h).
struct SegmentCapture {
  /// A copy of the next batch of an input.
  struct StagedInput {
    int input;
    const void *address; ///< pinned memory that it reads
  };
  std::set<int> recorded; ///< events of the program
  std::vector<StagedInput> inputs;
  std::vector<cudaEvent_t> outputs; ///< which launches record after outputs; owned by the graph

  cudaError_t noteOutput(cudaStream_t stream) {
    cudaEvent_t event = nullptr;
    if (cudaError_t status = cudaEventCreateWithFlags(&event, cudaEventDisableTiming))
      return status;
    outputs.push_back(event);
    return cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal);
  }
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_EXECUTION_CUDA_SEGMENTCAPTURE_H
