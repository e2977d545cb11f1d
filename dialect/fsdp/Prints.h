//===- Prints.h - what a model reports of its values ------------*- C++ -*-===//

#ifndef DIALECT_FSDP_PRINTS_H
#define DIALECT_FSDP_PRINTS_H

#include "dialect/fsdp/DiscardableAttributes.h"

namespace mlir::fsdp {

/// What stands behind the name of a print or check and a '.' in the log.
namespace printed {
constexpr llvm::StringLiteral kMin = "min", kMax = "max", kMean = "mean", kNan = "nan",
                              kCheck = "check";
constexpr llvm::StringLiteral kAll[] = {kMin, kMax, kMean, kNan};
} // namespace printed

/// On ops that compute what is logged of a value for people, and nothing else: a unit. What else is
/// computed with the value is as if they were not there.
constexpr llvm::StringLiteral kReportAttrName = "fsdp.report";

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_PRINTS_H
