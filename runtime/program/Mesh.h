//===- Mesh.h - named axes of ranks -----------------------------------------===//
#ifndef FSDP_RUNTIME_PROGRAM_MESH_H
#define FSDP_RUNTIME_PROGRAM_MESH_H

#include "runtime/program/Limits.h"
#include "runtime/program/Table.h"

#include <initializer_list>
#include <string>
#include <vector>

namespace fsdp::rt {

/// One axis of a mesh, as a program's tables spell it.
struct MeshAxis {
  const char *name;
  int size;
};

/// Some axes of a mesh by index, major to minor: `{0, 2}`.
struct AxisList {
  int count = 0;
  int axis[limits::kMaxMeshAxes] = {};

  constexpr AxisList() = default;
  constexpr AxisList(std::initializer_list<int> axes) {
    for (int a : axes)
      axis[count++] = a;
  }
  constexpr const int *begin() const { return axis; }
  constexpr const int *end() const { return axis + count; }
};

/// The position of a rank on a mesh.
struct RankPosition {
  Table<MeshAxis> axes;
  std::vector<int> coordinates; ///< one for each axis

  /// The rank's index along some axes, row-major; 0 along none.
  int along(const AxisList &list) const {
    int index = 0;
    for (int axis : list)
      index = index * axes[static_cast<std::size_t>(axis)].size +
              coordinates[static_cast<std::size_t>(axis)];
    return index;
  }
};

/// The kind of the first operation that ranks issue on a communicator.
enum class FirstUse { None, Gather, Other };

/// A communicator of a program: its ranks are those that differ only on `axes`. With an offset it
/// has the sends or the receives of a rank: its ranks are the sender, then the receiver, or the
/// rank alone if it has no peer.
struct CommunicatorSpec {
  const char *name;
  AxisList axes;
  int offset = 0;      ///< of the peer along `axes`
  bool inRing = false; ///< the first rank follows the last one
  bool sends = false;
  /// Of collectives, by ranks of the program that has this table. Known in programs for CUDA of
  /// several roles, whose ranks set up all communicators before they use one.
  FirstUse firstUse = FirstUse::None;

  bool isTransfer() const { return offset != 0; }
};

/// The index of the communicator that the peers of communicator `index`, one of transfers, use.
/// Error: there is none.
int counterpartOf(Table<CommunicatorSpec> communicators, int index);

/// An n-dimensional grid of ranks. Positions are row-major over the axes; `order[position]` is the
/// rank there (the identity unless the program sets another order).
class Mesh {
public:
  /// Errors: an axis without ranks, an order that is not a permutation of the ranks.
  explicit Mesh(Table<MeshAxis> axes, Table<int> order = {});

  int size() const { return static_cast<int>(order_.size()); }
  int dimensions() const { return static_cast<int>(sizes_.size()); }
  int axisSize(int axis) const { return sizes_[axis]; }
  const std::string &axisName(int axis) const { return names_[axis]; }
  /// Index of the axis of that name, or -1.
  int axisNamed(const std::string &name) const;

  /// Coordinate of `rank` on `axis`.
  int coordinate(int rank, int axis) const;
  std::vector<int> coordinates(int rank) const;
  /// The rank at these coordinates, one for each axis.
  int rankAt(const std::vector<int> &coordinates) const;

  /// The ranks that agree with `rank` on every other axis, row-major over `axes` as listed (major
  /// to minor). Contains `rank`; its index is the rank within the group.
  std::vector<int> group(int rank, const AxisList &axes) const;
  /// The ranks of the communicator of `rank` that `spec` describes.
  std::vector<int> ranksOf(const CommunicatorSpec &spec, int rank) const;

  /// "fsdp=2,tensor=3"
  std::string describe() const;

private:
  std::vector<std::string> names_;
  std::vector<int> sizes_;
  std::vector<int> order_;    // position -> rank
  std::vector<int> position_; // rank -> position
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_PROGRAM_MESH_H
