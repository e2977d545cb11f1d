//===- DiscardableAttributes.h - which ops attributes may be on --*- C++ -*-===//
//
// A function that Structure.cpp implements and the dialect calls: the structure of ops includes the
// dialect, which does not include it.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_FSDP_DISCARDABLEATTRIBUTES_H
#define DIALECT_FSDP_DISCARDABLEATTRIBUTES_H

#include "mlir/IR/Operation.h"

namespace mlir::fsdp::detail {

/// Fails unless `attribute`, a structure or the name of the storage that an op gathers or reduces,
/// is allowed on `op`.
LogicalResult verifyStructure(Operation *op, NamedAttribute attribute);

} // namespace mlir::fsdp::detail

#endif // DIALECT_FSDP_DISCARDABLEATTRIBUTES_H
