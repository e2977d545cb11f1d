//===- AxisParts.h - parts of mesh axes, by their names ---------*- C++ -*-===//
//
// `tensor:(2)4` is the part of axis `tensor` that has 4 positions after the first 2 (the notation
// of Shardy): an axis of n = before * size * after positions is split into three, and the part is
// the middle. User-specified shardings may name parts of an axis of the mesh. Passes then replace
// the axis by its parts (passes/sharding/MeshParts.h), so that in the output of a pass every name
// is an axis of the mesh.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_FSDP_AXISPARTS_H
#define DIALECT_FSDP_AXISPARTS_H

#include "base/AxisPart.h"
#include "dialect/fsdp/FSDPDialect.h"
#include "runtime/program/Limits.h"
#include <optional>
#include <string>

namespace mlir::fsdp {

using limits::kMaxMeshAxes;

/// The axis, or the part of an axis, that a name denotes. Refers to the name, which must outlive
/// it.
using AxisPart = base::AxisPart<StringRef>;

/// Nothing where `name` is neither a letter followed by letters, digits and `_`, nor that and
/// `:(BEFORE)SIZE` with BEFORE at least 1 and SIZE at least 2.
std::optional<AxisPart> parseAxisPart(StringRef name);
/// "tensor:(2)4"; the name of a whole axis.
std::string spellAxisPart(const AxisPart &part);

/// `tensor` for `tensor` and for `tensor:(2)4`.
StringRef axisOf(StringRef name);
/// True where two names have positions of one axis in common.
bool overlap(StringRef first, StringRef second);

/// The positions of `axis` (not a part) in `mesh`, listed whole or in parts; 0 if the mesh lacks
/// it.
int64_t positionsOf(MeshAttr mesh, StringRef axis);
inline bool hasAxis(MeshAttr mesh, StringRef axis) { return positionsOf(mesh, axis) != 0; }

/// The axes of `mesh` that `name`, an axis or a part of one, denotes, major to minor. None for a
/// part of an axis of size 1 or of one that the mesh lacks. Nothing where the mesh has the axis in
/// other parts.
std::optional<SmallVector<StringAttr>> findAxes(MeshAttr mesh, StringRef name);

namespace detail {
/// Fails unless each of `axes`, which `op` names, is an axis of the mesh or a part of one that
/// divides it, and none overlaps another; `verb` begins the message, as "names" does.
LogicalResult verifyParts(Operation *op, ArrayRef<StringAttr> axes, StringRef verb);
} // namespace detail

/// `axes` of `mesh` as text: consecutive parts are joined, a whole axis has its name.
SmallVector<std::string> spellAxes(MeshAttr mesh, ArrayRef<StringAttr> axes);
/// The mesh as it was given: "data=2,fsdp=4".
std::string spellMesh(MeshAttr mesh);

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_AXISPARTS_H
