//===- Emulation.h - a clean emulator for each test -----------------------------===//
#ifndef FSDP_TEST_UNIT_EMULATOR_EMULATION_H
#define FSDP_TEST_UNIT_EMULATOR_EMULATION_H

#include "Emulator.h"
#include "cuda_runtime.h"
#include "nccl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#define OK(call) ASSERT_EQ(call, cudaSuccess) << emulator::failure()

/// Starts and ends without failure and with the settings of a test's own.
class Emulation : public ::testing::Test {
protected:
  Emulation() { emulator::settings() = emulator::Settings(); }
  ~Emulation() override {
    emulator::reset();
    emulator::settings() = emulator::Settings();
  }
};

/// With the order of launches that kernels of several communicators need.
class NcclEmulation : public Emulation {
protected:
  NcclEmulation() { setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", /*overwrite=*/1); }
  ~NcclEmulation() override { unsetenv("NCCL_LAUNCH_ORDER_IMPLICIT"); }
};

/// Runs `body(rank, id)` on threads, each on device `rank`, with the id of a new communicator.
inline void onDevices(int ranks, const std::function<void(int, ncclUniqueId)> &body) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([=] {
      OK(cudaSetDevice(r));
      body(r, id);
    });
  for (std::thread &thread : threads)
    thread.join();
}

template <class... P, class... A>
cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 block, std::size_t shared,
                   cudaStream_t stream, A... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

/// Device memory that goes away with its test.
template <class T> struct Buffer {
  T *data = nullptr;
  std::size_t count;
  explicit Buffer(std::size_t count) : count(count) {
    EXPECT_EQ(cudaMalloc(&data, count * sizeof(T)), cudaSuccess);
  }
  ~Buffer() { cudaFree(data); }
  std::vector<T> values() const {
    std::vector<T> result(count);
    EXPECT_EQ(cudaMemcpy(result.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return result;
  }
};

#endif // FSDP_TEST_UNIT_EMULATOR_EMULATION_H
