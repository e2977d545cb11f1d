//===- Axes.cpp - mesh axes and their parts as plain data -----------------===//

#include "passes/propagation/Axes.h"
#include <algorithm>

namespace mlir::fsdp::propagation {

AxisPart wholeAxis(const Mesh &mesh, int index) { return {index, 1, mesh.sizes[index]}; }

bool isWhole(const Mesh &mesh, const AxisPart &axis) { return axis.size == mesh.sizes[axis.axis]; }

int64_t sizeOf(const AxisList &axes) {
  int64_t size = 1;
  for (const AxisPart &axis : axes)
    size *= axis.size;
  return size;
}

bool overlaps(const AxisList &axes, const AxisPart &axis) {
  return std::any_of(axes.begin(), axes.end(),
                     [&](const AxisPart &other) { return other.overlaps(axis); });
}

bool isPrefix(const AxisList &first, const AxisList &second) {
  if (first.empty())
    return true;
  if (first.size() > second.size() || !std::equal(first.begin(), first.end() - 1, second.begin()))
    return false;
  const AxisPart &last = first.back(), &there = second[first.size() - 1];
  return last == there || last.isPrefixOf(there);
}

bool isStrictPrefix(const AxisList &first, const AxisList &second) {
  return first != second && isPrefix(first, second);
}

std::string print(const Mesh &mesh, const AxisPart &axis) {
  return mesh.names[axis.axis] + (isWhole(mesh, axis) ? "" : axis.range());
}

std::string print(const Mesh &mesh, const AxisList &axes) {
  if (axes.empty())
    return "_";
  std::string text;
  for (const AxisPart &axis : axes)
    text += (text.empty() ? "" : "+") + print(mesh, axis);
  return text;
}

} // namespace mlir::fsdp::propagation
