//===- Functions.h - a segment split into functions -------------*- C++ -*-===//

#ifndef CODEGEN_FUNCTIONS_H
#define CODEGEN_FUNCTIONS_H

#include "codegen/ScheduledProgram.h"

namespace mlir::fsdp {

/// The actions [begin, end) of a timeline, to be one function.
struct FunctionRange {
  StringAttr unit;  ///< null if of no unit
  std::string part; ///< "forward"; empty until a launch determines it
  size_t begin = 0, end = 0;

  /// "fc1.forward"
  std::string name() const { return unit ? unit.str() + "." + part : part; }
};

/// Splits the actions where the unit or direction of compute changes, and after at most `limit`
/// actions: compilers are slow on long functions. Order is kept.
std::vector<FunctionRange> cutIntoFunctions(const ScheduledProgram &program,
                                            const Timeline &timeline, size_t limit = 120);

} // namespace mlir::fsdp

#endif // CODEGEN_FUNCTIONS_H
