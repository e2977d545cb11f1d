//===- GroupCollectives.cpp - collectives of a unit as one launch ---------===//
//
// A unit has a storage for each set of axes that split its parameters in compute, and so a gather
// and a reduction for each. A small one costs the latency of its messages, which a group has once.
//
//===----------------------------------------------------------------------===//

#include "passes/scheduled/GroupCollectives.h"

#include "dialect/fsdp/CollectiveGroup.h"
#include "passes/scheduled/LaunchConflicts.h"
#include "runtime/program/GroupLimit.h"

using namespace mlir;
using namespace mlir::fsdp;

/// True where the order of the two launches matters.
static bool conflict(const PlannedLaunch &a, const PlannedLaunch &b) {
  return haveConflict(a, b) || a.state.conflictsWith(b.state);
}

namespace {

/// Joins launches of a segment.
class Grouper {
public:
  explicit Grouper(SegmentPlan &plan) : launches(plan.launches), names(plan.launchNames) {}

  void run() {
    for (size_t first = 0; first < launches.size(); ++first)
      if (isMember(launches[first]))
        for (std::optional<size_t> group = first; group;) {
          const std::optional<size_t> next = findNext(*group);
          group = next ? join(*group, *next) : std::nullopt;
        }
    llvm::erase_if(launches, [](const PlannedLaunch &launch) { return launch.body.empty(); });
  }

private:
  /// A gather of a storage or of its copy, or the reduce-scatter of its gradients.
  static bool isMember(const PlannedLaunch &launch) {
    Operation *op = collectiveOf(launch);
    return op && launch.structure.unit && mayBeGrouped(op) && storageOf(op);
  }

  /// The last collective of `launch`; null if it has none.
  static Operation *collectiveOf(const PlannedLaunch &launch) {
    return launch.body.empty() || !involvesPeers(launch.body.back()) ? nullptr : launch.body.back();
  }

  /// The storage that `op` gathers or reduces, or whose copy it gathers after an update; null for
  /// other collectives.
  static Attribute storageOf(Operation *op) {
    for (StringRef name : {FSDPDialect::gathersAttrName, FSDPDialect::reducesAttrName})
      if (Attribute storage = op->getDiscardableAttr(name))
        return storage;
    for (Operation *user : op->getUsers())
      if (auto store = dyn_cast<StoreOp>(user))
        return store.getStorageAttr();
    return nullptr;
  }

  static bool areAlike(const PlannedLaunch &a, const PlannedLaunch &b) {
    Operation *one = a.body.back(), *other = b.body.back();
    return a.structure.direction == b.structure.direction &&
           a.structure.stage == b.structure.stage &&
           a.structure.microbatch == b.structure.microbatch && one->getName() == other->getName() &&
           cast<CollectiveOpInterface>(one).getAxes() ==
               cast<CollectiveOpInterface>(other).getAxes();
  }

  /// The next launch that is like `first`, before any collective of another unit on its stream. A
  /// storage that is gathered or reduced again is another use.
  std::optional<size_t> findNext(size_t first) const {
    const PlannedLaunch &member = launches[first];
    if (member.body.size() == limits::kMaxGroupedCollectives)
      return std::nullopt;
    for (size_t i = first + 1; i < launches.size(); ++i) {
      const PlannedLaunch &other = launches[i];
      Operation *op = collectiveOf(other);
      if (!op || other.stream != member.stream)
        continue;
      if (other.structure.unit != member.structure.unit)
        return std::nullopt;
      if (!isMember(other) || !areAlike(member, other))
        continue;
      const bool isAgain = llvm::any_of(
          member.body, [&](Operation *mine) { return storageOf(mine) == storageOf(op); });
      return isAgain ? std::nullopt : std::optional<size_t>(i);
    }
    return std::nullopt;
  }

  /// Joins launches `first` and `last`: in the place of `first` for gathers, behind the launches
  /// that `last` depends on, and in the place of `last` for reductions, before the launches that
  /// depend on `first`. The place of the group; none if the order of the launches in between does
  /// not allow it, or if a kernel would be moved before a gather. `last` becomes a launch without a
  /// body.
  std::optional<size_t> join(size_t first, size_t last) {
    const bool gathers = launches[first].stream == streams::gather;
    std::vector<size_t> bound, free; // the launches in between, in order
    auto depends = [&](size_t end, size_t i) {
      return conflict(launches[end], launches[i]) || llvm::any_of(bound, [&](size_t other) {
               return conflict(launches[other], launches[i]);
             });
    };
    if (gathers) {
      for (size_t i = last; --i > first;)
        (depends(last, i) ? bound : free).push_back(i);
      std::reverse(bound.begin(), bound.end());
      std::reverse(free.begin(), free.end());
    } else {
      for (size_t i = first + 1; i < last; ++i)
        (depends(first, i) ? bound : free).push_back(i);
    }
    // Launches that are moved past the other collective are independent of it; so are the two
    // collectives.
    const size_t passed = gathers ? first : last;
    auto isOfGather = [&](size_t i) { // a cast, or a deferred update
      return launches[i].stream == streams::update ||
             (launches[i].stream == streams::gather && !collectiveOf(launches[i]));
    };
    if (depends(gathers ? last : first, passed) || (gathers && !llvm::all_of(bound, isOfGather)))
      return std::nullopt;
    std::vector<size_t> order = gathers ? bound : free;
    order.push_back(first);
    llvm::append_range(order, gathers ? free : bound);
    std::vector<PlannedLaunch> ordered;
    for (size_t i : order)
      ordered.push_back(std::move(launches[i]));
    PlannedLaunch &group = ordered[gathers ? bound.size() : free.size()];
    append(group, launches[last]);
    std::move(ordered.begin(), ordered.end(), launches.begin() + static_cast<ptrdiff_t>(first));
    return first + (gathers ? bound.size() : free.size());
  }

  void append(PlannedLaunch &group, PlannedLaunch &member) {
    if (group.body.size() == 1)
      group.name = names.get(
          (group.structure.unit.getValue() + " " + group.body.back()->getName().stripDialect())
              .str(),
          group.structure);
    group.structure.recomputed &= member.structure.recomputed;
    group.body.append(std::exchange(member.body, {}));
    group.values.append(member.values);
    group.results.append(member.results);
    group.ins.append(std::exchange(member.ins, {}));
    group.outs.append(std::exchange(member.outs, {}));
  }

  std::vector<PlannedLaunch> &launches;
  UniqueNames &names;
};

} // namespace

void mlir::fsdp::groupCollectives(SegmentPlan &plan) { Grouper(plan).run(); }
