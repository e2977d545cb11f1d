//===- CudnnAttention.h - attention by cuDNN on one device -------*- C++ -*-===//
#ifndef FSDP_RUNTIME_KERNELS_CUDA_CUDNNATTENTION_H
#define FSDP_RUNTIME_KERNELS_CUDA_CUDNNATTENTION_H

#include "runtime/device/cuda/StreamWorkspace.h"
#include "runtime/numerics/BFloat16.h"
#include "runtime/program/KernelArguments.h"

#include <cstddef>
#include <memory>
#include <string>

namespace fsdp::rt {

/// The operands of attention in bf16, and of its gradient; null: not of this one.
struct AttentionOperands {
  const bf16 *q = nullptr, *k = nullptr, *v = nullptr;
  const bf16 *out = nullptr, *dOut = nullptr;
  const float *logSumExp = nullptr;
  bf16 *dQ = nullptr, *dK = nullptr, *dV = nullptr;
};

/// One rank's cuDNN: its handle, and the kernels prepared. Used by the rank's host thread alone.
/// See [Note: attention by cuDNN] (CudnnGraph.h).
class CudnnAttention {
public:
  /// On CUDA's device `device`, of compute capability `major`.`minor`. Errors: no library, one that
  /// is too old, another capability than 9.0.
  CudnnAttention(int device, int major, int minor);
  ~CudnnAttention();
  CudnnAttention(const CudnnAttention &) = delete;
  CudnnAttention &operator=(const CudnnAttention &) = delete;

  /// "9.28.0"
  std::string version() const;
  /// Prepares the kernel of a shape. Returns the bytes of scratch memory that it needs. Errors: a
  /// shape that cuDNN does not compute.
  std::size_t prepare(const AttentionShape &shape, bool isGradient);
  /// Enqueue attention, as the rows of Kernels.def for bf16 say. The stream has a workspace.
  /// Errors: as prepare(), those of the call.
  cudaError_t forward(const AttentionShape &shape, const bf16 *q, const bf16 *k, const bf16 *v,
                      bf16 *out, float *logSumExp, WorkStream stream);
  cudaError_t gradient(const AttentionShape &shape, const AttentionOperands &operands,
                       WorkStream stream);

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_CUDA_CUDNNATTENTION_H
