//===- ConcatInputs.cpp ---------------------------------------------------===//

#include "dialect/nn/ConcatInputs.h"
#include "dialect/nn/NNDialect.h"

using namespace mlir;
using namespace mlir::nn;

/// `parts` one after the other, at `concat` and with its attributes.
static Value concatParts(ConcatOp concat, ArrayRef<Value> parts) {
  const auto dim = static_cast<unsigned>(concat.getDim());
  SmallVector<int64_t> shape(concat.getType().getShape());
  shape[dim] = 0;
  for (Value part : parts)
    shape[dim] += cast<RankedTensorType>(part.getType()).getDimSize(dim);
  OpBuilder builder(concat);
  auto joined = ConcatOp::create(builder, concat.getLoc(), concat.getType().clone(shape), parts,
                                 concat.getDim());
  joined->setDiscardableAttrs(concat->getDiscardableAttrDictionary());
  return joined;
}

void mlir::nn::limitConcatInputs(Block &block, size_t most) {
  for (auto concat : llvm::make_early_inc_range(block.getOps<ConcatOp>())) {
    SmallVector<Value> inputs(concat.getInputs());
    while (inputs.size() > most) {
      SmallVector<Value> joined;
      for (ArrayRef<Value> rest = inputs; !rest.empty();) {
        ArrayRef<Value> parts = rest.take_front(most);
        joined.push_back(concatParts(concat, parts));
        rest = rest.drop_front(parts.size());
      }
      inputs = std::move(joined);
    }
    concat.getInputsMutable().assign(inputs);
  }
}
