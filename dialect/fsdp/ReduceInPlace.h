//===- ReduceInPlace.h - reductions that replace their operand --*- C++ -*-===//

#ifndef DIALECT_FSDP_REDUCEINPLACE_H
#define DIALECT_FSDP_REDUCEINPLACE_H

#include "dialect/fsdp/FSDPDialect.h"

namespace mlir::fsdp {

/// The operand whose bytes the collective that produces `result` may overwrite (see
/// KernelOpInterface) and that nothing else uses; null if there is none.
Value findReducedInPlace(Value result);

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_REDUCEINPLACE_H
