//===- MeshParts.h - replace axes of the mesh by their parts ----*- C++ -*-===//
//
// Where a sharding needs a part of an axis, the axis is cut for the whole module: `"tensor"=4`
// becomes
// `"tensor:(1)2"=2, "tensor:(2)2"=2`, and what named `tensor` names both. Row-major positions stay,
// so ranks and device orders do, and nothing behind needs to know of parts: they are axes.
// docs/design.md says why.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_MESHPARTS_H
#define PASSES_MESHPARTS_H

#include "dialect/fsdp/AxisParts.h"
#include <string>

namespace mlir::fsdp {

/// A cut of `axis`, the name of no part, behind the first `position` of its positions.
struct AxisCut {
  std::string axis;
  int64_t position;
};

/// Cuts the mesh so that every name in constraints, reshards, splits and placements of `module`,
/// and each of `names`, which `where` gives, is one or several of its axes, and makes all of them
/// names of these. Does nothing without a mesh. Emits an error and fails where a part does not
/// divide its axis, or where two parts are of no common cut (of 6, the first 2 and the first 3
/// positions). Axes that the mesh lacks stay named.
LogicalResult cutMeshAsNamed(ModuleOp module, ArrayRef<std::string> names = {},
                             StringRef where = "");

/// Cuts the mesh where `cuts` say, those first that come first: one that does not divide its axis
/// together with the cuts before it, or that would give the mesh too many axes, is left out. False
/// where nothing is left to cut.
bool cutMesh(ModuleOp module, ArrayRef<AxisCut> cuts);

} // namespace mlir::fsdp

#endif // PASSES_MESHPARTS_H
