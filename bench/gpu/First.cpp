//===- First.cpp - what a program finds on its GPU -------------------------===//
//
// The smallest program with a kernel of the runtime: versions and the device, whether its kernels
// have code for it, and one launch whose result is read back. A line for each; exit status 1 if one
// fails, 3 without a device.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/cuda/Kernels.h"

#include <cstdio>

using namespace fsdp::rt;

static bool succeeds(const char *action, cudaError_t status) {
  if (status != cudaSuccess)
    std::printf("%s: got %s (%s), expected success\n", action, cudaGetErrorName(status),
                cudaGetErrorString(status));
  return status == cudaSuccess;
}

int main() {
  int devices = 0, driver = 0, runtime = 0;
  if (!succeeds("count the devices", cudaGetDeviceCount(&devices)) || devices == 0)
    return 3;
  if (!succeeds("ask for the driver's version", cudaDriverGetVersion(&driver)) ||
      !succeeds("ask for the runtime's version", cudaRuntimeGetVersion(&runtime)))
    return 1;
  cudaDeviceProp properties;
  if (!succeeds("ask for the device", cudaGetDeviceProperties(&properties, 0)))
    return 1;
  std::size_t free = 0, total = 0;
  if (!succeeds("ask for its memory", cudaMemGetInfo(&free, &total)))
    return 1;
  std::printf("device '%s', compute capability %d.%d, driver %d.%d, runtime %d.%d, %zu of %zu MiB "
              "free\n",
              properties.name, properties.major, properties.minor, driver / 1000,
              driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10, free >> 20, total >> 20);
  if (!succeeds("find a kernel's code for this device", find_kernels()))
    return 1;
  std::int64_t *memory = nullptr, value = 0;
  if (!succeeds("allocate 8 bytes", cudaMalloc(&memory, sizeof value)) ||
      !succeeds("launch a kernel", shard_size(IndexShard{0, 42, 42, 0}, memory, nullptr)) ||
      !succeeds("wait for it", cudaDeviceSynchronize()) ||
      !succeeds("read its result",
                cudaMemcpy(&value, memory, sizeof value, cudaMemcpyDeviceToHost)))
    return 1;
  cudaFree(memory);
  std::printf("a kernel wrote %lld, expected 42\n", static_cast<long long>(value));
  return value == 42 ? 0 : 1;
}
