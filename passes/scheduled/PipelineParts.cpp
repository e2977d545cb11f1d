//===- PipelineParts.cpp --------------------------------------------------===//

#include "passes/scheduled/PipelineParts.h"
#include "dialect/fsdp/AxisRoles.h"
#include "dialect/fsdp/Structure.h"
#include "passes/scheduled/SegmentPlan.h"

#include <map>

using namespace mlir;
using namespace mlir::fsdp;
using Action = schedule::PipelineAction;

PipelineParts::PipelineParts(const ScheduleProblem &schedule) : schedule(schedule) {
  std::vector<int64_t> ranks; // of each role, its coordinate on the axis
  if (schedule.programs.size() > 1)
    for (ProgramOp program : schedule.programs)
      for (NamedAttribute coordinate : program.getRole())
        if (getAxisRole(coordinate.getName()).carriesRoles) {
          axis = coordinate.getName().getValue();
          ranks.push_back(cast<IntegerAttr>(coordinate.getValue()).getInt());
        }
  if (ranks.size() != schedule.programs.size()) { // one program, or roles over other axes
    axis = "";
    return;
  }
  bool isDivided = true; // each role has stages
  for (size_t role = 0; role < ranks.size(); ++role)
    isDivided &= addRole(role, ranks[role]);
  if (!isDivided) {
    axis = "";
    parts.clear();
    return;
  }
  // With several microbatches, parts without a number belong to none of them.
  for (auto &ofRole : parts)
    for (auto &ofSegment : ofRole)
      for (std::optional<PipelinePart> &part : ofSegment)
        if (part && part->microbatch < 0) {
          if (microbatches > 0)
            part.reset();
          else
            part->microbatch = 0;
        }
  microbatches = std::max<int64_t>(microbatches, 1);
}

/// Finds the launches of a rank that belong to its stages, with the numbers of their microbatches.
/// Returns whether there are any.
bool PipelineParts::addRole(size_t role, int64_t rank) {
  const auto count = static_cast<int64_t>(schedule.programs.size());
  auto &ofRole = parts.emplace_back();
  bool isFound = false;
  for (auto [segment, launches] :
       llvm::zip_equal(schedule.segments[role], schedule.launches[role])) {
    SegmentOp parent = segment;
    auto &ofSegment = ofRole.emplace_back(launches.size());
    if (parent.getKind() != StepKind::train || parent.getDrain())
      continue;
    std::set<int64_t> isBackward; // stages
    for (auto [part, op] : llvm::zip_equal(ofSegment, launches)) {
      const Structure structure = getStructure(op);
      if (LaunchOp(op).getStream() != streams::compute ||
          structure.direction == Direction::update || structure.stage % count != rank)
        continue;
      const bool backward = structure.direction == Direction::backward;
      if (backward)
        isBackward.insert(structure.stage);
      else if (structure.microbatch < 0 && isBackward.count(structure.stage))
        continue; // sums of losses, behind all microbatches
      part = PipelinePart{backward, structure.stage, structure.microbatch};
      microbatches = std::max(microbatches, structure.microbatch + 1);
      isFound = true;
    }
  }
  return isFound;
}

/// Of each launch of a rank, by segment, whether a cotangent that it sends back depends on it.
std::vector<std::vector<bool>> PipelineParts::findSent(size_t role) const {
  std::vector<std::vector<bool>> isSent;
  for (const schedule::Segment &segment : schedule.problem.roles[role].segments) {
    std::vector<bool> &ofSegment = isSent.emplace_back(segment.launches.size());
    DenseMap<int, SmallVector<schedule::Access>> needed; // by buffer: reads that sends need
    for (size_t i = segment.launches.size(); i-- > 0;) {
      const schedule::Launch &launch = segment.launches[i];
      const bool isSend = launch.collective &&
                          launch.collective->kind == SendOp::getOperationName().split('.').second &&
                          launch.direction == stringifyDirection(Direction::backward);
      ofSegment[i] =
          isSend || llvm::any_of(launch.writes, [&](const schedule::Access &write) {
            auto known = needed.find(write.buffer);
            return known != needed.end() && llvm::any_of(known->second, [&](const auto &access) {
                     return access.overlaps(write);
                   });
          });
      if (ofSegment[i])
        for (const schedule::Access &read : launch.reads)
          if (SmallVector<schedule::Access> &ofBuffer = needed[read.buffer];
              !llvm::is_contained(ofBuffer, read))
            ofBuffer.push_back(read);
    }
  }
  return isSent;
}

/// Whether a rank first computes all that it sends back, and then the gradients of weights, on
/// which nothing of that depends: so is a backward divided that no other microbatch interrupts.
bool PipelineParts::hasWeightGradientsLast(size_t role) const {
  for (auto [ofSegment, isSent] : llvm::zip_equal(parts[role], findSent(role))) {
    bool isBehind = true, sends = false, hasGradients = false;
    for (size_t i = isSent.size(); i-- > 0;) {
      if (!ofSegment[i] || !ofSegment[i]->backward)
        continue;
      if (isSent[i])
        isBehind = false;
      else if (!isBehind)
        return false; // a gradient before something that is sent
      sends |= isSent[i];
      hasGradients |= !isSent[i];
    }
    if (sends && hasGradients)
      return true;
  }
  return false;
}

