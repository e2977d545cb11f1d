//===- LaunchForms.h - launches that are alike ------------------*- C++ -*-===//
// The microbatches of a step and the layers of a model repeat launches that differ in their
// buffers alone. What follows from the other properties is found once for each form.
//
//===----------------------------------------------------------------------===//

#ifndef CODEGEN_LAUNCHFORMS_H
#define CODEGEN_LAUNCHFORMS_H

#include "codegen/Calls.h"
#include "dialect/fsdp/LaunchBodies.h"
#include <deque>
#include <unordered_map>

namespace mlir::fsdp {

/// The buffers among the operands of `launch`: ins, outs, then the step state.
SmallVector<Value, 16> getBuffers(LaunchOp launch);

/// Launches of one segment with equal bodies on one stream, whose buffers have equal types and of
/// which the same ones are equal.
struct LaunchForm {
  mutable LaunchOp first; ///< its accessors are not const
  Call call;              ///< of `first`

  /// The place of `buffer`, which `first` has, among its buffers: the others of this form have
  /// theirs in the same place.
  unsigned numberOf(Value buffer) const;
};

/// The forms of the launches of a program.
class LaunchForms {
public:
  /// Adds the form of `launch` if no launch before has it. Fails with a diagnostic if the runtime
  /// has no function for the body. The reference remains valid.
  FailureOr<const LaunchForm *> find(const ScheduledProgram &program, LaunchOp launch);

private:
  std::deque<LaunchForm> forms;
  std::unordered_map<size_t, SmallVector<const LaunchForm *, 1>> byHash;
};

} // namespace mlir::fsdp

#endif // CODEGEN_LAUNCHFORMS_H
