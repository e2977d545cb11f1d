//===- Sharding.cpp - how a value is spread over a mesh -------------------===//

#include "dialect/fsdp/AxisParts.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Parses `{"a", "b"}` with an optional trailing `?` into `axes`.
static ParseResult parseAxes(AsmParser &parser, SmallVectorImpl<StringAttr> &axes, bool *open) {
  if (parser.parseLBrace())
    return failure();
  if (succeeded(parser.parseOptionalRBrace()))
    return success();
  do {
    if (open && succeeded(parser.parseOptionalQuestion())) {
      *open = true;
      break;
    }
    std::string name;
    if (parser.parseString(&name))
      return failure();
    axes.push_back(StringAttr::get(parser.getContext(), name));
  } while (succeeded(parser.parseOptionalComma()));
  return parser.parseRBrace();
}

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  FlatSymbolRefAttr mesh;
  SmallVector<ArrayAttr> dimAxes;
  SmallVector<bool> dimOpen;
  SmallVector<StringAttr> unreduced;
  SMLoc loc = parser.getCurrentLocation();
  auto parseDim = [&]() -> ParseResult {
    SmallVector<StringAttr> axes;
    bool open = false;
    if (parseAxes(parser, axes, &open))
      return failure();
    dimAxes.push_back(getAxisArray(parser.getContext(), axes));
    dimOpen.push_back(open);
    return success();
  };
  if (parser.parseLess() || parser.parseAttribute(mesh) || parser.parseComma() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseDim))
    return {};
  if (succeeded(parser.parseOptionalComma()))
    if (parser.parseKeyword("unreduced") || parser.parseEqual() ||
        parseAxes(parser, unreduced, nullptr))
      return {};
  if (parser.parseGreater())
    return {};
  auto emitError = [&] { return parser.emitError(loc); };
  return ShardingAttr::getChecked(function_ref<InFlightDiagnostic()>(emitError),
                                  parser.getContext(), mesh, ArrayRef<ArrayAttr>(dimAxes),
                                  ArrayRef<bool>(dimOpen), ArrayRef<StringAttr>(unreduced));
}

void ShardingAttr::print(AsmPrinter &printer) const {
  printer << "<" << getMesh() << ", [";
  llvm::interleaveComma(llvm::zip(getDimAxes(), getDimOpen()), printer, [&](auto dim) {
    printer << "{";
    llvm::interleaveComma(std::get<0>(dim), printer);
    if (std::get<1>(dim))
      printer << (std::get<0>(dim).empty() ? "?" : ", ?");
    printer << "}";
  });
  printer << "]";
  if (!getUnreduced().empty()) {
    printer << ", unreduced = {";
    llvm::interleaveComma(getUnreduced(), printer);
    printer << "}";
  }
  printer << ">";
}

LogicalResult ShardingAttr::verify(function_ref<InFlightDiagnostic()> emitError, FlatSymbolRefAttr,
                                   ArrayRef<ArrayAttr> dimAxes, ArrayRef<bool> dimOpen,
                                   ArrayRef<StringAttr> unreduced) {
  if (dimAxes.size() != dimOpen.size())
    return emitError() << "sharding has " << dimAxes.size() << " dimensions and " << dimOpen.size()
                       << " open marks";
  llvm::SmallSet<StringRef, 4> seen;
  bool hasParts = false;
  auto add = [&](StringAttr axis) -> LogicalResult {
    if (!seen.insert(axis.getValue()).second)
      return emitError() << "axis '" << axis.getValue()
                         << "' appears twice in a sharding; an axis splits at most one dimension";
    if (!axis.getValue().contains(':') && !hasParts)
      return success();
    hasParts = true;
    for (StringRef other : seen)
      if (other != axis.getValue() && overlap(other, axis))
        return emitError()
               << "'" << std::min(other, axis.getValue()) << "' and '"
               << std::max(other, axis.getValue())
               << "' in a sharding overlap; a part of an axis splits at most one dimension";
    return success();
  };
  for (ArrayAttr axes : dimAxes)
    for (Attribute axis : axes)
      if (failed(add(cast<StringAttr>(axis))))
        return failure();
  for (StringAttr axis : unreduced)
    if (failed(add(axis)))
      return failure();
  if (!llvm::is_sorted(unreduced,
                       [](StringAttr a, StringAttr b) { return a.getValue() < b.getValue(); }))
    return emitError() << "'unreduced' axes must be in the order of their names";
  return success();
}

ShardingAttr ShardingAttr::getReplicated(MLIRContext *context, FlatSymbolRefAttr mesh, int64_t rank,
                                         bool open) {
  SmallVector<ArrayAttr> dimAxes(rank, ArrayAttr::get(context, {}));
  SmallVector<bool> dimOpen(rank, open);
  return get(context, mesh, dimAxes, dimOpen, {});
}

ShardingAttr ShardingAttr::getCanonical(FlatSymbolRefAttr mesh,
                                        ArrayRef<SmallVector<StringAttr>> dimAxes,
                                        ArrayRef<StringAttr> unreduced) {
  MLIRContext *context = mesh.getContext();
  SmallVector<ArrayAttr> arrays = llvm::map_to_vector(
      dimAxes, [&](ArrayRef<StringAttr> axes) { return getAxisArray(context, axes); });
  SmallVector<bool> open(dimAxes.size(), false);
  SmallVector<StringAttr> sorted(unreduced);
  llvm::sort(sorted, [](StringAttr a, StringAttr b) { return a.getValue() < b.getValue(); });
  return get(context, mesh, arrays, open, sorted);
}

SmallVector<StringAttr> ShardingAttr::getAxes(int64_t dim) const {
  return getAxisNames(getDimAxes()[dim]);
}

bool ShardingAttr::isReplicated() const {
  return getUnreduced().empty() &&
         llvm::all_of(getDimAxes(), [](ArrayAttr axes) { return axes.empty(); });
}

SmallVector<int64_t> ShardingAttr::getLocalShape(ArrayRef<int64_t> global, MeshAttr mesh) const {
  SmallVector<int64_t> local(global);
  for (auto [dim, size] : llvm::enumerate(local))
    size = llvm::divideCeil(size, mesh.getSize(getAxes(dim)));
  return local;
}
