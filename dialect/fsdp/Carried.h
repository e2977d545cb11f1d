//===- Carried.h - tensors that one segment stores and another loads ------===//

#ifndef DIALECT_FSDP_CARRIED_H
#define DIALECT_FSDP_CARRIED_H

#include "dialect/fsdp/FSDPDialect.h"

namespace mlir::fsdp {

/// Whether `value` is a carried tensor (`fsdp.carried`) or a view of one.
bool isCarried(Value value);

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_CARRIED_H
