//===- GroupCasts.cpp - casts of several units as one launch --------------===//
//
// Where no other rank has a part of a unit, its gather is a cast to the type of compute, which may
// take less time than its launch. Copies that are made earlier occupy memory for longer, which
// costs nothing where the segment needs more memory at another time.
//
//===----------------------------------------------------------------------===//

#include "passes/scheduled/GroupCasts.h"

#include "passes/KernelJoiner.h"
#include "passes/scheduled/ScheduleProblem.h"
#include "runtime/program/Limits.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {

class CastGrouper {
public:
  CastGrouper(SegmentPlan &plan, size_t persistent, schedule::Segment &segment,
              std::vector<int> &order)
      : plan(plan), persistent(persistent), launches(segment.launches), order(order) {
    for (size_t i = 0; i < order.size(); ++i)
      if (at(i).stream == streams::gather)
        gathers.push_back(i);
  }

  bool run() {
    if (llvm::count_if(gathers, [&](size_t i) { return isCast(at(i)); }) < 2)
      return false;
    countBytes();
    llvm::SmallDenseSet<int> gathered; // buffers that other launches of the stream read
    for (size_t i : gathers)
      for (const BufferView &place : at(i).ins)
        gathered.insert(place.buffer);
    auto isMember = [&](size_t i) {
      return isCast(at(i)) && !gathered.contains(at(i).outs.front().buffer);
    };
    std::vector<int> groupOf(order.size(), -1); // of a launch that became part of another one
    for (size_t next = 0; next < gathers.size();) {
      const size_t first = gathers[next++];
      if (!isMember(first))
        continue;
      SmallVector<size_t> members{first};
      for (; next < gathers.size() && members.size() < limits::kMaxKernelArguments / 2; ++next) {
        const size_t last = gathers[next];
        if (!isMember(last) || !areAlike(at(first), at(last)) || !mayMove(last, first))
          break;
        occupy(first, last, bytesOf(at(last).outs.front()));
        groupOf[last] = static_cast<int>(first);
        members.push_back(last);
      }
      if (members.size() > 1)
        join(members);
    }
    const size_t before = order.size();
    remove(groupOf);
    return order.size() < before;
  }

private:
  PlannedLaunch &at(size_t place) const { return plan.launches[order[place]]; }

  /// Only the cast of a storage is alone in its launch.
  static bool isCast(const PlannedLaunch &launch) {
    return launch.body.size() == 1 && nn::isElementwise(launch.body.front()) &&
           launch.ins.size() == 1;
  }

  static bool areAlike(const PlannedLaunch &a, const PlannedLaunch &b) {
    return a.structure.in(StringAttr()) == b.structure.in(StringAttr()) &&
           a.ins.front().type == b.ins.front().type && a.outs.front().type == b.outs.front().type;
  }

  static int64_t bytesOf(const BufferView &place) {
    return place.type.getNumElements() * getElementBytes(place.type);
  }

  /// The bytes of buffers of the segment between their first and their last launch.
  void countBytes() {
    std::vector<std::pair<int, int>> lives(plan.buffers.size(), {-1, -1});
    for (auto [place, launch] : llvm::enumerate(launches))
      for (const std::vector<schedule::Access> *accesses : {&launch.reads, &launch.writes})
        for (const schedule::Access &access : *accesses) {
          auto &[first, last] = lives[access.buffer];
          last = static_cast<int>(place);
          if (first < 0)
            first = last;
        }
    occupied.assign(launches.size() + 1, 0); // first as differences
    for (size_t buffer = persistent; buffer < lives.size(); ++buffer) {
      if (lives[buffer].first < 0)
        continue;
      const RankedTensorType type = plan.buffers[buffer].type;
      const int64_t bytes = type.getNumElements() * getElementBytes(type);
      occupied[lives[buffer].first] += bytes;
      occupied[lives[buffer].second + 1] -= bytes;
    }
    for (size_t place = 1; place < occupied.size(); ++place)
      occupied[place] += occupied[place - 1];
    most = *llvm::max_element(occupied);
  }

