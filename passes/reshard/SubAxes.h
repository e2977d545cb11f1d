//===- SubAxes.h - the finest parts of axes in two shardings ------*- C++ -*-===//

#ifndef PASSES_RESHARD_SUBAXES_H
#define PASSES_RESHARD_SUBAXES_H

#include "passes/reshard/Reshard.h"

#include <array>

namespace mlir::fsdp::reshard {

/// Parts of axes that no sharding of the problem splits further. If there are many, adjacent parts
/// that stay together in both shardings are one atom: the search is over the positions of atoms.
struct Atom {
  std::vector<AxisPart> parts; ///< major to minor
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

  /// Maximum number of atoms of a problem.
  static constexpr int kMax = 6;
  /// Maximum number of atoms for the exhaustive search. With more, slices, scattered sums and
  /// permutes only build a prefix of the target sharding; a full gather with a slice remains
  /// possible.
  static constexpr int kExhaustive = 3;
  int64_t sizeOf(const std::vector<int> &list) const {
    int64_t size = 1;
    for (int atom : list)
      size *= atoms[atom].size;
    return size;
  }
};

/// The finest parts of each axis, without joining any; empty if two parts of an axis do not nest.
std::vector<std::vector<AxisPart>> findParts(const Problem &problem);

} // namespace mlir::fsdp::reshard

#endif // PASSES_RESHARD_SUBAXES_H
