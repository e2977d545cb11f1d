//===- LaunchWork.h - notes of launches for traces --------------*- C++ -*-===//
//
// A launch notes its kind of work, and a kernel its variant; a trace reads the notes after the
// call.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_DEVICE_CUDA_LAUNCHWORK_H
#define FSDP_RUNTIME_DEVICE_CUDA_LAUNCHWORK_H

#include "runtime/device/Work.h"
#include "runtime/device/cuda/StreamWorkspace.h"

#include <cuda_runtime.h>

#include <cstddef>

namespace fsdp::rt {

/// The note of this thread's launches while it is traced, else null.
inline thread_local Work *launchWork = nullptr;

inline void noteWork(Work work) {
  if (launchWork)
    *launchWork = work;
}
/// Likewise, after its work, the variant of the kernel; see Work.
inline void noteVariant(const char *variant) {
  if (launchWork)
    launchWork->variant = variant;
}
/// The variant of a kernel that moves 16 bytes at once, or else element by element.
inline void noteVectors(bool vectors) { noteVariant(vectors ? "vectors" : "any alignment"); }
/// Likewise the event that a stream records or waits for.
inline thread_local cudaEvent_t *launchEvent = nullptr;

inline void noteEvent(cudaEvent_t event) {
  if (launchEvent)
    *launchEvent = event;
}
/// CUDA's own function as a program calls it, with a stream of its context.
inline cudaError_t cudaMemcpyAsync(void *to, const void *from, std::size_t bytes,
                                   cudaMemcpyKind kind, WorkStream stream) {
  if (cudaError_t status = ::cudaMemcpyAsync(to, from, bytes, kind, stream.handle))
    return status;
  if (!stream.workspace)
    return cudaSuccess;
  const HostCopies &copies = stream.workspace->copies;
  const cudaEvent_t copied = kind == cudaMemcpyDeviceToHost   ? copies.toHost
                             : kind == cudaMemcpyHostToDevice ? copies.fromHost[copies.place]
                                                              : nullptr;
  return copied ? ::cudaEventRecord(copied, stream.handle) : cudaSuccess;
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DEVICE_CUDA_LAUNCHWORK_H