  void occupy(size_t from, size_t until, int64_t bytes) {
    for (size_t place = from; place < until; ++place)
      occupied[place] += bytes;
  }

  /// True if the launch at `from` may run at `to`, before others: none in between changes what it
  /// reads, and there is room for what it writes. A quarter of the bytes remains free, as launches
  /// of other streams run later than their places, and blocks cannot always lie side by side.
  bool mayMove(size_t from, size_t to) const {
    const schedule::Access &read = launches[from].reads.front();
    const int64_t room = most / 4 * 3 - bytesOf(at(from).outs.front());
    for (size_t place = to; place < from; ++place) {
      if (occupied[place] > room)
        return false;
      if (llvm::any_of(launches[place].writes,
                       [&](const schedule::Access &write) { return write.overlaps(read); }))
        return false;
    }
    return true;
  }

  /// Makes the casts at `members` one kernel at the first of them.
  void join(ArrayRef<size_t> members) {
    PlannedLaunch &group = at(members.front());
    schedule::Launch &launch = launches[members.front()];
    for (size_t place : members.drop_front()) {
      PlannedLaunch &member = at(place);
      group.body.append(std::exchange(member.body, {}));
      group.values.append(member.values);
      group.ins.append(std::exchange(member.ins, {}));
      group.outs.append(std::exchange(member.outs, {}));
      llvm::append_range(launch.reads, launches[place].reads);
      llvm::append_range(launch.writes, launches[place].writes);
    }
    Operation *cast = group.body.front();
    SmallVector<Type> types(members.size(), cast->getResult(0).getType());
    KernelJoiner joiner(cast, cast, types, group.values);
    SmallVector<Value> results;
    for (Operation *op : group.body)
      results.push_back(joiner.copy(op)->getResult(0));
    Operation *fused = joiner.finish(results);
    group.body.assign({fused});
    group.results.assign(fused->result_begin(), fused->result_end());
    group.structure.unit = nullptr;
    group.name = launch.name = plan.launchNames.get("parameters.cast", group.structure);
  }

  /// Removes launches that are part of another one; waits for them become waits for that.
  void remove(ArrayRef<int> groupOf) {
    std::vector<int> moved(order.size());
    size_t count = 0;
    for (size_t place = 0; place < order.size(); ++place) {
      if (groupOf[place] >= 0) {
        moved[place] = moved[groupOf[place]];
        continue;
      }
      moved[place] = static_cast<int>(count);
      order[count] = order[place];
      if (count != place)
        launches[count] = std::move(launches[place]);
      ++count;
    }
    order.resize(count);
    launches.resize(count);
    for (schedule::Launch &launch : launches)
      for (int &wait : launch.waits)
        wait = moved[wait];
  }

  SegmentPlan &plan;
  const size_t persistent;
  std::vector<schedule::Launch> &launches;
  std::vector<int> &order;
  std::vector<size_t> gathers;   ///< places of launches on the stream of gathers
  std::vector<int64_t> occupied; ///< bytes, at each place
  int64_t most = 0;
};

} // namespace

bool mlir::fsdp::hasLoneCasts(ModuleOp module) {
  for (auto program : module.getOps<ProgramOp>())
    for (auto segment : program.getOps<SegmentOp>())
      for (Operation &op : segment.getBody().front())
        if (op.getDiscardableAttr(FSDPDialect::gathersAttrName) && nn::isElementwise(&op) &&
            llvm::none_of(op.getUsers(), involvesPeers))
          return true;
  return false;
}

bool mlir::fsdp::groupCasts(SegmentPlan &plan, size_t persistent, schedule::Segment &segment,
                            std::vector<int> &order) {
  return CastGrouper(plan, persistent, segment, order).run();
}
