//===- Atoms.h - the finest parts of axes that two shardings name -*- C++ -*-===//

#ifndef PASSES_RESHARD_ATOMS_H
#define PASSES_RESHARD_ATOMS_H

#include "passes/reshard/Reshard.h"

#include <array>

namespace mlir::fsdp::reshard {

/// Parts of axes that no sharding of the problem cuts further. Where there are many, neighbours
/// that stay together in both shardings are one atom: the search is over how atoms stand.
struct Atom {
  std::vector<AxisPart> parts; ///< major to minor
  int64_t size = 1;
  Link link;
};

/// Where atoms stand.
struct AtomSharding {
  std::vector<std::vector<int>> dims;
  std::vector<int> partial;
};

struct Atoms {
  explicit Atoms(const Problem &problem);

  std::vector<Atom> atoms;
  AtomSharding from, to;

  /// How many atoms a problem may have.
  static constexpr int kMost = 6;
  /// Up to how many every move is tried. With more of them, slices, scattered sums and permutes
  /// only make what the last sharding begins with; a gather of everything and a slice is among what
  /// remains.
  static constexpr int kExhaustive = 3;
  int64_t sizeOf(const std::vector<int> &list) const {
    int64_t size = 1;
    for (int atom : list)
      size *= atoms[atom].size;
    return size;
  }
};

/// The finest parts of each axis, without joining any; empty where two parts of an axis do not fit
/// together.
std::vector<std::vector<AxisPart>> findParts(const Problem &problem);

} // namespace mlir::fsdp::reshard

#endif // PASSES_RESHARD_ATOMS_H
