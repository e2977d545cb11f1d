//===- ProductTimes.h - times of the algorithms of a product ----------------===//
#ifndef FSDP_RUNTIME_KERNELS_CUDA_PRODUCTTIMES_H
#define FSDP_RUNTIME_KERNELS_CUDA_PRODUCTTIMES_H

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <vector>

namespace fsdp::rt {

/// A call of cuBLASLt whose result is not kept.
struct TimedProduct {
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t x = nullptr, y = nullptr, c = nullptr;
  const void *xData = nullptr, *yData = nullptr; ///< read where they are
  std::size_t resultBytes = 0;                   ///< of c
  float beta = 0;
  bool hasAuxiliary = false; ///< the epilogue reads or writes a matrix like c
  std::size_t sumBytes = 0;  ///< of the sum of an operand, which the epilogue writes
};

/// The median time of each algorithm, in milliseconds, after one call that is not measured. The
/// device is idle before and after. Results go to memory that is allocated for the while; empty if
/// there is not enough. An algorithm that fails takes forever.
std::vector<float> timesOf(const TimedProduct &product,
                           const std::vector<cublasLtMatmulHeuristicResult_t> &algorithms);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_CUDA_PRODUCTTIMES_H
