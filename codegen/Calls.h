//===- Calls.h - the runtime calls of launches ------------------*- C++ -*-===//
// For each kind of launch the function of the runtime, its arguments, and its reads and writes,
// which are the same for all targets. The emitted programs use it.
// Comparing their record with that of the IR (codegen/EmitRecord.h) checks that they pass every
// operand of a launch, and that the runtime reads and writes no other.
//
//===----------------------------------------------------------------------===//

#ifndef CODEGEN_CALLS_H
#define CODEGEN_CALLS_H

#include "codegen/ScheduledProgram.h"

namespace mlir::fsdp {

/// An argument of a call.
struct CallArgument {
  Value buffer;     ///< null for a constant
  std::string text; ///< a constant; with a buffer, the function that is applied to its slice
};

struct Call {
  /// How a call uses a generated kernel.
  enum Kernel {
    none,
    alone,    ///< the kernel itself is launched, without a runtime function
    epilogue, ///< of a product: its operands are the first of `reads`, its result is the first of
              ///< `writes`, and the rest belongs to the kernel
    argument, ///< the function has it as argument before its first buffer: an update and its rule
  };

  StringRef function;
  Kernel kernel = alone;
  /// The axes of a collective; null for other calls.
  ArrayAttr over;
  /// In order: constants, then operands, then results. Only constants if a kernel is launched,
  /// alone or as an epilogue.
  std::vector<CallArgument> arguments;
  /// Of a group: its collectives or updates, each as an argument behind the others.
  std::vector<Call> members = {};
  /// Buffers in the order of the runtime function's parameters.
  SmallVector<Value> reads, writes;

  bool hasKernel() const { return kernel != none; }
};

/// The call for `launch`. Fails with a diagnostic if the runtime has no function for the body.
FailureOr<Call> callFor(const ScheduledProgram &program, LaunchOp launch);

} // namespace mlir::fsdp

#endif // CODEGEN_CALLS_H
