//===- Calls.h - what the runtime is called with for a launch ---*- C++ -*-===//
//
// The table of callees of the CPU target: for each kind of launch the function of the runtime, what
// it reads and writes in its order, and its further arguments. The emitted program and the record
// of launches both come from it; that the runtime does as it says is what comparing them shows.
//
//===----------------------------------------------------------------------===//

#ifndef CODEGEN_CALLS_H
#define CODEGEN_CALLS_H

#include "codegen/ScheduledProgram.h"

namespace mlir::fsdp {

/// An argument of a call: a buffer, or text.
struct CallArgument {
  CallArgument(Value buffer) : buffer(buffer) {}
  CallArgument(std::string text) : text(std::move(text)) {}
  CallArgument(const char *text) : text(text) {}
  Value buffer;
  std::string text;
};

struct Call {
  /// The function of the runtime; empty for a generated kernel.
  StringRef function;
  /// What stands behind context, stream and name.
  std::vector<CallArgument> arguments;
  /// Buffers in the order in which the runtime lists them.
  SmallVector<Value> reads, writes;
  /// The kind of a collective and its axes.
  StringRef collective;
  ArrayAttr over;
};

/// The C++ expression of a rank's index over `over`, first axis major.
std::string rankIndex(MeshAttr mesh, ArrayAttr over);

/// The call for `launch`. Fails with a diagnostic where the runtime has none for what the body
/// holds.
FailureOr<Call> callFor(const ScheduledProgram &program, LaunchOp launch);

} // namespace mlir::fsdp

#endif // CODEGEN_CALLS_H
