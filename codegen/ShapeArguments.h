//===- ShapeArguments.h - size arguments of runtime calls -------*- C++ -*-===//

#ifndef CODEGEN_SHAPEARGUMENTS_H
#define CODEGEN_SHAPEARGUMENTS_H

#include "dialect/fsdp/FSDPDialect.h"
#include <string>

namespace mlir::fsdp {

/// `shape` as C++: "SoftmaxRows{/*rows=*/8, /*width=*/10}".
std::string spell(const nn::ShapeArgument &shape, MLIRContext *context);

/// The arguments of the runtime's dropout for `op`; `first` is the C++ expression of the index in
/// the whole tensor of this rank's first element.
std::string dropoutMask(DropoutOp op, std::string first);

} // namespace mlir::fsdp

#endif // CODEGEN_SHAPEARGUMENTS_H
