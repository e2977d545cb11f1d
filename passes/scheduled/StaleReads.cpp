#include "passes/scheduled/StaleReads.h"

#include "dialect/fsdp/FSDPDialect.h"

using namespace mlir;
using namespace mlir::fsdp;

LogicalResult mlir::fsdp::checkNotReadAfter(Value held, Operation *update, int64_t offset,
                                            int64_t size, StringRef name) {
  if (!update)
    return success();
  SmallVector<std::pair<Value, int64_t>> aliases{{held, 0}}; // with their first elements
  while (!aliases.empty()) {
    auto [alias, first] = aliases.pop_back_val();
    const int64_t end = first + cast<RankedTensorType>(alias.getType()).getNumElements();
    for (Operation *user : alias.getUsers()) {
      if (auto view = dyn_cast<ViewOp>(user))
        aliases.emplace_back(view.getResult(), first + static_cast<int64_t>(view.getOffset()));
      else if (first < offset + size && offset < end && !isa<CarryStoreOp>(user) &&
               update->isBeforeInBlock(user))
        return user->emitOpError() << "reads the value of storage '" << name
                                   << "' from before its update; load it after the update";
    }
  }
  return success();
}
