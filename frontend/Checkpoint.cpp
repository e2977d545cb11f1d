//===- Checkpoint.cpp - parts of a model that backward computes again -----===//

#include "frontend/ModelBuilder.h"

using namespace mlir;
namespace ir = mlir::fsdp;

namespace fsdp::frontend {

void ModelBuilder::requireOutside(const std::string &what, Where where) {
  if (openRegion())
    throw ModelError(where, what + " is in a manual region, which contains the computation of one "
                                   "rank; move it outside");
  if (!isOutside())
    throw ModelError(
        where, what + " is in a checkpoint, whose operations are computed twice; move it outside");
}

bool ModelBuilder::isVisible(const ModelValue &value) {
  Block *block = valueOf(value).getParentBlock();
  return block == builder.getInsertionBlock() ||
         (block == &step.getBody().front() && !openRegion());
}

void ModelBuilder::requireVisible(const std::string &what, const ModelValue &value, Where where) {
  if (isVisible(value))
    return;
  const std::string of = what + ": '" + value.label + "' was computed ";
  Operation *around = valueOf(value).getParentBlock()->getParentOp();
  if (openRegion() && !isa<ir::ManualOp>(around))
    throw ModelError(where, of + "outside of the manual region; pass it as an input of the region");
  throw ModelError(where, of + "in a " +
                              (isa<ir::ManualOp>(around) ? "manual region" : "checkpoint") +
                              " that does not return it; return it from the function");
}

std::vector<ModelValue>
ModelBuilder::checkpoint(llvm::function_ref<std::vector<ModelValue>()> function,
                         ir::CheckpointPolicy policy, Where where) {
  requireOutside("a checkpoint", where);
  OpBuilder::InsertionGuard guard(builder);
  // The results are known after the function has run.
  auto open = ir::CheckpointOp::create(builder, location("checkpoint", where), TypeRange(), policy);
  builder.setInsertionPointToStart(&open.getBody().emplaceBlock());
  std::vector<ModelValue> tensors = function();
  llvm::SmallVector<Value> values;
  for (const ModelValue &tensor : tensors) {
    if (!tensor.model)
      throw ModelError(where, "the checkpoint returns a tensor that holds no value");
    if (tensor.model != this)
      throw ModelError(where, "the checkpoint returns '" + tensor.label + "' of another model");
    requireVisible("the checkpoint", tensor, where);
    values.push_back(valueOf(tensor));
  }
  if (values.empty())
    throw ModelError(where, "the checkpoint returns no tensor; return the tensors used outside");
  ir::YieldOp::create(builder, open.getLoc(), values);
  builder.setInsertionPoint(open);
  auto checkpoint =
      ir::CheckpointOp::create(builder, open.getLoc(), ValueRange(values).getTypes(), policy);
  checkpoint.getBody().takeBody(open.getBody());
  open.erase();
  for (auto [tensor, result] : llvm::zip_equal(tensors, checkpoint.getResults()))
    tensor = wrap(result, tensor.label, tensor.origin);
  return tensors;
}

} // namespace fsdp::frontend
