//===- KernelLaunch.h - how kernels are launched -----------------*- C++ -*-===//
//
// No triple chevrons, no `extern __shared__`: with these two, a .cu file is C++ with attributes, so
// that the very same file runs under the emulator of the tests (test/emulator), which brings its
// own FSDP_DYNAMIC_SHARED.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_DEVICE_CUDA_KERNELLAUNCH_H
#define FSDP_RUNTIME_DEVICE_CUDA_KERNELLAUNCH_H

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#ifndef FSDP_DYNAMIC_SHARED
/// Declares `name`, a pointer to the launch's dynamic shared memory, aligned to 1024 bytes.
#define FSDP_DYNAMIC_SHARED(type, name)                                                            \
  extern __shared__ __align__(1024) unsigned char fsdpDynamicShared[];                             \
  type *name = reinterpret_cast<type *>(fsdpDynamicShared)
#endif

namespace fsdp::rt::device {

/// More shared memory of a block, static and dynamic together, must be requested.
constexpr std::size_t kSharedWithoutLeave = 48 * 1024;

template <class T> __host__ __device__ constexpr T ceilDiv(T a, T b) { return (a + b - 1) / b; }

/// The shared memory that a block of the thread's device may have, static and dynamic together.
inline cudaError_t findShared(std::size_t &bytes) {
  int device = 0, most = 0;
  if (cudaError_t status = cudaGetDevice(&device))
    return status;
  if (cudaError_t status =
          cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device))
    return status;
  bytes = static_cast<std::size_t>(most);
  return cudaSuccess;
}

/// Asks for `sharedBytes` of dynamic shared memory where a block of `kernel` would not get them
/// unasked. Kernels with static memory alone, nearly all of them, cost no call: nvcc refuses more
/// than 48 KiB of it. The others cost calls when they ask for more than before: a thread stays on
/// one device, whose limits these are.
inline cudaError_t allowShared(const void *kernel, std::size_t sharedBytes) {
  if (sharedBytes == 0)
    return cudaSuccess;
  static thread_local std::unordered_map<const void *, std::size_t> allowed;
  std::size_t &most = allowed[kernel];
  if (sharedBytes <= most)
    return cudaSuccess;
  cudaFuncAttributes attributes;
  if (cudaError_t status = cudaFuncGetAttributes(&attributes, kernel))
    return status;
  if (attributes.sharedSizeBytes + sharedBytes > kSharedWithoutLeave)
    if (cudaError_t status = cudaFuncSetAttribute(
            kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(sharedBytes)))
      return status;
  most = sharedBytes;
  return cudaSuccess;
}

/// Enqueues `kernel(args...)` on `stream`. A grid without blocks is not launched. `sharedBytes` is
/// dynamic shared memory.
template <class... Parameters, class... Args>
cudaError_t launchKernel(void (*kernel)(Parameters...), dim3 grid, unsigned threads,
                         std::size_t sharedBytes, cudaStream_t stream, Args... args) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0)
    return cudaSuccess;
  if (cudaError_t status = allowShared(reinterpret_cast<const void *>(kernel), sharedBytes))
    return status;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = sharedBytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(args)...);
}

/// Blocks for `items` pieces of work, `perBlock` at a time: no more than keep an H200 busy (132
/// multiprocessors, 8 blocks of 256 threads each) for loops that stride over the grid.
constexpr unsigned stridingBlocks(std::size_t items, std::size_t perBlock) {
  const std::size_t needed = ceilDiv(items, perBlock);
  return static_cast<unsigned>(needed < 132 * 8 ? needed : 132 * 8);
}

} // namespace fsdp::rt::device

#endif // FSDP_RUNTIME_DEVICE_CUDA_KERNELLAUNCH_H
