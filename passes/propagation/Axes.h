//===- Axes.h - mesh axes and their parts as plain data ---------*- C++ -*-===//

#ifndef PASSES_PROPAGATION_AXES_H
#define PASSES_PROPAGATION_AXES_H

#include "base/AxisPart.h"

namespace mlir::fsdp::propagation {

/// Named axes with their sizes; the first is major.
struct Mesh {
  std::vector<std::string> names;
  std::vector<int64_t> sizes;
};

/// By the index of the axis in the mesh. A whole axis has before 1 and its own size.
using AxisPart = base::AxisPart<int>;

/// Axes that split something, major to minor. Adjacent parts are joined.
using AxisList = std::vector<AxisPart>;
using base::append;

/// The axis `index` of `mesh` as a whole.
AxisPart wholeAxis(const Mesh &mesh, int index);
bool isWhole(const Mesh &mesh, const AxisPart &axis);

/// The product of the sizes.
int64_t sizeOf(const AxisList &axes);
bool overlaps(const AxisList &axes, const AxisPart &axis);
/// True if `first` is a prefix of `second`, possibly by a part of its last axis: on a mesh "a"=2,
/// "b"=4, `a` and `a+b:(1)2` are prefixes of `a+b`, and `b` and `a+b:(2)2` are not.
bool isPrefix(const AxisList &first, const AxisList &second);
/// The same without `a+b` itself.
bool isStrictPrefix(const AxisList &first, const AxisList &second);

/// `a+b:(1)2` for the axes "a" and the part (1)2 of "b"; `_` without axes.
std::string print(const Mesh &mesh, const AxisList &axes);
std::string print(const Mesh &mesh, const AxisPart &axis);

} // namespace mlir::fsdp::propagation

#endif // PASSES_PROPAGATION_AXES_H
