#include "runtime/kernels/cuda/ProductTimes.h"

#include <algorithm>
#include <array>
#include <limits>

namespace fsdp::rt {

namespace {

constexpr std::size_t kMeasurements = 5;
/// Calls that are measured together, behind one that keeps the device busy while the host enqueues
/// them: short products would else be measured with the time of a launch.
constexpr int kCalls = 4;

/// The stream, events and buffers of measurements, freed with the object.
struct Resources {
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
  void *result = nullptr, *auxiliary = nullptr, *sum = nullptr, *workspace = nullptr;

  Resources() = default;
  ~Resources() {
    for (void *memory : {result, auxiliary, sum, workspace})
      if (memory)
        cudaFree(memory);
    for (cudaEvent_t event : {begin, end})
      if (event)
        cudaEventDestroy(event);
    if (stream)
      cudaStreamDestroy(stream);
  }
  Resources(const Resources &) = delete;
  Resources &operator=(const Resources &) = delete;

  bool make(const TimedProduct &product, std::size_t workspaceBytes) {
    const auto allocate = [](void *&memory, std::size_t bytes) {
      return bytes == 0 || cudaMalloc(&memory, bytes) == cudaSuccess;
    };
    const bool made = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess &&
                      cudaEventCreate(&begin) == cudaSuccess &&
                      cudaEventCreate(&end) == cudaSuccess &&
                      allocate(result, product.resultBytes) &&
                      allocate(auxiliary, product.hasAuxiliary ? product.resultBytes : 0) &&
                      allocate(sum, product.sumBytes) && allocate(workspace, workspaceBytes);
    if (!made)
      cudaGetLastError(); // is no failure of the program
    return made;
  }
};

} // namespace

std::vector<float> timesOf(const TimedProduct &p,
                           const std::vector<cublasLtMatmulHeuristicResult_t> &algorithms) {
  std::size_t workspaceBytes = 0;
  for (const cublasLtMatmulHeuristicResult_t &algorithm : algorithms)
    workspaceBytes = std::max(workspaceBytes, algorithm.workspaceSize);
  Resources own;
  if (cudaDeviceSynchronize() != cudaSuccess || !own.make(p, workspaceBytes))
    return {};
  if (p.hasAuxiliary && cublasLtMatmulDescSetAttribute(
                            p.desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &own.auxiliary,
                            sizeof(own.auxiliary)) != CUBLAS_STATUS_SUCCESS)
    return {};
  if (p.sumBytes &&
      cublasLtMatmulDescSetAttribute(p.desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &own.sum,
                                     sizeof(own.sum)) != CUBLAS_STATUS_SUCCESS)
    return {};
  // Zeros, as operations on NaNs may take another time.
  for (void *memory : {own.result, own.auxiliary})
    if (memory && cudaMemsetAsync(memory, 0, p.resultBytes, own.stream) != cudaSuccess)
      return {};
  const float alpha = 1;
  const auto call = [&](const cublasLtMatmulHeuristicResult_t &algorithm) {
    return cublasLtMatmul(p.handle, p.desc, &alpha, p.xData, p.x, p.yData, p.y, &p.beta, own.result,
                          p.c, own.result, p.c, &algorithm.algo, own.workspace,
                          algorithm.workspaceSize, own.stream) == CUBLAS_STATUS_SUCCESS;
  };
  std::vector<float> times;
  for (const cublasLtMatmulHeuristicResult_t &algorithm : algorithms) {
    std::array<float, kMeasurements> measured = {};
    bool works = algorithm.state == CUBLAS_STATUS_SUCCESS && call(algorithm);
    for (float &milliseconds : measured) {
      works = works && call(algorithm) && cudaEventRecord(own.begin, own.stream) == cudaSuccess;
      for (int i = 0; i < kCalls; ++i)
        works = works && call(algorithm);
      works = works && cudaEventRecord(own.end, own.stream) == cudaSuccess &&
              cudaEventSynchronize(own.end) == cudaSuccess &&
              cudaEventElapsedTime(&milliseconds, own.begin, own.end) == cudaSuccess;
    }
    auto *const median = measured.begin() + kMeasurements / 2;
    std::nth_element(measured.begin(), median, measured.end());
    times.push_back(works ? *median / kCalls : std::numeric_limits<float>::infinity());
  }
  return times;
}

} // namespace fsdp::rt
