//===- LaunchForms.h - launches that are alike ------------------*- C++ -*-===//
// The microbatches of a step and the layers of a model repeat launches that differ in their
// buffers alone. What follows from the other properties is found once for each form.
//
//===----------------------------------------------------------------------===//

#ifndef CODEGEN_LAUNCHFORMS_H
#define CODEGEN_LAUNCHFORMS_H

#include "codegen/Calls.h"
#include "dialect/fsdp/LaunchBodies.h"

namespace mlir::fsdp {

/// Launches of one segment with equal bodies on one stream, whose buffers have equal types and of
/// which the same ones are equal.
struct LaunchForm {
  mutable LaunchOp first; ///< its accessors are not const
  Call call;              ///< of `first`

  /// The place of `buffer`, which `first` has, among its buffers: the others of this form have
  /// theirs in the same place.
  unsigned numberOf(Value buffer) const;
};

/// Launches of one form are alike.
struct EqualForms {
  static size_t hash(LaunchOp launch);
  static bool areAlike(LaunchOp one, LaunchOp other);
};

/// The forms of the launches of a program.
using LaunchForms = PerLaunchClass<LaunchForm, EqualForms>;

} // namespace mlir::fsdp

#endif // CODEGEN_LAUNCHFORMS_H
