//===- SubAxes.h - the finest parts of axes in two shardings ------*- C++ -*-===//

#ifndef PASSES_RESHARD_SUBAXES_H
#define PASSES_RESHARD_SUBAXES_H

#include "passes/reshard/Reshard.h"

#include <array>

namespace mlir::fsdp::reshard {

/// A part of an axis that no sharding of the problem splits further: the search is over the
/// positions of atoms.
struct Atom {
  AxisPart part;
  int64_t size = 1;
  Link link;
};

/// The positions of atoms.
struct AtomSharding {
  std::vector<std::vector<int>> dims;
  std::vector<int> partial;
};

struct SubAxes {
  explicit SubAxes(const Problem &problem);

  std::vector<Atom> atoms;
  AtomSharding from, to;

  /// Maximum number of atoms of a problem, which callers must not exceed: more than the axes of a
  /// mesh, as parts of an axis become separate axes where values move.
  static constexpr int kMax = 12;
  /// Maximum number of dimensions that either sharding splits.
  static constexpr int kMaxDims = 8;
  /// Maximum number of atoms for which parts of a dimension that does not divide may have any size
  /// that other atoms divide; with more, only the sizes that the source or the target give.
  static constexpr size_t kAllBlocks = 4;
};

/// The finest parts of each axis; empty if two parts of an axis do not nest.
std::vector<std::vector<AxisPart>> findParts(const Problem &problem);

} // namespace mlir::fsdp::reshard

#endif // PASSES_RESHARD_SUBAXES_H
