//===- StaleReads.h - reads of replaced contents ----------------*- C++ -*-===//

#ifndef PASSES_SCHEDULED_STALEREADS_H
#define PASSES_SCHEDULED_STALEREADS_H

#include "mlir/IR/Operation.h"

namespace mlir::fsdp {

/// Fails, emitting on the reader, if an op reads elements [offset, offset + size) of `held`, the
/// contents of a storage or a carried tensor called `name`, or of a view of it, after `update` has
/// replaced them. Null `update`: nothing does.
LogicalResult checkNotReadAfter(Value held, Operation *update, int64_t offset, int64_t size,
                                StringRef name);

} // namespace mlir::fsdp

#endif // PASSES_SCHEDULED_STALEREADS_H
