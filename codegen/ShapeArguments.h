//===- ShapeArguments.h - the sizes that the runtime is told ----*- C++ -*-===//

#ifndef CODEGEN_SHAPEARGUMENTS_H
#define CODEGEN_SHAPEARGUMENTS_H

#include "dialect/fsdp/FSDPDialect.h"
#include <string>

namespace mlir::fsdp {

/// `shape` as C++: "SoftmaxRows{/*rows=*/8, /*width=*/10}".
std::string spell(const nn::ShapeArgument &shape, MLIRContext *context);

/// What the runtime's dropout is told of `op`; `first` is the C++ expression of the index in the
/// whole tensor of this rank's first element.
std::string dropoutMask(DropoutOp op, std::string first);

} // namespace mlir::fsdp

#endif // CODEGEN_SHAPEARGUMENTS_H
