#include "passes/scheduled/StaleReads.h"

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

LogicalResult mlir::fsdp::checkComputedAfter(CarryStoreOp store, Value value,
                                             llvm::function_ref<bool(Value)> isInPlace) {
  Operation *maker = value.getDefiningOp();
  if (!maker || !isInPlace(value) || isa<CarryLoadOp, ViewOp>(maker))
    return success();
  if (isa<FlattenOp, nn::ConcatOp, nn::RearrangeOp>(maker)) { // of parts in their places
    for (Value part : maker->getOperands())
      if (failed(checkComputedAfter(store, part, isInPlace)))
        return failure();
    return success();
  }
  if (maker->isBeforeInBlock(store))
    return maker->emitOpError() << "computes a later value of carried tensor '"
                                << store.getCarried()
                                << "' in its place before an earlier one is stored; compute it "
                                   "after that 'fsdp.carry_store'";
  return success();
}
