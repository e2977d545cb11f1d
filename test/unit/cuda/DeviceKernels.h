//===- DeviceKernels.h - operands of kernels, and how close results must be -===//
#ifndef FSDP_TEST_UNIT_CUDA_DEVICEKERNELS_H
#define FSDP_TEST_UNIT_CUDA_DEVICEKERNELS_H

#include "runtime/cuda/Kernels.h"

#include "Emulator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#define OK(call) ASSERT_EQ(call, cudaSuccess) << emulator::failure()

namespace fsdp::rt {

using Floats = std::vector<float>;

inline Floats normal(std::size_t count, std::mt19937 &random, float mean = 0, float deviation = 1) {
  std::normal_distribution<float> distribution(mean, deviation);
  Floats values(count);
  for (float &value : values)
    value = distribution(random);
  return values;
}

/// The numbers that elements of type T can hold.
template <class T> Floats rounded(Floats values) {
  for (float &value : values)
    value = static_cast<float>(T(value));
  return values;
}

/// `count` elements of device memory, `offset` elements behind an aligned address: misaligned
/// accesses fail, as do any past either end.
template <class T> class Device {
public:
  explicit Device(std::size_t count, std::size_t offset = 0) : count(count), offset(offset) {
    EXPECT_EQ(cudaMalloc(&block, (count + offset) * sizeof(T)), cudaSuccess) << emulator::failure();
  }
  template <class From>
  explicit Device(const std::vector<From> &values, std::size_t offset = 0)
      : Device(values.size(), offset) {
    for (std::size_t i = 0; i < count; ++i)
      data()[i] = static_cast<T>(values[i]);
  }
  ~Device() { EXPECT_EQ(cudaFree(block), cudaSuccess) << emulator::failure(); }
  Device(const Device &) = delete;

  T *data() { return block + offset; }
  operator T *() { return data(); }
  operator const T *() { return data(); }
  /// What stands there, once the stream is done.
  std::vector<T> values() {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << emulator::failure();
    return std::vector<T>(data(), data() + count);
  }
  Floats floats() {
    const std::vector<T> all = values();
    return Floats(all.begin(), all.end());
  }

private:
  T *block = nullptr;
  std::size_t count, offset;
};

/// Runs each test with threads in a random order between barriers, so that a missing one shows.
class DeviceKernels : public ::testing::Test {
protected:
  DeviceKernels() {
    emulator::settings() = emulator::Settings();
    emulator::settings().shuffle = true;
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream.handle, cudaStreamNonBlocking), cudaSuccess);
    stream.workspace = &workspace;
  }
  ~DeviceKernels() override {
    EXPECT_EQ(cudaStreamDestroy(stream.handle), cudaSuccess) << emulator::failure();
    emulator::settings() = emulator::Settings();
  }

  StreamWorkspace workspace;
  WorkStream stream;
  std::mt19937 random{1};
};

/// Each element within `relative` of the expected one, `ofMean` of the mean magnitude and
/// `absolute`, added up.
inline void expectNear(const Floats &got, const Floats &expected, double relative, double ofMean,
                       const char *what, double absolute = 0) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  double mean = 0;
  for (float value : expected)
    mean += std::isfinite(value) ? std::fabs(double(value)) / double(expected.size()) : 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double bound = relative * std::fabs(double(expected[i])) + ofMean * mean + absolute;
    if (got[i] == expected[i])
      continue;
    ASSERT_LE(std::fabs(double(got[i]) - double(expected[i])), bound)
        << what << " [" << i << "] of " << got.size() << ": got " << got[i] << ", expected "
        << expected[i];
  }
}

/// Results of type T: 1e-5 for float; for bf16 half a unit in the last place on top of that.
template <class T> void expectClose(const Floats &got, const Floats &expected, const char *what) {
  expectNear(got, expected, sizeof(T) == 2 ? 0x1p-8 : 1e-5, 1e-5, what);
}

} // namespace fsdp::rt

#endif // FSDP_TEST_UNIT_CUDA_DEVICEKERNELS_H
