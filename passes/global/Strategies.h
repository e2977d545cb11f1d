//===- Strategies.h - placements of strategies ------------------*- C++ -*-===//

#ifndef PASSES_GLOBAL_STRATEGIES_H
#define PASSES_GLOBAL_STRATEGIES_H

#include "dialect/fsdp/FSDPDialect.h"

namespace mlir::fsdp {

/// One row of the table of strategies: which of its tensors are split over the storage axis. The
/// others are replicated. Only this table contains the names of strategies: passes read placements.
struct Strategy {
  StringRef name;
  bool splitsParameter, splitsGradient, splitsState;
  /// It is meant for a mesh on which shards are replicated over other axes.
  bool replicatesShards;

  bool splits() const { return splitsState; }

  /// The placement of a parameter that is stored as `layout` where it is split, in the type
  /// `element`.
  PlacementAttr place(LayoutAttr layout, Type element) const;
};

/// The strategy called `name`, or null.
const Strategy *findStrategy(StringRef name);
/// "ddp, zero1, zero2, fsdp or hsdp"
std::string listStrategies();
/// Why `mesh` does not fit `strategy`, and the remedy, as the rest of a sentence that names the
/// strategy; "" if it fits.
std::string explainMismatch(const Strategy &strategy, MeshAttr mesh);

} // namespace mlir::fsdp

#endif // PASSES_GLOBAL_STRATEGIES_H
