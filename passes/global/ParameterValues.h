//===- ParameterValues.h - values that need only parameters -----*- C++ -*-===//

#ifndef PASSES_GLOBAL_PARAMETERVALUES_H
#define PASSES_GLOBAL_PARAMETERVALUES_H

#include "dialect/fsdp/FSDPDialect.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::fsdp {

/// The values of `body`, the block of a step, that depend on parameters and constants only, at
/// least one parameter among them, and are cheap to compute again: reads, casts, broadcasts,
/// elementwise arithmetic, and the gathers of manual regions, as reads are gathers. They are
/// computed where they are used, in backward and in each stage of a pipeline.
DenseSet<Value> collectParameterValues(Block &body);

/// Whether all results of `op` are among `values`.
bool yieldsOnly(Operation &op, const DenseSet<Value> &values);

} // namespace mlir::fsdp

#endif // PASSES_GLOBAL_PARAMETERVALUES_H
