//===- Mesh.cpp - ranks and coordinates -----------------------------------===//

#include "dialect/fsdp/AxisParts.h"
#include "dialect/fsdp/Names.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Sizes of shards, times ranks, must fit in 64 bits (see nn::kMaxTensorBytes).
static constexpr int64_t mostRanks = int64_t(1) << 20;

LogicalResult mlir::fsdp::detail::verifyAxes(Operation *op, ArrayRef<StringAttr> axes,
                                             StringRef verb) {
  MeshAttr mesh = getMesh(op);
  llvm::SmallSet<StringRef, 4> seen;
  for (StringAttr axis : axes) {
    if (mesh.getAxisIndex(axis) < 0)
      return op->emitOpError() << verb << " axis '" << axis.getValue() << "', which the mesh lacks";
    if (!seen.insert(axis.getValue()).second)
      return op->emitOpError() << verb << " axis '" << axis.getValue() << "' twice";
  }
  return success();
}

LogicalResult mlir::fsdp::detail::verifyParts(Operation *op, ArrayRef<StringAttr> axes,
                                              StringRef verb) {
  MeshAttr mesh = getMesh(op);
  for (auto [index, axis] : llvm::enumerate(axes)) {
    std::optional<AxisPart> part = parseAxisPart(axis);
    const int64_t positions = part ? positionsOf(mesh, part->axis) : 0;
    if (positions == 0)
      return op->emitOpError() << verb << " axis '" << axis.getValue() << "', which the mesh lacks";
    if (!part->isWhole() && positions != 1 && positions % part->next() != 0)
      return op->emitOpError() << verb << " '" << axis.getValue() << "', " << part->size
                               << " positions after the first " << part->before << " of axis '"
                               << part->axis << "' of size " << positions
                               << "; expected numbers whose product divides that size";
    for (StringAttr other : axes.take_front(index)) {
      if (other == axis)
        return op->emitOpError() << verb << " axis '" << axis.getValue() << "' twice";
      if (overlap(other, axis))
        return op->emitOpError() << verb << " '" << other.getValue() << "' and '" << axis.getValue()
                                 << "', which overlap; name each part of an axis once";
    }
  }
  return success();
}

LogicalResult MeshOp::verify() {
  auto meshes = (*this)->getParentOfType<ModuleOp>().getOps<MeshOp>();
  if (*meshes.begin() == *this)
    return success();
  InFlightDiagnostic diag = emitOpError() << "appears twice in a module, expected one mesh";
  diag.attachNote((*meshes.begin()).getLoc()) << "the first mesh is here";
  return diag;
}

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  SmallVector<StringAttr> names;
  SmallVector<int64_t> sizes, devices;
  auto parseAxis = [&]() -> ParseResult {
    std::string name;
    int64_t size;
    if (parser.parseString(&name) || parser.parseEqual() || parser.parseInteger(size))
      return failure();
    names.push_back(StringAttr::get(parser.getContext(), name));
    sizes.push_back(size);
    return success();
  };
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseAxis))
    return {};
  if (succeeded(parser.parseOptionalComma())) {
    if (parser.parseKeyword("devices") || parser.parseEqual() ||
        parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                       [&] { return parser.parseInteger(devices.emplace_back()); }))
      return {};
  }
  if (parser.parseGreater())
    return {};
  auto emitError = [&] { return parser.emitError(loc); };
  return MeshAttr::getChecked(function_ref<InFlightDiagnostic()>(emitError), parser.getContext(),
                              ArrayRef<StringAttr>(names), ArrayRef<int64_t>(sizes),
                              ArrayRef<int64_t>(devices));
}

void MeshAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(llvm::zip(getAxisNames(), getAxisSizes()), printer, [&](auto axis) {
    printer << std::get<0>(axis) << "=" << std::get<1>(axis);
  });
  printer << "]";
  if (!getDevices().empty()) {
    printer << ", devices = [";
    llvm::interleaveComma(getDevices(), printer);
    printer << "]";
  }
  printer << ">";
}

/// Fails unless the axes of a mesh that are parts of one axis are all of its parts, major to minor.
static LogicalResult verifyPartsOfAxes(function_ref<InFlightDiagnostic()> emitError,
                                       ArrayRef<StringAttr> names, ArrayRef<int64_t> sizes) {
  llvm::SmallSet<StringRef, 4> seen;
  AxisPart last;
  for (auto [name, size] : llvm::zip_equal(names, sizes)) {
    AxisPart part = *parseAxisPart(name);
    const bool follows = part.axis == last.axis;
    if (!follows && !seen.insert(part.axis).second)
      return emitError() << "mesh axis '" << name.getValue()
                         << "' is separated from the other parts of '" << part.axis
                         << "'; list the parts of an axis one after the other, major to minor";
    if (follows && (part.isWhole() || last.isWhole()))
      return emitError() << "mesh has axis '" << part.axis
                         << "' both whole and in parts; use one of them";
    if (!part.isWhole() && part.size != size)
      return emitError() << "mesh axis '" << name.getValue() << "' has size " << size
                         << ", expected " << part.size << " as in its name";
    const int64_t expected = follows ? last.next() : 1;
    if (!part.isWhole() && part.before != expected)
      return emitError() << "mesh axis '" << name.getValue() << "' begins after " << part.before
                         << " positions, expected " << expected
                         << ": the parts of an axis are listed major to minor, without a gap";
    last = part;
  }
  return success();
}

