//===- RandomOps.cpp - ops that draw numbers anew in every step -----------===//

#include "dialect/fsdp/FSDPDialect.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

SmallVector<StringAttr> DropoutOp::getAxes(int64_t dim) {
  return getOver() ? getAxisNames(cast<ArrayAttr>((*getOver())[dim])) : SmallVector<StringAttr>();
}

int64_t DropoutOp::getRankDimSize(int64_t dim) {
  return llvm::divideCeil(getGlobalShape()[dim], getMesh(*this).getSize(getAxes(dim)));
}

LogicalResult DropoutOp::verify() {
  // (C1)
  double rate = getRate().convertToDouble();
  if (!(rate >= 0 && rate < 1))
    return emitOpError() << "has rate " << rate << ", expected at least 0 and less than 1";
  // (C2)
  if (getName().empty())
    return emitOpError()
           << "has an empty name, expected the name that its random numbers are derived from";
  // (C3)
  auto type = cast<RankedTensorType>(getType());
  size_t rank = type.getRank();
  if (getPartOf().has_value() != getOver().has_value())
    return emitOpError() << "has one of 'part_of' and 'over', expected both or neither";
  int64_t microbatches = static_cast<int64_t>(getMicrobatches().value_or(1));
  if (getMicrobatches().has_value() != getAlong().has_value() ||
      (getMicrobatches() && (!getPartOf() || microbatches < 1 || *getAlong() >= rank)))
    return emitOpError()
           << "has 'microbatches', 'along' and 'part_of' that do not fit, expected all "
              "of them: at least 1, along a dimension below "
           << rank;
  // (C6)
  if (failed(fsdp::detail::verifyMicrobatch(*this, getMicrobatches(), getMicrobatch())))
    return failure();
  if (!getPartOf())
    return success();
  if (getPartOf()->size() != rank || getOver()->size() != rank)
    return emitOpError() << "has " << getPartOf()->size() << " sizes in 'part_of' and "
                         << getOver()->size() << " lists of axes in 'over', expected " << rank
                         << " of each (one for each dimension)";
  if (!nn::countElements(*getPartOf()))
    return emitOpError()
           << "has 'part_of' [" << *getPartOf()
           << "], which is not a valid shape, expected sizes of at most 2^48 elements together";
  MeshAttr mesh = getMesh(*this);
  llvm::SmallPtrSet<Attribute, 4> seen;
  for (auto [dim, whole] : llvm::enumerate(*getPartOf())) {
    // (C4)
    SmallVector<StringAttr> axes = getAxes(dim);
    for (StringAttr axis : axes) {
      if (mesh.getAxisIndex(axis) < 0)
        return emitOpError() << "is split over axis '" << axis.getValue()
                             << "', which the mesh lacks";
      if (!seen.insert(axis).second)
        return emitOpError() << "is split over axis '" << axis.getValue()
                             << "' twice; use it for one dimension";
    }
    // (C5)
    bool isCut = getAlong() && *getAlong() == dim;
    int64_t ranks = mesh.getSize(axes), expected = llvm::divideCeil(whole, ranks);
    if (isCut)
      expected = llvm::divideCeil(expected, microbatches);
    if (type.getDimSize(dim) == expected)
      continue;
    InFlightDiagnostic diagnostic = emitOpError()
                                    << "holds " << type.getDimSize(dim) << " elements of dimension "
                                    << dim << ", expected " << expected << " (" << whole << " over "
                                    << ranks << " ranks";
    if (isCut)
      diagnostic << " and " << microbatches << " microbatches";
    return diagnostic << ")";
  }
  return success();
}

nn::ShardingRule DropoutOp::getShardingRule() { return nn::ShardingRule::elementwise(*this); }

nn::KernelCall DropoutOp::getKernelCall() {
  ArrayRef<int64_t> part = cast<RankedTensorType>(getType()).getShape(), whole = getGlobalShape();
  // The offset, in elements of the whole tensor, at which this rank's part begins, and the pieces
  // of the part from the innermost dimension on; dimensions that are contiguous in the whole tensor
  // are joined.
  nn::ShapeArgument::RankSum first;
  nn::ShapeArgument::Pairs extents = {{1, 1}};
  for (int64_t dim = part.size() - 1, stride = 1; dim >= 0; stride *= whole[dim--]) {
    if (SmallVector<StringAttr> axes = getAxes(dim); !axes.empty())
      first.push_back({getRankDimSize(dim) * stride, getAxisArray(getContext(), axes)});
    auto &[size, step] = extents.back();
    if (size * step == stride)
      size *= part[dim];
    else
      extents.push_back({part[dim], stride});
  }
  std::reverse(extents.begin(), extents.end());
  nn::ShapeArgument mask("DropoutMask<" + std::to_string(extents.size()) + ">");
  // By how much the first index grows from one microbatch to the next.
  int64_t growth = 0;
  if (std::optional<uint64_t> along = getAlong())
    growth = nn::elementsOf(whole.drop_front(*along + 1)) * part[*along];
  if (uint64_t microbatch = getMicrobatch().value_or(0))
    first.push_back({static_cast<int64_t>(microbatch) * growth, ArrayAttr()});
  mask.number("rate", getRate())
      .hashedName("name", getName())
      .rankSum("first", std::move(first))
      .pairs("extents", std::move(extents));
  if (growth && !getMicrobatch())
    mask.field("microbatch", growth);
  return {*this, std::move(mask)};
}

nn::PrecisionClass DropoutOp::getPrecisionClass() { return nn::PrecisionClass::first; }
bool DropoutOp::isElementwise() { return true; }

// Ten rounds of two products for four elements, a comparison and a product for each.
nn::Cost DropoutOp::getCost() {
  return nn::costOf(*this, 7 * cast<RankedTensorType>(getType()).getNumElements());
}

// The same name draws the same mask.
nn::Cotangents DropoutOp::buildCotangents(OpBuilder &builder, ArrayRef<Value> d,
                                          ArrayRef<bool> needed) {
  Value input;
  if (d[0] && needed[0])
    input = DropoutOp::create(builder, getLoc(), getType(), d[0], getRateAttr(), getNameAttr(),
                              getPartOfAttr(), getOverAttr(), getMicrobatchesAttr(), getAlongAttr(),
                              getMicrobatchAttr());
  return SmallVector<Value>{input};
}
