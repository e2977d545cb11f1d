//===- Names.h - rules of printable names -----------------------*- C++ -*-===//
// The rules are in FSDPDialect.td, "Names".
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_FSDP_NAMES_H
#define DIALECT_FSDP_NAMES_H

#include "dialect/fsdp/FSDPDialect.h"
#include <string>

namespace mlir::fsdp {

/// The fault of a name of a model, "" if it can be printed: "'a\0Ab' cannot be
/// printed, expected ...".
std::string faultOfName(llvm::StringRef name);

/// The same for a name in a model, whose length is limited.
std::string faultOfGivenName(llvm::StringRef name);

/// `name` for a message: unprintable characters are escaped, long names are truncated.
std::string shownName(llvm::StringRef name);

/// Fails unless all names in the attributes of `op` can be printed.
llvm::LogicalResult verifyNames(Operation *op);
/// The same for `container` and every op of the dialect inside it.
llvm::LogicalResult verifyNamesInside(Operation *container);
/// Fails unless the names in the locations of ops can be printed.
llvm::LogicalResult verifyLocationsInside(Operation *container);
/// The names under which `op`, a metric, print or check, logs numbers.
llvm::SmallVector<std::string> getLogged(Operation *op);
/// Fails unless the log can write each metric, print and check of `step` under its names, those in
/// checkpoints included.
llvm::LogicalResult verifyLogged(StepOp step);

/// Fails if two outputs in `container`, a segment, have the same name, or a key that is reserved in
/// the training log.
LogicalResult verifyOutputs(Operation *container);

/// The name that is reserved in safetensors files.
constexpr llvm::StringLiteral reservedTensorName = "__metadata__";

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_NAMES_H
