//===- MeshParts.h - replace axes of the mesh by their parts ----*- C++ -*-===//
// If a sharding needs a part of an axis, the axis is split for the whole module: `"tensor"=4`
// becomes `"tensor:(1)2"=2, "tensor:(2)2"=2`, and names of `tensor` become both. Row-major
// positions, ranks and device orders do not change, and later passes see only axes. See
// docs/design/sharding.md for the reasons.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_SHARDING_MESHPARTS_H
#define PASSES_SHARDING_MESHPARTS_H

#include "dialect/fsdp/AxisParts.h"
#include <string>

namespace mlir::fsdp {

/// A split of `axis` (not a part) after the first `position` of its positions.
struct AxisCut {
  std::string axis;
  int64_t position;
};

/// Splits axes of the mesh so that every name in constraints, reshards, splits and placements of
/// `module`, and each of `names`, given by `where`, is one or several axes, and replaces the names
/// by these. Does nothing without a mesh. Emits an error and fails where a part does not
/// divide its axis, or where two parts have no common split (of 6, the first 2 and the first 3
/// positions). Axes that the mesh lacks stay named.
LogicalResult splitNamedMeshAxes(ModuleOp module, ArrayRef<std::string> names = {},
                                 StringRef where = "");

/// Applies `cuts` in order: a cut that does not divide its axis together with the cuts before it,
/// or that would give the mesh too many axes, is left out. False if none is applied.
bool splitMeshAxis(ModuleOp module, ArrayRef<AxisCut> cuts);

} // namespace mlir::fsdp

#endif // PASSES_SHARDING_MESHPARTS_H
