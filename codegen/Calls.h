//===- Calls.h - what a launch calls ----------------------------*- C++ -*-===//
//
// For each kind of launch the function of the runtime, its arguments, and what it reads and writes:
// stated once for all targets, which differ in how they spell it (codegen/Target.h). The emitted
// programs come from it. That they pass every operand of a launch, and that the runtime reads and
// writes no other, is what comparing their record with that of the IR shows (codegen/EmitRecord.h).
//
//===----------------------------------------------------------------------===//

#ifndef CODEGEN_CALLS_H
#define CODEGEN_CALLS_H

#include "codegen/ScheduledProgram.h"

namespace mlir::fsdp {

/// An argument of a call.
struct CallArgument {
  enum Kind {
    constant, ///< `text`: a shape, a number, an enumerator
    read,     ///< `buffer`
    written,  ///< `buffer`
    noted,    ///< what updates note, behind the state in `buffer`; `text` is the runtime's function
              ///< that gives its place
    storage,  ///< what the optimizer updates; `text` is the expression of its table
    absent,   ///< no buffer where other calls have one; `text` is its name
  } kind;
  Value buffer;
  std::string text;
};

/// How a collective cuts a dimension (runtime/program/ShardLayout.h), in elements.
struct CallTile {
  int64_t outer, local, inner, total;
  /// "ShardLayout{/*outer=*/1, ...}"
  std::string spell() const;
};

struct Call {
  /// The function's name, which all targets have in common; empty for a generated kernel.
  StringRef function;
  /// In order. What is updated in place stands here as read and in `writes`; what is noted is read
  /// and written.
  std::vector<CallArgument> arguments;
  /// Buffers in the order in which the runtime's function takes them.
  SmallVector<Value> reads, writes;
  /// The kind of a collective and its axes.
  StringRef collective;
  ArrayAttr over;
  std::optional<CallTile> tile; ///< also among the arguments
  bool maximum = false;         ///< of an all_reduce: not the sum
  /// A product that a generated kernel goes on with: the sides are the first of `reads`, its place
  /// is the first of `writes`, and the rest is the kernel's.
  bool continued = false;

  /// Whether the launch calls a generated kernel.
  bool callsKernel() const { return function.empty() || continued; }
};

/// The C++ expression of a rank's index over `over`, first axis major.
std::string rankIndex(const ScheduledProgram &program, ArrayAttr over);

/// The call for `launch`. Fails with a diagnostic where the runtime has none for what the body
/// holds.
FailureOr<Call> callFor(const ScheduledProgram &program, LaunchOp launch);

} // namespace mlir::fsdp

#endif // CODEGEN_CALLS_H