LogicalResult MeshAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<StringAttr> names, ArrayRef<int64_t> sizes,
                               ArrayRef<int64_t> devices) {
  llvm::SmallSet<StringRef, 4> seen;
  int64_t ranks = 1;
  if (names.size() > kMaxMeshAxes)
    return emitError() << "mesh has " << names.size() << " axes, expected at most " << kMaxMeshAxes
                       << "; leave out those of size 1";
  for (auto [name, size] : llvm::zip_equal(names, sizes)) {
    if (!parseAxisPart(name.getValue()))
      return emitError()
             << "mesh axis '" << shownName(name.getValue())
             << "' is not an identifier, expected a letter, then letters, digits and '_'";
    if (!seen.insert(name.getValue()).second)
      return emitError() << "mesh axis '" << name.getValue()
                         << "' appears twice; give each axis its own name";
    if (size < 1)
      return emitError() << "mesh axis '" << name.getValue() << "' has size " << size
                         << ", expected at least 1";
    if (__builtin_mul_overflow(ranks, size, &ranks) || ranks > mostRanks)
      return emitError() << "mesh axis '" << name.getValue() << "' of size " << size
                         << " gives the mesh too many ranks, expected at most " << mostRanks;
  }
  if (failed(verifyPartsOfAxes(emitError, names, sizes)))
    return failure();
  if (devices.empty())
    return success();
  if (static_cast<int64_t>(devices.size()) != ranks)
    return emitError() << "mesh lists " << devices.size() << " devices, expected " << ranks
                       << " (the product of the axis sizes)";
  SmallVector<int64_t> sorted(devices);
  llvm::sort(sorted);
  for (auto [position, device] : llvm::enumerate(sorted))
    if (device != static_cast<int64_t>(position))
      return emitError() << "mesh devices must be a permutation of 0 to " << ranks - 1;
  if (llvm::is_sorted(devices))
    return emitError() << "mesh devices are in the default order; leave them out";
  return success();
}

int64_t MeshAttr::getNumRanks() const {
  int64_t ranks = 1;
  for (int64_t size : getAxisSizes())
    ranks *= size;
  return ranks;
}

int64_t MeshAttr::getAxisIndex(StringRef axis) const {
  for (auto [index, name] : llvm::enumerate(getAxisNames()))
    if (name.getValue() == axis)
      return index;
  return -1;
}

int64_t MeshAttr::getAxisSize(StringRef axis) const {
  int64_t index = getAxisIndex(axis);
  return index < 0 ? 1 : getAxisSizes()[index];
}

int64_t MeshAttr::getSize(ArrayRef<StringAttr> axes) const {
  int64_t size = 1;
  for (StringAttr axis : axes)
    size *= getAxisSize(axis);
  return size;
}

SmallVector<int64_t> MeshAttr::getCoordinates(int64_t rank) const {
  int64_t position = rank;
  if (!getDevices().empty())
    position = std::distance(getDevices().begin(), llvm::find(getDevices(), rank));
  SmallVector<int64_t> coordinates(getAxisSizes().size());
  for (int64_t axis = coordinates.size() - 1; axis >= 0; --axis) {
    coordinates[axis] = position % getAxisSizes()[axis];
    position /= getAxisSizes()[axis];
  }
  return coordinates;
}

int64_t MeshAttr::getRank(ArrayRef<int64_t> coordinates) const {
  int64_t position = 0;
  for (auto [coordinate, size] : llvm::zip_equal(coordinates, getAxisSizes()))
    position = position * size + coordinate;
  return getDevices().empty() ? position : getDevices()[position];
}

int64_t MeshAttr::getIndexIn(int64_t rank, ArrayRef<StringAttr> axes) const {
  SmallVector<int64_t> coordinates = getCoordinates(rank);
  int64_t index = 0;
  for (StringAttr axis : axes)
    if (int64_t position = getAxisIndex(axis); position >= 0)
      index = index * getAxisSizes()[position] + coordinates[position];
  return index;
}

SmallVector<int64_t> MeshAttr::getGroup(int64_t rank, ArrayRef<StringAttr> axes) const {
  SmallVector<int64_t> coordinates = getCoordinates(rank);
  SmallVector<int64_t> group(getSize(axes));
  for (auto [index, member] : llvm::enumerate(group)) {
    int64_t rest = index;
    for (StringAttr axis : llvm::reverse(axes)) {
      int64_t position = getAxisIndex(axis);
      if (position < 0)
        continue;
      coordinates[position] = rest % getAxisSizes()[position];
      rest /= getAxisSizes()[position];
    }
    member = getRank(coordinates);
  }
  return group;
}
