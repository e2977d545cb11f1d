//===- Reshard.h - the cheapest plan between two shardings ------*- C++ -*-===//
//
// Plain data: a mesh, a tensor, two shardings of it, and the sequence of collectives between them.
// Independent of IR; the steps have the semantics of `fsdp.all_slice`, `all_gather`,
// `reduce_scatter`, `all_reduce`, `all_to_all` and `collective_permute`.
//
// [Note: uneven parts] A dimension of size s split into n parts has parts of ceil(s/n). If sizes do
// not divide, the parts by {a} are not unions of the parts by {a, b}: 10 elements by a=2 are
// [0,5) [5,10), by a=2, b=2 they are [0,3) [3,6) [6,9) [9,10). A gather of b gives parts of 6;
// `repartition` makes parts of 5 of them, which moves one element. So the state of a dimension is
// its axes and the size of its parts.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_RESHARD_RESHARD_H
#define PASSES_RESHARD_RESHARD_H

#include "base/AxisPart.h"
#include <map>

namespace mlir::fsdp::reshard {

/// The link between ranks along an axis.
struct Link {
  double latency = 0;        ///< seconds of one message
  double bytesPerSecond = 1; ///< of one rank, in one direction

  bool operator==(const Link &other) const {
    return latency == other.latency && bytesPerSecond == other.bytesPerSecond;
  }
};

struct Axis {
  int64_t size = 1;
  Link link = {};
};

/// By the index of the axis in the mesh. A whole axis has before 1 and its own size.
using AxisPart = base::AxisPart<int>;

struct Sharding {
  std::vector<std::vector<AxisPart>> dims; ///< the axes of each dimension, major to minor
  std::vector<AxisPart> partial;           ///< over which the value is a partial sum
};

struct Problem {
  std::vector<Axis> mesh; ///< row-major
  std::vector<int64_t> shape;
  int64_t elementBytes = 4;
  Sharding from, to;
  /// The devices in the order of the mesh before and after; empty where both are the same.
  std::vector<int> fromOrder = {}, toOrder = {};
};

enum class Kind { slice, gather, reduceScatter, allReduce, allToAll, repartition, permute };

/// One collective. Ranks of a group are row-major over `axes`, the first one major.
struct Step {
  Kind kind = Kind::slice;
  std::vector<AxisPart> axes; ///< empty for a permute, which is over all axes
  int dim =
      -1; ///< gathered, sliced, scattered or repartitioned; of an all-to-all the concatenated one
  int split = -1;                     ///< of an all-to-all: the dimension that is split
  std::vector<int64_t> before, after; ///< shape on a rank
  std::vector<int> sources;           ///< of a permute: the device from which each device receives
  int64_t bytes = 0;                  ///< that a rank receives, at most
  double seconds = 0;
};

struct Plan {
  std::vector<Step> steps;
  int64_t bytes = 0; ///< that a rank receives in all steps, at most
  double seconds = 0;
};

/// The fault of a problem as a diagnostic; empty if it is valid. `to` may be partial only where
/// `from` is: a reshard cannot create a partial sum.
std::string validate(const Problem &problem);

/// The plan that takes the fewest seconds; among these, the one of fewest steps: of all plans if at
/// most three parts of axes move independently, else of those described at SubAxes::kExhaustive.
/// Seconds are
/// latency plus bytes received by bandwidth, of rings: (n-1) messages in a group of n, twice as
/// many in an all-reduce; the slowest link of a group counts. With links of equal bandwidth without
/// latency that is the fewest bytes. The problem is valid.
Plan solve(const Problem &problem);

/// Caches its plans.
class Solver {
public:
  const Plan &solve(const Problem &problem);

private:
  std::map<std::vector<int64_t>, Plan> plans;
};

/// "all-gather dimension 0 over axes 1, 2: 4x8 -> 16x8, 384 bytes"
std::string describe(const Step &step);

} // namespace mlir::fsdp::reshard

#endif // PASSES_RESHARD_RESHARD_H
