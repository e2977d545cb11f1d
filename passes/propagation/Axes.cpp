//===- Axes.cpp - mesh axes and their parts as plain data -----------------===//

#include "passes/propagation/Axes.h"
#include <algorithm>

namespace mlir::fsdp::propagation {

bool Axis::isPrefixOf(const Axis &other) const {
  return index == other.index && pre == other.pre && size <= other.size;
}

bool Axis::contains(const Axis &other) const {
  return index == other.index && pre <= other.pre && next() >= other.next();
}

bool Axis::overlaps(const Axis &other) const {
  if (index != other.index)
    return false;
  return *this == other || std::max(pre, other.pre) < std::min(next(), other.next());
}

/// True where both parts stand in one cut of their axis.
static bool fitTogether(const Axis &a, const Axis &b) {
  int64_t firstPre = std::min(a.pre, b.pre), lastPre = std::max(a.pre, b.pre);
  int64_t firstNext = std::min(a.next(), b.next()), lastNext = std::max(a.next(), b.next());
  if (firstNext > lastPre)
    return lastPre % firstPre == 0 && firstNext % lastPre == 0 && lastNext % firstNext == 0;
  return lastPre % firstNext == 0;
}

std::optional<Axis> Axis::withoutOverlap(const Axis &other) const {
  if (index != other.index)
    return *this;
  if (!fitTogether(*this, other))
    return std::nullopt;
  if (!overlaps(other))
    return *this;
  if (pre >= other.pre)
    return std::nullopt;
  return Axis{index, pre, other.pre / pre};
}

Axis wholeAxis(const Mesh &mesh, int index) { return {index, 1, mesh.sizes[index]}; }

bool isWhole(const Mesh &mesh, const Axis &axis) { return axis.size == mesh.sizes[axis.index]; }

void append(AxisList &axes, const Axis &axis) {
  if (!axes.empty() && axes.back().index == axis.index && axes.back().next() == axis.pre &&
      axis.pre > 1)
    axes.back().size *= axis.size;
  else
    axes.push_back(axis);
}

int64_t sizeOf(const AxisList &axes) {
  int64_t size = 1;
  for (const Axis &axis : axes)
    size *= axis.size;
  return size;
}

bool overlaps(const AxisList &axes, const Axis &axis) {
  return std::any_of(axes.begin(), axes.end(),
                     [&](const Axis &other) { return other.overlaps(axis); });
}

bool isPrefix(const AxisList &first, const AxisList &second) {
  if (first.empty())
    return true;
  if (first.size() > second.size() || !std::equal(first.begin(), first.end() - 1, second.begin()))
    return false;
  const Axis &last = first.back(), &there = second[first.size() - 1];
  return last == there || last.isPrefixOf(there);
}

bool isStrictPrefix(const AxisList &first, const AxisList &second) {
  return first != second && isPrefix(first, second);
}

std::string print(const Mesh &mesh, const Axis &axis) {
  if (isWhole(mesh, axis))
    return mesh.names[axis.index];
  return mesh.names[axis.index] + ":(" + std::to_string(axis.pre) + ")" + std::to_string(axis.size);
}

std::string print(const Mesh &mesh, const AxisList &axes) {
  if (axes.empty())
    return "_";
  std::string text;
  for (const Axis &axis : axes)
    text += (text.empty() ? "" : "+") + print(mesh, axis);
  return text;
}

} // namespace mlir::fsdp::propagation
