//===- DeviceBench.h - times launches of a device ----------------*- C++ -*-===//
//
// A line of JSON for each measurement: model, group, name, shape, milliseconds of a launch, the
// minimum of bytes that it moves and its multiplications and additions, or its error.
// bench/gpu/bench.py prints them as a table.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_BENCH_GPU_DEVICEBENCH_H
#define FSDP_BENCH_GPU_DEVICEBENCH_H

#include "runtime/kernels/cuda/Kernels.h"
#include "runtime/kernels/cuda/Matmul.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <type_traits>
#include <vector>

namespace fsdp::rt {

/// Extents of a model's launches. `tiny` ones are for tests.
struct Sizes {
  std::string model;
  std::uint32_t batch, context, width, heads, groups, ffn, classes;
  std::size_t unit; ///< parameters of a block

  std::size_t rows() const { return std::size_t(batch) * context; }
};

template <class T> constexpr const char *typeName = sizeof(T) == 2 ? "bf16" : "f32";

class DeviceBench {
public:
  /// Lists what it would measure where `list`, and measures nothing. `milliseconds`: of a round of
  /// launches.
  DeviceBench(bool list, double milliseconds) : list(list), milliseconds(milliseconds) {
    if (list)
      return;
    note(cudaStreamCreateWithFlags(&stream_.handle, cudaStreamNonBlocking));
    note(cudaEventCreate(&begin));
    note(cudaEventCreate(&end));
    stream_.workspace = &workspace;
  }
  DeviceBench(const DeviceBench &) = delete;

  bool lists() const { return list; }
  bool failed() const { return anyFailed; }
  WorkStream stream() const { return stream_; }
  Blas &blas() { return blas_; }

  /// The model and the group of the next measurements.
  void section(const std::string &model, const std::string &group) {
    this->model = model, this->group = group;
  }

  /// Memory of the device for `count` elements until release(), filled with numbers between -1 and
  /// 1 (indices: with 0); null after an error, which the next measurement reports.
  template <class T> T *take(std::size_t count) {
    if (list)
      return nullptr;
    void *memory = nullptr;
    const std::size_t bytes = std::max<std::size_t>(count * sizeof(T), 1);
    if (!note(cudaMalloc(&memory, bytes)))
      return nullptr;
    taken.push_back(memory);
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, bf16>) {
      const std::vector<T> values = numbers<T>(std::min(count, std::size_t(1) << 22));
      for (std::size_t from = 0; from < count; from += values.size())
        if (!note(cudaMemcpy(static_cast<T *>(memory) + from, values.data(),
                             std::min(values.size(), count - from) * sizeof(T),
                             cudaMemcpyHostToDevice)))
          return nullptr;
    } else {
      note(cudaMemset(memory, 0, bytes));
    }
    note(cudaDeviceSynchronize());
    return static_cast<T *>(memory);
  }
  /// Frees the memory of take().
  void release() {
    for (void *memory : taken)
      cudaFree(memory);
    taken.clear();
  }

  /// Times `call()`, which enqueues on stream(): the best mean of three rounds of launches, after
  /// one that warms up. `bytes` are those that it must read and write once.
  template <class Call>
  void measure(const std::string &name, const char *type, const std::string &shape, double bytes,
               double flops, Call call) {
    std::printf("{\"model\": \"%s\", \"group\": \"%s\", \"name\": \"%s\", \"type\": \"%s\", "
                "\"shape\": \"%s\", \"bytes\": %.0f, \"flops\": %.0f",
                model.c_str(), group.c_str(), name.c_str(), type, shape.c_str(), bytes, flops);
    if (!list) {
      const double milliseconds = error.empty() ? timeOf(call) : 0;
      if (error.empty())
        std::printf(", \"ms\": %.6f", milliseconds);
      else
        std::printf(", \"error\": \"%s\"", error.c_str());
      anyFailed |= !error.empty();
      error.clear();
    }
    std::printf("}\n");
    std::fflush(stdout);
  }

private:
  bool note(cudaError_t status) {
    if (status != cudaSuccess && error.empty())
      for (const char *c = cudaGetErrorString(status); *c; ++c)
        error += *c == '"' || *c == '\\' || *c < ' ' ? '\'' : *c;
    return status == cudaSuccess;
  }
  bool note(cublasStatus_t status) {
    if (status != CUBLAS_STATUS_SUCCESS && error.empty())
      error = "cuBLASLt status " + std::to_string(static_cast<int>(status));
    return status == CUBLAS_STATUS_SUCCESS;
  }

  template <class T> static std::vector<T> numbers(std::size_t count) {
    std::vector<T> values(count);
    std::uint32_t state = 1;
    for (T &value : values) {
      state = state * 1664525u + 1013904223u;
      value = T(float(static_cast<int>(state >> 8) - (1 << 23)) / float(1 << 23));
    }
    return values;
  }

  /// Milliseconds of `count` launches.
  template <class Call> double round(int count, Call call) {
    note(cudaEventRecord(begin, stream_.handle));
    for (int i = 0; i < count && error.empty(); ++i)
      note(call());
    note(cudaEventRecord(end, stream_.handle));
    float milliseconds = 0;
    if (error.empty() && note(cudaEventSynchronize(end)))
      note(cudaEventElapsedTime(&milliseconds, begin, end));
    return static_cast<double>(milliseconds);
  }
  template <class Call> double timeOf(Call call) {
    round(1, call);
    const double once = std::max(round(1, call), 1e-3);
    const int count = static_cast<int>(std::min(std::max(milliseconds / once, 1.0), 200.0));
    double best = 1e30;
    for (int i = 0; i < 3 && error.empty(); ++i)
      best = std::min(best, round(count, call) / count);
    return best;
  }

  bool list, anyFailed = false;
  double milliseconds;
  std::string model, group, error;
  std::vector<void *> taken;
  StreamWorkspace workspace;
  WorkStream stream_;
  cudaEvent_t begin = nullptr, end = nullptr;
  Blas blas_;
};

/// "8192 x 768"
template <class... Extents> std::string by(std::size_t first, Extents... others) {
  std::string text = std::to_string(first);
  ((text += " x " + std::to_string(std::size_t(others))), ...);
  return text;
}

void benchKernels(DeviceBench &bench, const Sizes &sizes);
void benchProducts(DeviceBench &bench, const Sizes &sizes);

} // namespace fsdp::rt

#endif // FSDP_BENCH_GPU_DEVICEBENCH_H
