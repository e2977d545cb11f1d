//===- SegmentRun.cpp -----------------------------------------------------===//

#include "test/mutation/SegmentRun.h"

#include "passes/scheduled/ScheduleProblem.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace ::fsdp::mutation;

namespace {

/// The launches of a role that are not complete, by stream, in issue order.
struct RoleRun {
  const schedule::Segment *segment = nullptr;
  ArrayRef<LaunchOp> ops;
  std::vector<std::vector<int>> streams; ///< the last one is next
  std::vector<std::vector<int>> waits;
  std::vector<bool> done;

  int nextOf(size_t stream) const { return streams[stream].empty() ? -1 : streams[stream].back(); }
  bool isReady(int launch) const {
    return llvm::all_of(waits[launch], [&](int wait) { return done[wait]; });
  }
};

RoleRun prepare(const schedule::Role &role, const schedule::Segment &segment,
                ArrayRef<LaunchOp> ops) {
  RoleRun run{&segment, ops, std::vector<std::vector<int>>(role.streams.size()), {}, {}};
  std::vector<int> recorded(role.events.size(), -1);
  for (auto [number, launch] : llvm::enumerate(segment.launches)) {
    run.streams[launch.stream].insert(run.streams[launch.stream].begin(), static_cast<int>(number));
    run.waits.push_back(launch.waits);
    for (int event : launch.awaits)
      if (recorded[event] >= 0)
        run.waits.back().push_back(recorded[event]);
    for (int event : launch.records)
      recorded[event] = static_cast<int>(number);
  }
  run.done.resize(segment.launches.size());
  return run;
}

} // namespace

SegmentRun::SegmentRun(ModuleOp module, StringRef name, std::mt19937 &random) {
  const ScheduleProblem schedule = ScheduleProblem::ofPlaces(module);
  const schedule::Problem &problem = schedule.problem;
  std::vector<RoleRun> roles;
  for (auto [number, role] : llvm::enumerate(problem.roles))
    for (auto [index, segment] : llvm::enumerate(role.segments))
      if (segment.name == name)
        roles.push_back(prepare(role, segment, schedule.launches[number][index]));
  using Place = std::pair<int, size_t>; // role and stream
  /// The launches that complete together with the next one at `place`; none if it cannot.
  auto meet = [&](Place place) {
    SmallVector<Place> together;
    const RoleRun &own = roles[place.first];
    const int launch = own.nextOf(place.second);
    if (launch < 0 || !own.isReady(launch))
      return together;
    together.push_back(place);
    const schedule::Boxed<schedule::Collective> &collective =
        own.segment->launches[launch].collective;
    if (!collective)
      return together;
    for (int role : problem.communicators[collective->communicator].roles) {
      const RoleRun &other = roles[role];
      bool isThere = role == place.first;
      for (size_t stream = 0; stream < other.streams.size() && !isThere; ++stream) {
        const int next = other.nextOf(stream);
        if (next < 0 || !other.isReady(next))
          continue;
        const auto &theirs = other.segment->launches[next].collective;
        if (!theirs || theirs->communicator != collective->communicator)
          continue;
        together.push_back({role, stream});
        isThere = true;
      }
      if (!isThere)
        return SmallVector<Place>();
    }
    return together;
  };
  for (int time = 1;; ++time) {
    SmallVector<SmallVector<Place>> possible;
    for (size_t role = 0; role < roles.size(); ++role)
      for (size_t stream = 0; stream < roles[role].streams.size(); ++stream)
        if (SmallVector<Place> together = meet({static_cast<int>(role), stream}); !together.empty())
          possible.push_back(together);
    if (possible.empty())
      return;
    for (auto [role, stream] : possible[random() % possible.size()]) {
      RoleRun &run = roles[role];
      const int launch = run.nextOf(stream);
      run.streams[stream].pop_back();
      run.done[launch] = true;
      auto [at, isFirst] = ends.try_emplace(run.ops[launch], std::make_pair(time, time));
      at->second.first = std::min(at->second.first, time);
      at->second.second = std::max(at->second.second, time);
    }
  }
}
