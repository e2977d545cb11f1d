//===- Names.h - which names can be printed ---------------------*- C++ -*-===//
//
// The rules stand in FSDPDialect.td, "Names".
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_FSDP_NAMES_H
#define DIALECT_FSDP_NAMES_H

#include "dialect/fsdp/FSDPDialect.h"
#include <string>

namespace mlir::fsdp {

/// What is wrong with a name of a model, "" for one that can be printed: "'a\0Ab' cannot be
/// printed, expected ...".
std::string faultOfName(llvm::StringRef name);

/// The same for a name that a model gives, which has a limit.
std::string faultOfGivenName(llvm::StringRef name);

/// `name` for a message: what cannot be printed is escaped, the end of a long one left out.
std::string shownName(llvm::StringRef name);

/// Fails unless all names in the attributes of `op` can be printed.
llvm::LogicalResult verifyNames(Operation *op);
/// The same for `container` and every op of the dialect inside it.
llvm::LogicalResult verifyNamesInside(Operation *container);
/// Fails unless the names that locations give to ops can be printed.
llvm::LogicalResult verifyLocationsInside(Operation *container);
/// Fails unless the log can write `metric` under its name.
llvm::LogicalResult verifyMetric(MetricOp metric);

/// Fails where two outputs in `container`, a segment, have one name, or one that the training log
/// writes itself.
LogicalResult verifyOutputs(Operation *container);

/// What a safetensors file keeps for itself.
constexpr llvm::StringLiteral reservedTensorName = "__metadata__";

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_NAMES_H
