//===- Draws.h - random numbers that are functions --------------*- C++ -*-===//
//
// Counter-based random numbers (Philox4x32-10; Salmon, Moraes, Dror, Shaw: "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011), equal to those of the runtime of generated programs. This
// is a copy, as neither may include the other.
//
//===----------------------------------------------------------------------===//

#ifndef INTERPRETER_DRAWS_H
#define INTERPRETER_DRAWS_H

#include "dialect/fsdp/FSDPDialect.h"
#include "interpreter/Tensor.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <array>

namespace mlir::fsdp::interpreter {

/// The numbers of one name in one step. Initial values are those of step 0; steps count from 1.
class Draws {
public:
  Draws(uint64_t seed, StringRef name, uint64_t step = 0);

  /// Uniform in [0, 1), a multiple of 2^-24.
  float uniform(uint64_t index) const;
  /// Of mean 0 and standard deviation 1.
  float normal(uint64_t index) const;

private:
  std::array<uint32_t, 4> words(uint64_t group) const;

  uint64_t key, step;
};

/// The result of `op` on `input` with these draws, on the rank whose index over some axes is given
/// by `rankIndex`, in microbatch number `microbatch` of the step.
Tensor drop(DropoutOp op, Numerics numerics, const Draws &draws, const Tensor &input,
            int64_t microbatch, llvm::function_ref<int64_t(ArrayRef<StringAttr>)> rankIndex);

} // namespace mlir::fsdp::interpreter

#endif // INTERPRETER_DRAWS_H
