//===- ReduceInPlace.h - reductions that replace their operand --*- C++ -*-===//

#ifndef DIALECT_FSDP_REDUCEINPLACE_H
#define DIALECT_FSDP_REDUCEINPLACE_H

#include "dialect/fsdp/FSDPDialect.h"

namespace mlir::fsdp {

/// The operand of the collective that leaves `result` whose bytes that may take (KernelOpInterface
/// says which), and which nothing else uses; null where there is none.
Value findReducedInPlace(Value result);

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_REDUCEINPLACE_H
