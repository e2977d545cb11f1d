//===- AxisParts.h - parts of mesh axes, by their names ---------*- C++ -*-===//
//
// `tensor:(2)4` is the part of axis `tensor` that has 4 positions behind the first 2 (the notation
// of Shardy): an axis of n = before * size * after positions is cut into three, of which a part is
// the middle. Shardings that are asked for may name parts of an axis of the mesh. Passes then
// replace the axis by its parts, each an axis of its own (passes/MeshParts.h), so that in what a
// pass leaves behind every name is one of the mesh.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_FSDP_AXISPARTS_H
#define DIALECT_FSDP_AXISPARTS_H

#include "dialect/fsdp/FSDPDialect.h"
#include "runtime/program/Limits.h"
#include <optional>
#include <string>

namespace mlir::fsdp {

using limits::kMostMeshAxes;

/// What the name of an axis stands for. Refers to the name, which must outlive it.
struct AxisPart {
  StringRef axis;
  /// Positions before the part, 1 for none: those of the parts that are major to it, multiplied.
  int64_t before = 1;
  /// 0 for the axis as a whole.
  int64_t size = 0;

  /// Nothing where `name` is neither a letter followed by letters, digits and `_`, nor that and
  /// `:(BEFORE)SIZE` with BEFORE at least 1 and SIZE at least 2.
  static std::optional<AxisPart> parse(StringRef name);

  bool isWhole() const { return size == 0; }
  /// The `before` of a part that follows directly.
  int64_t next() const { return before * size; }
  /// True where both have positions of one axis in common. For names alone: a whole axis overlaps
  /// each part of it.
  bool overlaps(const AxisPart &other) const;
  /// "tensor:(2)4"
  std::string spell() const;
};

/// `tensor` for `tensor` and for `tensor:(2)4`.
StringRef axisOf(StringRef name);
/// True where two names have positions of one axis in common.
bool overlap(StringRef first, StringRef second);

/// The positions of `axis` (no part) in `mesh`, be it there as a whole or in parts; 0 where the
/// mesh lacks it.
int64_t positionsOf(MeshAttr mesh, StringRef axis);
inline bool hasAxis(MeshAttr mesh, StringRef axis) { return positionsOf(mesh, axis) != 0; }

/// The axes of `mesh` that `name`, an axis or a part of one, stands for, major to minor. None for a
/// part of an axis of size 1 or of one that the mesh lacks. Nothing where the mesh has the axis in
/// other parts.
std::optional<SmallVector<StringAttr>> findAxes(MeshAttr mesh, StringRef name);

/// True where a parameter of `size` along `dim` that is stored as `placement` says may be split
/// into `parts` along `dim` in compute: parts of parts are parts, where it is stored along that
/// dimension too.
bool admitsParts(PlacementAttr placement, int64_t size, int64_t dim, int64_t parts, MeshAttr mesh);

/// Fails where a parameter is stored along a dimension that it is split along in compute, and its
/// size there, padding included, does not divide.
LogicalResult verifyStoredParts(ParamOp param);

namespace detail {
/// Fails unless each of `axes`, which `op` asks for, is an axis of the mesh or a part of one that
/// divides it, and none overlaps another; `verb` begins the message, as "names" does.
LogicalResult verifyParts(Operation *op, ArrayRef<StringAttr> axes, StringRef verb);
} // namespace detail

/// `axes` of `mesh` for people: parts that follow one another are one, a whole axis has its own
/// name.
SmallVector<std::string> spellAxes(MeshAttr mesh, ArrayRef<StringAttr> axes);
/// The mesh as it was given: "data=2,fsdp=4".
std::string spellMesh(MeshAttr mesh);

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_AXISPARTS_H
