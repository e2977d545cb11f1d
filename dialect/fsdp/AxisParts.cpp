//===- AxisParts.cpp - parts of mesh axes, by their names -----------------===//

#include "dialect/fsdp/AxisParts.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Of axes, and so of parts.
static constexpr int64_t mostPositions = int64_t(1) << 20;

/// A word of `--mesh` and `--shard`.
static bool isWord(StringRef name) {
  return !name.empty() && llvm::isAlpha(name.front()) &&
         llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

/// Takes a number without leading zeros from the front of `text`.
static bool consumeCount(StringRef &text, int64_t least, int64_t &count) {
  return !text.empty() && llvm::isDigit(text.front()) && text.front() != '0' &&
         !text.consumeInteger(10, count) && count >= least && count <= mostPositions;
}

std::optional<AxisPart> mlir::fsdp::parseAxisPart(StringRef name) {
  AxisPart part;
  const size_t colon = name.find(':');
  part.axis = name.take_front(colon);
  if (!isWord(part.axis))
    return std::nullopt;
  if (colon == StringRef::npos)
    return part;
  StringRef rest = name.drop_front(colon + 1);
  if (!rest.consume_front("(") || !consumeCount(rest, 1, part.before) || !rest.consume_front(")") ||
      !consumeCount(rest, 2, part.size) || !rest.empty())
    return std::nullopt;
  return part;
}

std::string mlir::fsdp::spellAxisPart(const AxisPart &part) {
  return part.axis.str() + (part.isWhole() ? "" : part.range());
}

StringRef mlir::fsdp::axisOf(StringRef name) { return name.split(':').first; }

bool mlir::fsdp::overlap(StringRef first, StringRef second) {
  if (first == second)
    return true;
  std::optional<AxisPart> a = parseAxisPart(first), b = parseAxisPart(second);
  return a && b && a->overlaps(*b);
}

int64_t mlir::fsdp::positionsOf(MeshAttr mesh, StringRef axis) {
  int64_t positions = 0;
  for (auto [name, size] : llvm::zip_equal(mesh.getAxisNames(), mesh.getAxisSizes()))
    if (axisOf(name) == axis)
      positions = std::max<int64_t>(positions, 1) * size;
  return positions;
}

std::optional<SmallVector<StringAttr>> mlir::fsdp::findAxes(MeshAttr mesh, StringRef name) {
  if (int64_t index = mesh.getAxisIndex(name); index >= 0)
    return SmallVector<StringAttr>{mesh.getAxisNames()[index]};
  SmallVector<StringAttr> axes;
  std::optional<AxisPart> wanted = parseAxisPart(name);
  const int64_t positions = wanted ? positionsOf(mesh, wanted->axis) : 0;
  if (positions <= 1)
    return axes;
  if (wanted->isWhole())
    wanted->size = positions;
  int64_t next = wanted->before;
  for (StringAttr axis : mesh.getAxisNames()) {
    std::optional<AxisPart> there = parseAxisPart(axis);
    if (!there || there->axis != wanted->axis)
      continue;
    if (there->isWhole())
      there->size = positions;
    if (there->before != next || there->next() > wanted->next())
      continue;
    axes.push_back(axis);
    next = there->next();
  }
  if (next != wanted->next())
    return std::nullopt;
  return axes;
}

SmallVector<std::string> mlir::fsdp::spellAxes(MeshAttr mesh, ArrayRef<StringAttr> axes) {
  std::vector<AxisPart> parts;
  for (StringAttr axis : axes)
    base::append(parts, parseAxisPart(axis).value_or(AxisPart{axis}));
  return llvm::map_to_vector(parts, [&](const AxisPart &part) {
    return part.size == positionsOf(mesh, part.axis) ? part.axis.str() : spellAxisPart(part);
  });
}

std::string mlir::fsdp::spellMesh(MeshAttr mesh) {
  std::string text;
  StringRef last;
  for (StringAttr name : mesh.getAxisNames()) {
    StringRef axis = axisOf(name);
    if (axis != last)
      text +=
          (text.empty() ? "" : ",") + axis.str() + "=" + std::to_string(positionsOf(mesh, axis));
    last = axis;
  }
  return text;
}
