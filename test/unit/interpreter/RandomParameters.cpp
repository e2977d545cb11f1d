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
                            fileShape, split(type.getRank()), PlacementAttr(), training || (count > 0 && chance(8)));
  }
  return ReadOp::create(builder, location(), type, param.getSymName());
}

/// Over which axes a parameter of this rank is split in compute: now and then those that do not split the batch.
ArrayAttr RandomStep::split(int64_t rank) {
  std::vector<SmallVector<Attribute>> dims(rank);
  bool any = false;
  for (StringAttr axis : getMesh(step).getAxisNames())
    if (axis != "data" && axis != "fsdp" && rank > 0 && chance(40)) {
      dims[random() % dims.size()].push_back(axis);
      any = true;
    }
  SmallVector<Attribute> entries;
  for (ArrayRef<Attribute> dim : dims)
    entries.push_back(builder.getArrayAttr(dim));
  return any ? builder.getArrayAttr(entries) : ArrayAttr();
}
