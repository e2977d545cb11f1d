//===- Prints.h - prints and checks of a model's values ---------*- C++ -*-===//

#ifndef DIALECT_FSDP_PRINTS_H
#define DIALECT_FSDP_PRINTS_H

#include "llvm/ADT/StringRef.h"

namespace mlir::fsdp {

/// The suffix of a print or check in the log, after its name and a '.'.
namespace printed {
constexpr llvm::StringLiteral kMin = "min", kMax = "max", kMean = "mean", kNan = "nan",
                              kCheck = "check";
constexpr llvm::StringLiteral kAll[] = {kMin, kMax, kMean, kNan};
} // namespace printed

/// A unit attribute of ops that compute only logged statistics of a value. They have no effect on
/// other computations with the value.
constexpr llvm::StringLiteral kReportAttrName = "fsdp.report";

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_PRINTS_H
