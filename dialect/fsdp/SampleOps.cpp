//===- SampleOps.cpp - which samples of a batch count ---------------------===//

#include "dialect/fsdp/FSDPDialect.h"
#include "dialect/fsdp/Fill.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

LogicalResult fsdp::detail::verifyMicrobatch(Operation *op, std::optional<uint64_t> microbatches,
                                             std::optional<uint64_t> microbatch) {
  if (!microbatch)
    return success();
  const auto number = static_cast<int64_t>(*microbatch);
  if (!microbatches)
    return op->emitOpError() << "is 'at' microbatch " << number
                             << ", but has no 'microbatches'; give both or neither";
  const auto count = static_cast<int64_t>(*microbatches);
  if (number < 0 || number >= count)
    return op->emitOpError() << "is 'at' microbatch " << number << ", expected 0 to " << count - 1
                             << ", as there are " << count << " microbatches";
  return success();
}

LogicalResult SampleCountOp::verify() {
  // (C1)
  if (int64_t batch = getBatch(); batch < 1 || batch > nn::kMaxTensorBytes)
    return emitOpError() << "counts samples of a batch of " << batch << ", expected 1 to 2^48";
  return success();
}

LogicalResult MicrobatchSamplesOp::verify() {
  // (C1)
  if (int64_t batch = getBatch(), parts = getMicrobatches();
      batch < 1 || batch > nn::kMaxTensorBytes || parts < 1 || parts > nn::kMaxTensorBytes)
    return emitOpError() << "counts samples of a batch of " << batch << " in " << parts
                         << " microbatches, expected 1 to 2^48";
  // (C3)
  if (failed(fsdp::detail::verifyMicrobatch(*this, getMicrobatches(), getMicrobatch())))
    return failure();
  // (C2)
  return fsdp::detail::verifyAxes(*this, getAxisNames(getOver()), "is split over");
}

void MicrobatchSamplesOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  // The number of the microbatch, and of samples that count.
  if (!getMicrobatch() || getCounted())
    effects.emplace_back(MemoryEffects::Read::get(), StepStateResource::get());
}

nn::KernelCall SampleCountOp::getKernelCall() { return *this; }

nn::KernelCall MicrobatchSamplesOp::getKernelCall() {
  const int64_t batch = getBatch();
  const int64_t rows = llvm::divideCeil(batch, getMesh(*this).getSize(getAxisNames(getOver())));
  nn::ShapeArgument shape("Microbatches");
  shape.field("part", static_cast<int64_t>(llvm::divideCeil(rows, getMicrobatches())))
      .field("batch", batch)
      .field("rows", rows)
      .rankIndex("index", getOver());
  if (std::optional<uint64_t> microbatch = getMicrobatch())
    shape.field("number", static_cast<int64_t>(*microbatch));
  return {*this, std::move(shape)};
}

nn::KernelCall NextMicrobatchOp::getKernelCall() {
  return {*this, nn::ShapeArgument().field("count", static_cast<int64_t>(getMicrobatches()))};
}

LogicalResult MaskSamplesOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  int64_t dim = getDim(), rows = getRows();
  // (C1)
  if (dim < 0 || dim >= type.getRank())
    return emitOpError() << "masks dimension " << dim << ", expected a dimension below "
                         << type.getRank();
  // (C2)
  if (getShardOf().has_value() != getOver().has_value())
    return emitOpError() << "has one of 'shard_of' and 'over', expected both or neither";
  int64_t local = type.getDimSize(dim), whole = local;
  if (getShardOf()) {
    whole = *getShardOf();
    SmallVector<StringAttr> axes = getAxisNames(*getOver());
    MeshAttr mesh = getMesh(*this);
    for (StringAttr axis : axes)
      if (mesh.getAxisIndex(axis) < 0)
        return emitOpError() << "is split over axis '" << axis.getValue()
                             << "', which the mesh lacks";
    int64_t ranks = mesh.getSize(axes), expected = llvm::divideCeil(whole, ranks);
    if (local != expected)
      return emitOpError() << "has " << local << " elements along dimension " << dim
                           << ", expected " << expected << " (" << whole << " over " << ranks
                           << " ranks)";
  }
  // (C3)
  if (failed(fsdp::detail::verifyFill(*this, getFill(), type.getElementType())))
    return failure();
  // (C1)
  if (rows < 1 || whole % rows != 0)
    return emitOpError() << "has " << rows << " elements per sample along a dimension of " << whole
                         << ", expected a divisor of its size";
  return success();
}

nn::ShardingRule MaskSamplesOp::getShardingRule() { return nn::ShardingRule::elementwise(*this); }
bool MaskSamplesOp::isElementwise() { return true; }
bool MaskSamplesOp::isCheap() { return true; }
