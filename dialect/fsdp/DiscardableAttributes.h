//===- DiscardableAttributes.h - which ops attributes may be on --*- C++ -*-===//
//
// Functions that the components of discardable attributes implement and the dialect calls: the
// components include the dialect, which includes none of them.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_FSDP_DISCARDABLEATTRIBUTES_H
#define DIALECT_FSDP_DISCARDABLEATTRIBUTES_H

#include "mlir/IR/Operation.h"

namespace mlir::fsdp {

constexpr StringLiteral kDeferredAttrName = "fsdp.deferred", kZeroedAttrName = "fsdp.zeroed",
                        kDrainAttrName = "fsdp.drain";
/// On the `fsdp.metric` or `fsdp.output` of a check, an i64: its place among the checks of its
/// step.
constexpr StringLiteral kCheckAttrName = "fsdp.check";
/// On a `fsdp.send` and on the `fsdp.receive` of the same value, an i64: its number among the
/// values that ranks send one another in the segment. Values of one type that have changed their
/// order differ in it.
constexpr StringLiteral kMessageAttrName = "fsdp.message";

namespace detail {
/// Structure.cpp: fails unless `attribute`, a structure or the name of the storage that an op
/// gathers or reduces, is allowed on `op`.
LogicalResult verifyStructure(Operation *op, NamedAttribute attribute);
/// Deferred.cpp: fails unless `attribute`, one of those above, is allowed on `op`.
LogicalResult verifyDeferred(Operation *op, NamedAttribute attribute);
/// Prints.cpp: fails unless `attribute`, called `fsdp.check`, is allowed on `op`.
LogicalResult verifyCheckPlace(Operation *op, Attribute attribute);
/// CollectiveOps.cpp: fails unless `attribute`, called `fsdp.message`, is allowed on `op`.
LogicalResult verifyMessageNumber(Operation *op, Attribute attribute);
} // namespace detail

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_DISCARDABLEATTRIBUTES_H
