//===- ShapeArguments.h - the sizes that the runtime is told ----*- C++ -*-===//

#ifndef CODEGEN_SHAPEARGUMENTS_H
#define CODEGEN_SHAPEARGUMENTS_H

#include "mlir/IR/Operation.h"
#include <string>

namespace mlir::fsdp {

/// The shape argument of the runtime's function for `op`, an op of `nn` that has one of its own and
/// no other argument but buffers, as C++: "SoftmaxRows{/*rows=*/8, /*width=*/10}".
std::string shapeArgument(Operation *op);

} // namespace mlir::fsdp

#endif // CODEGEN_SHAPEARGUMENTS_H