std::set<int64_t> PipelineParts::findFrozenStages() const {
  std::set<int64_t> frozen;
  for (size_t role = 0; role < parts.size(); ++role)
    for (auto [ofSegment, isSent] : llvm::zip_equal(parts[role], findSent(role))) {
      for (auto [part, sent] : llvm::zip_equal(ofSegment, isSent))
        if (part && part->backward && sent)
          frozen.insert(part->stage);
      for (auto [part, sent] : llvm::zip_equal(ofSegment, isSent))
        if (part && part->backward && !sent)
          frozen.erase(part->stage);
    }
  return frozen;
}

void PipelineParts::visit(int role,
                          llvm::function_ref<void(const PipelinePart &, int, int)> visit) const {
  if (parts.empty())
    return;
  for (auto [segment, ofSegment] : llvm::enumerate(parts[role]))
    for (auto [launch, part] : llvm::enumerate(ofSegment))
      if (part)
        visit(*part, static_cast<int>(segment), static_cast<int>(launch));
}

std::vector<schedule::RankOrder> PipelineParts::readOrders() const {
  std::vector<schedule::RankOrder> orders;
  bool isDivided = false;
  for (int role = 0, end = static_cast<int>(parts.size()); role < end; ++role) {
    schedule::RankOrder &order = orders.emplace_back();
    // Launches of one microbatch in one stage, one after the other. Where the last stage turns
    // round, kernels of backward may have ops of forward, before others of forward or all of them.
    struct Run {
      int64_t stage, microbatch;
      bool forward = false, backward = false;
    };
    std::vector<Run> runs;
    visit(role, [&](const PipelinePart &part, int, int) {
      if (runs.empty() || runs.back().stage != part.stage ||
          runs.back().microbatch != part.microbatch)
        runs.push_back({part.stage, part.microbatch});
      (part.backward ? runs.back().backward : runs.back().forward) = true;
    });
    std::set<Action> known;
    bool isInterrupted = false;
    auto add = [&](Action action) {
      if (action.kind == Action::Kind::backward && known.count(action)) {
        action.kind = Action::Kind::weightGradient;
        isDivided = true;
      }
      isInterrupted |= !known.insert(action).second;
      order.push_back(action);
    };
    for (const Run &run : runs) {
      if (run.forward || !known.count({Action::Kind::forward, run.stage, run.microbatch}))
        add({Action::Kind::forward, run.stage, run.microbatch});
      if (run.backward)
        add({Action::Kind::backward, run.stage, run.microbatch});
    }
    if (isInterrupted)
      return {};
  }
  if (microbatches == 1)
    for (size_t role = 0; role < parts.size(); ++role)
      isDivided |= hasWeightGradientsLast(role);
  if (!isDivided)
    return orders;
  const std::set<int64_t> frozen = findFrozenStages();
  for (schedule::RankOrder &order : orders) {
    const std::set<Action> known(order.begin(), order.end());
    schedule::RankOrder whole;
    for (const Action &action : order) {
      whole.push_back(action);
      const Action behind{Action::Kind::weightGradient, action.stage, action.microbatch};
      if (action.kind == Action::Kind::backward && !known.count(behind) &&
          !frozen.count(action.stage))
        whole.push_back(behind);
    }
    order = std::move(whole);
  }
  return orders;
}

std::vector<std::string> PipelineParts::listUnits(int role) const {
  std::vector<std::string> units;
  visit(role, [&](const PipelinePart &part, int segment, int launch) {
    const StringRef unit = schedule.problem.roles[role].segments[segment].launches[launch].unit;
    if (!part.backward && !unit.empty() && !llvm::is_contained(units, unit))
      units.push_back(unit.str());
  });
  return units;
}

int64_t PipelineParts::countAlive(int role, ArrayRef<BufferKind> kinds) const {
  const schedule::Role &all = schedule.problem.roles[role];
  struct Life {
    int64_t first = -1, last = -1;
  };
  std::map<std::pair<int64_t, int64_t>, Life> lives; // by stage and microbatch
  std::vector<bool> computed(kinds.size(), false);   // a launch of forward writes it
  int64_t time = 0;
  visit(role, [&](const PipelinePart &part, int segment, int number) {
    const schedule::Launch &launch = all.segments[segment].launches[number];
    auto touch = [&](ArrayRef<schedule::Access> accesses) {
      for (const schedule::Access &access : accesses) {
        if (kinds[access.buffer] != BufferKind::saved || !computed[access.buffer])
          continue;
        Life &life = lives[{part.stage, part.microbatch}];
        if (life.first < 0)
          life.first = time;
        life.last = time;
      }
    };
    if (!part.backward)
      for (const schedule::Access &write : launch.writes)
        computed[write.buffer] = true;
    touch(launch.reads);
    touch(launch.writes);
    ++time;
  });
  std::vector<std::pair<int64_t, int64_t>> changes;
  for (const auto &[part, life] : lives) {
    changes.push_back({life.first, 1});
    changes.push_back({life.last + 1, -1});
  }
  llvm::sort(changes);
  int64_t alive = 0, most = 0;
  for (const auto &[when, more] : changes)
    most = std::max(most, alive += more);
  return most;
}
