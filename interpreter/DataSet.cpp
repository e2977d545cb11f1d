//===- DataSet.cpp - samples and the order in which steps take them -------===//

#include "interpreter/DataSet.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

LogicalResult DataSet::add(Location location, StringRef name, const Tensor &tensor) {
  ArrayRef<int64_t> shape = tensor.getType().getShape();
  if (shape.empty() || shape.front() == 0)
    return emitError(location) << "input '" << name << "' has no samples; its first dimension "
                               << "must count them";
  if (!inputs.empty() && shape.front() != samples)
    return emitError(location) << "input '" << name << "' has " << shape.front()
                               << " samples, expected " << samples << " as in input '"
                               << inputs.begin()->first << "'";
  samples = shape.front();
  inputs[name.str()] = tensor;
  return success();
}

FailureOr<Tensor> DataSet::take(InputOp input, BatchPosition at, Shard shard, int64_t counted,
                                bool poison) const {
  auto it = inputs.find(input.getName().str());
  if (it == inputs.end())
    return input.emitOpError() << "has no data: the data set has no tensor '" << input.getName()
                               << "'";
  const Tensor &all = it->second;
  auto type = cast<RankedTensorType>(input.getType());
  int64_t dim = input.getSampleDim(), count = type.getDimSize(dim);
  auto microbatches = input->getAttrOfType<IntegerAttr>("microbatches");
  int64_t parts = microbatches ? microbatches.getInt() : 1;
  int64_t part = input.getMicrobatch() ? *input.getMicrobatch() : at.part % parts;
  int64_t batch = input.getGlobalBatch().value_or(count * parts);
  int64_t perShard = llvm::divideCeil(batch, shard.count);

  Tensor result(type);
  if (all.isFloat() != result.isFloat())
    return input.emitOpError() << "has data of element type " << all.getType().getElementType()
                               << ", expected " << type.getElementType();
  SmallVector<int64_t> expected(type.getShape());
  expected.erase(expected.begin() + dim);
  if (ArrayRef<int64_t>(expected) != all.getType().getShape().drop_front()) {
    expected.insert(expected.begin(), samples);
    return input.emitOpError() << "has data " << all.getType() << ", expected "
                               << type.clone(expected) << " (samples first)";
  }

  const auto [outer, size, inner] = Extents(type, dim);
  Element *to = result.mutableData();
  for (int64_t i = 0; i < count; ++i) {
    int64_t inShard = part * count + i;
    int64_t position = shard.index * perShard + std::min(inShard, perShard - 1);
    if ((position >= std::min(batch, counted) || inShard >= perShard) && poison)
      position = 0;
    position = std::min(position, batch - 1);
    const Element *sample = all.data() + (at.step * batch + position) % samples * outer * inner;
    for (int64_t o = 0; o < outer; ++o)
      std::copy(sample + o * inner, sample + (o + 1) * inner, to + (o * count + i) * inner);
  }
  if (!result.isFloat())
    for (int64_t i = 0; i < result.size(); ++i)
      if (wrapTo(to[i].i, type.getElementType()) != to[i].i)
        return input.emitOpError() << "has data with value " << to[i].i << ", which does not fit "
                                   << type.getElementType();
  return result;
}
