//===- Axes.h - mesh axes and their parts as plain data ---------*- C++ -*-===//

#ifndef PASSES_PROPAGATION_AXES_H
#define PASSES_PROPAGATION_AXES_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mlir::fsdp::propagation {

/// Named axes with their sizes; the first is major.
struct Mesh {
  std::vector<std::string> names;
  std::vector<int64_t> sizes;
};

/// A mesh axis or a part of one. An axis of n = pre * size * post positions is split into [pre,
/// size, post], and the part is the middle: `"a":(pre)size`. The whole axis has pre 1 and
/// size n.
struct Axis {
  int index = 0; ///< in the mesh
  int64_t pre = 1, size = 1;

  bool operator==(const Axis &other) const {
    return index == other.index && pre == other.pre && size == other.size;
  }
  bool operator!=(const Axis &other) const { return !(*this == other); }
  /// The position after this part: the `pre` of a part that follows it directly.
  int64_t next() const { return pre * size; }
  /// True if `this` is a prefix of `other`.
  bool isPrefixOf(const Axis &other) const;
  /// True where every position of `other` is one of `this`.
  bool contains(const Axis &other) const;
  bool overlaps(const Axis &other) const;
  /// The longest prefix of `this` that overlaps no part of `other`; none if that is empty or the
  /// two cannot be parts of one split of the axis.
  std::optional<Axis> withoutOverlap(const Axis &other) const;
};

/// Axes that split something, major to minor. Adjacent parts are joined.
using AxisList = std::vector<Axis>;

/// The axis `index` of `mesh` as a whole.
Axis wholeAxis(const Mesh &mesh, int index);
bool isWhole(const Mesh &mesh, const Axis &axis);

/// Appends `axis`, joined with the last part where it follows that directly.
void append(AxisList &axes, const Axis &axis);
/// The product of the sizes.
int64_t sizeOf(const AxisList &axes);
bool overlaps(const AxisList &axes, const Axis &axis);
/// True if `first` is a proper prefix of `second`, possibly by a part of its last axis.
bool isStrictPrefix(const AxisList &first, const AxisList &second);
bool isPrefix(const AxisList &first, const AxisList &second);

/// `a+b:(1)2` for the axes "a" and the part (1)2 of "b"; `_` where there is none.
std::string print(const Mesh &mesh, const AxisList &axes);
std::string print(const Mesh &mesh, const Axis &axis);

} // namespace mlir::fsdp::propagation

#endif // PASSES_PROPAGATION_AXES_H
