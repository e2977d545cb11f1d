//===- DeviceKernels.h - operands of kernels, and how close results must be -===//
//
// The same tests run under the emulator of test/emulator and on a GPU: the host touches no memory
// of the device but through copies.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TEST_UNIT_CUDA_DEVICEKERNELS_H
#define FSDP_TEST_UNIT_CUDA_DEVICEKERNELS_H

#include "runtime/kernels/cuda/Kernels.h"

#ifdef FSDP_CUDA_EMULATOR
#include "Emulator.h"
#endif

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#define OK(call) ASSERT_EQ(call, cudaSuccess) << deviceFailure()

namespace fsdp::rt {

/// What went wrong on the device first.
inline std::string deviceFailure() {
#ifdef FSDP_CUDA_EMULATOR
  return emulator::failure();
#else
  return cudaGetErrorString(cudaPeekAtLastError());
#endif
}

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

/// `count` elements of device memory, `offset` elements behind an aligned address. They begin as
/// 0xff bytes: not a number. Under the emulator misaligned accesses fail, as do any past either
/// end; on a device the memory after the end must not change.
template <class T> class Device {
public:
  explicit Device(std::size_t count, std::size_t offset = 0) : count(count), offset(offset) {
    const std::size_t bytes = (count + offset) * sizeof(T) + kGuard;
    EXPECT_EQ(cudaMalloc(&block, bytes), cudaSuccess) << deviceFailure();
    EXPECT_EQ(cudaMemset(block, 0xff, bytes), cudaSuccess) << deviceFailure();
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << deviceFailure();
  }
  template <class From>
  explicit Device(const std::vector<From> &values, std::size_t offset = 0)
      : Device(values.size(), offset) {
    const std::unique_ptr<T[]> elements(new T[count]);
    for (std::size_t i = 0; i < count; ++i)
      elements[i] = static_cast<T>(values[i]);
    copyIn(0, elements.get(), count);
  }
  ~Device() {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << deviceFailure();
    std::vector<unsigned char> behind(kGuard);
    EXPECT_EQ(cudaMemcpy(behind.data(), data() + count, kGuard, cudaMemcpyDeviceToHost),
              cudaSuccess)
        << deviceFailure();
    EXPECT_TRUE(behind == std::vector<unsigned char>(kGuard, 0xff))
        << "written behind " << count << " elements";
    EXPECT_EQ(cudaFree(block), cudaSuccess) << deviceFailure();
  }
  Device(const Device &) = delete;

  T *data() { return block + offset; }
  operator T *() { return data(); }
  operator const T *() { return data(); }
  void set(std::size_t index, T value) { copyIn(index, &value, 1); }
  /// The contents, after the device has finished.
  std::vector<T> values() {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << deviceFailure();
    const std::unique_ptr<T[]> elements(new T[count]);
    EXPECT_EQ(cudaMemcpy(elements.get(), data(), count * sizeof(T), cudaMemcpyDeviceToHost),
              cudaSuccess)
        << deviceFailure();
    return std::vector<T>(elements.get(), elements.get() + count);
  }
  Floats floats() {
    const std::vector<T> all = values();
    return Floats(all.begin(), all.end());
  }

private:
#ifdef FSDP_CUDA_EMULATOR
  static constexpr std::size_t kGuard = 0; // a page without access follows
#else
  static constexpr std::size_t kGuard = 256;
#endif

  /// The copy has arrived when this returns: streams of tests do not wait for the default one.
  void copyIn(std::size_t index, const T *from, std::size_t elements) {
    EXPECT_EQ(cudaMemcpy(data() + index, from, elements * sizeof(T), cudaMemcpyHostToDevice),
              cudaSuccess)
        << deviceFailure();
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << deviceFailure();
  }

  T *block = nullptr;
  std::size_t count, offset;
};

/// Under the emulator each test runs with threads in a random order between barriers, so that a
/// missing one shows, and may not touch device memory from the host.
class DeviceKernels : public ::testing::Test {
protected:
  DeviceKernels() {
#ifdef FSDP_CUDA_EMULATOR
    emulator::settings() = emulator::settingsOfEnvironment();
    emulator::settings().shuffle = emulator::settings().guard = true;
#endif
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream.handle, cudaStreamNonBlocking), cudaSuccess)
        << deviceFailure();
    stream.workspace = &workspace;
  }
  ~DeviceKernels() override {
    EXPECT_EQ(cudaStreamDestroy(stream.handle), cudaSuccess) << deviceFailure();
#ifdef FSDP_CUDA_EMULATOR
    emulator::reset(); // an earlier failure must not fail another test
    emulator::settings() = emulator::Settings();
#endif
  }
  /// Another order of threads, where that can be chosen.
  static void reorder(unsigned seed) {
#ifdef FSDP_CUDA_EMULATOR
    emulator::settings().seed = seed;
#else
    static_cast<void>(seed);
#endif
  }

  StreamWorkspace workspace;
  WorkStream stream;
  std::mt19937 random{1};
};

/// Each element within `relative` of the expected one, `ofMean` of the mean magnitude of those that
/// are not 0, and `absolute`, added up.
inline void expectNear(const Floats &got, const Floats &expected, double relative, double ofMean,
                       const char *what, double absolute = 0) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  double mean = 0, counted = 0;
  for (float value : expected)
    if (std::isfinite(value) && value != 0)
      mean += std::fabs(double(value)), ++counted;
  mean /= std::max(counted, 1.0);
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
