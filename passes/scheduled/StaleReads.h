//===- StaleReads.h - reads of replaced contents ----------------*- C++ -*-===//

#ifndef PASSES_SCHEDULED_STALEREADS_H
#define PASSES_SCHEDULED_STALEREADS_H

#include "dialect/fsdp/FSDPDialect.h"

namespace mlir::fsdp {

/// Fails, emitting on the reader, if an op reads elements [offset, offset + size) of `held`, the
/// contents of a storage or a carried tensor called `name`, or of a view of it, after `update` has
/// replaced them. Null `update`: nothing does.
LogicalResult checkNotReadAfter(Value held, Operation *update, int64_t offset, int64_t size,
                                StringRef name);

/// Fails, emitting on the op that computes it, if `value`, which is stored after `store` into the
/// same carried tensor, or a part of it, is computed in the place of that tensor before `store`.
/// `isInPlace`: whether a value is computed there.
LogicalResult checkComputedAfter(CarryStoreOp store, Value value,
                                 llvm::function_ref<bool(Value)> isInPlace);

} // namespace mlir::fsdp

#endif // PASSES_SCHEDULED_STALEREADS_H
