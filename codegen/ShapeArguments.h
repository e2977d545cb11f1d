//===- ShapeArguments.h - size arguments of runtime calls -------*- C++ -*-===//

#ifndef CODEGEN_SHAPEARGUMENTS_H
#define CODEGEN_SHAPEARGUMENTS_H

#include "codegen/ScheduledProgram.h"
#include <string>

namespace mlir::fsdp {

/// The C++ expression of a rank's index over `over`, first axis major.
std::string rankIndex(const ScheduledProgram &program, ArrayAttr over);

/// `shape` as C++: "SoftmaxRows{/*rows=*/8, /*width=*/10}".
std::string spell(const ScheduledProgram &program, const nn::ShapeArgument &shape);

} // namespace mlir::fsdp

#endif // CODEGEN_SHAPEARGUMENTS_H
