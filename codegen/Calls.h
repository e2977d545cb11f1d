//===- Calls.h - the runtime calls of launches ------------------*- C++ -*-===//
// For each kind of launch the function of the runtime, its arguments, and its reads and writes:
// once for all targets, which print it differently (codegen/Target.h). The emitted programs use it.
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
  enum Kind {
    constant, ///< `text`: a shape, a number, an enumerator
    read,     ///< `buffer`
    written,  ///< `buffer`
    noted, ///< the notes of updates, after the state in `buffer`; `text` is the runtime's function
           ///< that returns their place
    storage, ///< the storage that the optimizer updates; `text` is the expression of its table
    kernel,  ///< the generated kernel of the launch
    absent,  ///< no buffer of f32 where other calls have one; `text` is its name
  } kind;
  Value buffer;
  std::string text;
};

/// How a collective splits a dimension (runtime/program/ShardLayout.h), in elements.
struct CallTile {
  int64_t outer, local, inner, total;
  /// "ShardLayout{/*outer=*/1, ...}"
  std::string spell() const;
};

/// What the CUDA target calls in the place of a function of the CPU's.
enum class DeviceCall {
  sameName,
  copyIn,  ///< a copy from pinned memory
  copyOut, ///< copies to what the host reads
  product, ///< a product of the library for matrices
  counted, ///< the same name, with the number of elements of the first buffer that it reads
};

struct Call {
  /// The function's name, which all targets have in common; empty for a generated kernel.
  StringRef function;
  DeviceCall onDevice = DeviceCall::sameName;
  /// In order. A buffer updated in place is here as read and in `writes`; notes are read and
  /// written.
  std::vector<CallArgument> arguments;
  /// Buffers in the order in which the runtime's function takes them.
  SmallVector<Value> reads, writes;
  /// The kind of a collective and its axes.
  StringRef collective;
  ArrayAttr over;
  std::optional<CallTile> tile; ///< also among the arguments
  bool maximum = false;         ///< of an all_reduce: not the sum
  /// A product with a generated epilogue kernel: its operands are the first of `reads`, its result
  /// is the first of `writes`, and the rest belongs to the kernel.
  bool hasEpilogue = false;

  /// The runtime's function takes the launch's kernel as an argument: an update and its rule.
  bool takesKernel = false;

  /// Whether the launch has a generated kernel.
  bool hasKernel() const { return function.empty() || hasEpilogue || takesKernel; }
};

/// The C++ expression of a rank's index over `over`, first axis major.
std::string rankIndex(const ScheduledProgram &program, ArrayAttr over);

/// The call for `launch`. Fails with a diagnostic if the runtime has no function for the body.
FailureOr<Call> callFor(const ScheduledProgram &program, LaunchOp launch);

} // namespace mlir::fsdp

#endif // CODEGEN_CALLS_H
