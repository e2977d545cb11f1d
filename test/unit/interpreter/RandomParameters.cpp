//===- RandomParameters.cpp - parameters of random training steps ---------===//

#include "RandomModule.h"

using namespace mlir;
using namespace mlir::fsdp;

Value RandomStep::parameter(StringRef dims) {
  RankedTensorType type = typeOf(dims);
  std::vector<ParamOp> same;
  int64_t count = 0;
  for (ParamOp param : module.getOps<ParamOp>()) {
    ++count;
    if (param.getTensorType() == type)
      same.push_back(param);
  }
  ParamOp param;
  if (!same.empty() && chance(50)) {
    param = oneOf(same);
  } else {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(training ? training->step : step);
    InitAttr init =
        InitAttr::get(builder.getContext(), chance(50) ? InitKind::normal : InitKind::uniform,
                      builder.getF64FloatAttr(0.6));
    DenseI64ArrayAttr fileShape;
    if (dims.size() > 1 && chance(20))
      fileShape = builder.getDenseI64ArrayAttr({type.getNumElements()});
    // Up to four units, in an order that interleaves them.
    std::string unit = "u" + std::to_string(count == 0 ? 0 : between(0, 3));
    param = ParamOp::create(builder, location(), "p" + std::to_string(count), type, unit, init,
                            fileShape, split(type.getRank()), PlacementAttr(),
                            training || (count > 0 && chance(8)), DenseI64ArrayAttr());
  }
  return ReadOp::create(builder, location(), type, param.getSymName());
}

/// Over which axes a parameter of this rank is split in compute: now and then those that do not
/// split the batch.
ArrayAttr RandomStep::split(int64_t rank) {
  std::vector<SmallVector<Attribute>> dims(rank);
  bool any = false;
  for (StringAttr axis : getMesh(step).getAxisNames())
    if (axis != "data" && axis != "fsdp" && rank > 0 && chance(40)) {
      size_t dim = random() % dims.size();
      for (StringAttr part : partsOf(axis))
        dims[dim++ % dims.size()].push_back(part);
      any = true;
    }
  SmallVector<Attribute> entries;
  for (ArrayRef<Attribute> dim : dims)
    entries.push_back(builder.getArrayAttr(dim));
  return any ? builder.getArrayAttr(entries) : ArrayAttr();
}

/// `axis`, or now and then one of its parts or both, in any order. All parts are of one cut.
SmallVector<StringAttr> RandomStep::partsOf(StringAttr axis) {
  std::mt19937_64 own = random; // so that other draws of a seed do not change
  own.seed(own());
  const int64_t size = getMesh(step).getAxisSize(axis), first = size % 2 == 0 ? 2 : 3;
  if (size % first != 0 || size == first || own() % 2)
    return {axis};
  auto part = [&](int64_t before, int64_t size) {
    return builder.getStringAttr(axis.getValue() + ":(" + Twine(before) + ")" + Twine(size));
  };
  SmallVector<StringAttr> parts = {part(1, first), part(first, size / first)};
  if (own() % 4 == 0)
    std::swap(parts[0], parts[1]);
  if (own() % 2)
    parts.pop_back();
  return parts;
}
