//===- Matmul.h - matrix products through cuBLASLt ---------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_KERNELS_CUDA_MATMUL_H
#define FSDP_RUNTIME_KERNELS_CUDA_MATMUL_H

#include "runtime/device/cuda/StreamWorkspace.h"
#include "runtime/kernels/cuda/ProductEpilogue.h"
#include "runtime/program/ArenaSpan.h"
#include "runtime/program/KernelArguments.h"

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <memory>

namespace fsdp::rt {

class ProductChooser;

/// Operands of the epilogue that cuBLASLt computes with a product: v = a b + bias + residual, of
/// which `sum` gets v and c the function (GELU with tanh), or c gets a b times the derivative of
/// GELU at `argument`. All are of the type of c; residual, sum and argument have the layout of c.
/// Null: none.
struct EpilogueOperands {
  const void *bias = nullptr, *residual = nullptr;
  ProductFunction function = ProductFunction::none;
  void *sum = nullptr; ///< only of `gelu`
  const void *argument = nullptr;
  /// Gets, in the type of c, the sum of the k rows of b (`sumsRight`), or of the columns of a;
  /// alone among these.
  void *operandSum = nullptr;
  bool sumsRight = false;

  bool isNone() const {
    return !bias && !residual && function == ProductFunction::none && !operandSum;
  }
  /// The matrix besides c that the function writes or reads.
  const void *auxiliary() const { return sum ? sum : argument; }
};

/// One rank's cuBLASLt: its handle and the prepared products. Used by the rank's host thread alone.
/// The preparation of a product depends on its sizes, strides, types and addresses' alignment,
/// which are the same on every rank; so the algorithms are, too.
class Blas {
public:
  /// No algorithm may request more workspace than this, in bytes.
  static constexpr std::size_t kMaxWorkspace = std::size_t(32) << 20;

  /// `chooser` chooses among algorithms; null: the first that cuBLASLt proposes. It outlives the
  /// object.
  explicit Blas(ProductChooser *chooser = nullptr);
  ~Blas();
  Blas(const Blas &) = delete;
  Blas &operator=(const Blas &) = delete;

  /// How many products have been prepared.
  std::size_t plans() const;

  /// `in` is the type of a and b, `out` that of c: CUDA_R_32F or CUDA_R_16BF. See matmul.
  cublasStatus_t multiply(const Gemm &product, cudaDataType_t in, cudaDataType_t out, const void *a,
                          const void *b, void *c, WorkStream stream,
                          const EpilogueOperands &epilogue = {});
  /// False if the product with its epilogue is no single call: cuBLASLt has no algorithm for it, c
  /// is not one row-major matrix, or the environment has FSDP_EPILOGUES=0. Depends on addresses by
  /// their alignment only.
  bool takes(const Gemm &product, cudaDataType_t in, cudaDataType_t out, const void *a,
             const void *b, const void *c, const EpilogueOperands &epilogue);

private:
  struct State;
  std::unique_ptr<State> state;
};

/// The type of elements as cuBLASLt calls it.
template <class T> struct CudaDataType;
template <> struct CudaDataType<float> {
  static constexpr cudaDataType_t value = CUDA_R_32F;
};
template <> struct CudaDataType<bf16> {
  static constexpr cudaDataType_t value = CUDA_R_16BF;
};

/// Enqueues a product; `c` is read as well where beta is 1. Sums are in f32, never in TF32, and are
/// rounded once, to the type of c. Bitwise reproducible: partial sums, where an algorithm has them,
/// are f32 and added in a fixed order. Algorithms use the stream's scratch memory, of which the
/// first call of a kind may ask for more. Errors: CUBLAS_STATUS_NOT_SUPPORTED for strides that Gemm
/// does not allow, and where cuBLASLt knows no algorithm.
inline cublasStatus_t matmul(Blas &blas, const Gemm &product, const float *a, const float *b,
                             float *c, WorkStream stream) {
  return blas.multiply(product, CUDA_R_32F, CUDA_R_32F, a, b, c, stream);
}
inline cublasStatus_t matmul(Blas &blas, const Gemm &product, const bf16 *a, const bf16 *b, bf16 *c,
                             WorkStream stream) {
  return blas.multiply(product, CUDA_R_16BF, CUDA_R_16BF, a, b, c, stream);
}
inline cublasStatus_t matmul(Blas &blas, const Gemm &product, const bf16 *a, const bf16 *b,
                             float *c, WorkStream stream) {
  return blas.multiply(product, CUDA_R_16BF, CUDA_R_32F, a, b, c, stream);
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_CUDA_MATMUL_H
