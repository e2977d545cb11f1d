//===- StreamWorkspace.h - scratch memory of one stream ----------*- C++ -*-===//
//
// Kernels that need scratch memory between their launches use the workspace of their stream.
// Launches of a stream run one after another, so they share one block.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_DEVICE_CUDA_STREAMWORKSPACE_H
#define FSDP_RUNTIME_DEVICE_CUDA_STREAMWORKSPACE_H

#include "runtime/device/cuda/BoundsError.h"

#include <cuda_runtime.h>

#include <cstddef>

namespace fsdp::rt {

/// Events after the latest copies of a stream between the device and pinned host memory, on which
/// the host can wait. An event that was not recorded is complete. Owned by the code that sets them.
struct HostCopies {
  cudaEvent_t toHost = nullptr;
  /// After copies from each of the places between which the batches of the host alternate, and the
  /// current place.
  static constexpr int kPlaces = 8;
  cudaEvent_t fromHost[kPlaces] = {};
  int place = 0;
};

/// A block of device memory that grows to the largest request, so that nothing is allocated after
/// the first step.
class StreamWorkspace {
public:
  StreamWorkspace() = default;
  ~StreamWorkspace() {
    if (block)
      cudaFree(block);
  }
  StreamWorkspace(const StreamWorkspace &) = delete;
  StreamWorkspace &operator=(const StreamWorkspace &) = delete;

  /// `memory` gets at least `bytes` bytes, aligned to 256, for launches on the workspace's stream
  /// until the next request. Growing waits for the device.
  template <class T> cudaError_t reserve(std::size_t bytes, T *&memory) {
    if (bytes > size) {
      if (cudaError_t status = cudaDeviceSynchronize())
        return status;
      if (cudaError_t status = cudaFree(block))
        return status;
      block = nullptr, size = 0;
      if (cudaError_t status = cudaMalloc(&block, bytes))
        return status;
      size = bytes;
    }
    memory = static_cast<T *>(block);
    return cudaSuccess;
  }

  std::size_t bytes() const { return size; }

  /// In device memory; owned by the code that sets it.
  BoundsError *fault = nullptr;
  HostCopies copies;

private:
  void *block = nullptr;
  std::size_t size = 0;
};

/// A stream as kernels get it: its handle, and its scratch memory.
struct WorkStream {
  cudaStream_t handle = nullptr;
  StreamWorkspace *workspace = nullptr;

  operator cudaStream_t() const { return handle; }
  /// The record of indices out of range, or null.
  BoundsError *fault() const { return workspace ? workspace->fault : nullptr; }
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DEVICE_CUDA_STREAMWORKSPACE_H
