//===- MemoryReport.cpp - sums over a scheduled module --------------------===//

#include "passes/scheduled/MemoryReport.h"
#include "dialect/fsdp/AxisParts.h"
#include "dialect/fsdp/CollectiveGroup.h"
#include "dialect/fsdp/Structure.h"
#include "passes/schedule/MemoryPlanner.h"
#include "passes/schedule/Peak.h"
#include "passes/scheduled/PipelineParts.h"
#include "passes/scheduled/ScheduleProblem.h"
#include "passes/sharding/MeshAxes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include <set>

using namespace mlir;
using namespace mlir::fsdp;

static int64_t bytesOf(RankedTensorType type) {
  return BufferType::get(type.getContext(), type).getSizeInBytes();
}

/// Adds up the bytes of parameters, gradients and states without sharding.
static void addReplicated(ModuleOp module, const ScheduleProblem &schedule, MemoryReport &report) {
  llvm::StringSet<> updated;
  for (const schedule::Role &role : schedule.problem.roles)
    for (const schedule::Segment &segment : role.segments)
      for (const schedule::Launch &launch : segment.launches)
        updated.insert(launch.updates.begin(), launch.updates.end());
  SymbolTable symbols(module);
  for (auto storage : module.getOps<StorageOp>())
    for (auto member : storage.getMembers().getAsRange<MemberAttr>()) {
      auto param = symbols.lookup<ParamOp>(member.getParam().getValue());
      int64_t bytes = bytesOf(param.getTensorType());
      report.replicatedParameters += bytes;
      report.replicatedOptimizer += bytes * static_cast<int64_t>(storage.getStates().size());
      if (updated.contains(storage.getSymName()))
        report.replicatedGradients += bytes;
    }
}

/// Adds the collectives of `launches`, which a step runs `times` times, to `counts`, in the order
/// of their first call.
static void countCollectives(ArrayRef<LaunchOp> launches, int64_t times,
                             std::vector<CollectiveCount> &counts) {
  for (LaunchOp launch : launches)
    for (CollectiveOpInterface op : getCollectives(launch)) {
      CollectiveCount call{
          op->getName().stripDialect().str(), {}, op.getBytes(), op.getReceivedBytes(), times};
      for (const std::string &axis : spellAxes(getMesh(op), op.getAxes()))
        call.axes.push_back(axis);
      auto same =
          llvm::find_if(counts, [&](const CollectiveCount &other) { return other.isLike(call); });
      if (same != counts.end())
        same->count += times;
      else
        counts.push_back(call);
    }
}

/// Adds the storages whose gradients the segment `index` of `role`, which a step runs `times`
/// times, reduces more than once in a microbatch: a buffer that holds gradients begins a reduction,
/// and collectives on its result are part of it.
static void countTied(const ScheduleProblem &schedule, int role, size_t index, int64_t times,
                      std::vector<TiedGradient> &tied) {
  struct Reductions {
    int64_t bytes = 0, count = 0, doubled = 0;
    llvm::DenseMap<int64_t, int64_t> ofMicrobatch;
  };
  llvm::MapVector<StringAttr, Reductions> ofStorage;
  llvm::DenseMap<int, std::pair<StringAttr, int64_t>> begun; // by buffer
  const schedule::Segment &segment = schedule.problem.roles[role].segments[index];
  for (auto [op, launch] : llvm::zip_equal(schedule.launches[role][index], segment.launches)) {
    // Each collective has one operand and one result, except transfers.
    for (auto [read, write, collective] :
         llvm::zip(launch.reads, launch.writes, getCollectives(op))) {
      const int input = read.buffer;
      BufferOp buffer = schedule.buffers[role][input];
      if (buffer.getWhat() == BufferOp::gradient && buffer.getStorageAttr()) {
        Reductions &all = ofStorage[buffer.getStorageAttr().getAttr()];
        all.bytes = schedule.problem.roles[role].buffers[input].size;
        const int64_t count = ++all.ofMicrobatch[getStructure(op).microbatch];
        all.count = std::max(all.count, count);
        begun[input] = {buffer.getStorageAttr().getAttr(), count};
      }
      auto part = begun.find(input);
      if (part == begun.end())
        continue;
      const std::pair<StringAttr, int64_t> reduction = part->second;
      if (reduction.second > 1)
        ofStorage[reduction.first].doubled += times * collective.getReceivedBytes();
      begun[write.buffer] = reduction;
    }
  }
  SymbolTable symbols(schedule.programs[role]->getParentOp());
  for (const auto &entry : ofStorage) {
    const auto &all = entry.second;
    if (all.doubled == 0)
      continue;
    auto storage = symbols.lookup<StorageOp>(entry.first);
    auto member = cast<MemberAttr>(storage.getMembers()[0]);
    const std::string unit = symbols.lookup<ParamOp>(member.getParam().getAttr()).getUnit().str();
    auto same = llvm::find_if(tied, [&](const TiedGradient &other) {
      return other.unit == unit && other.memory == all.bytes;
    });
    if (same == tied.end())
      same = tied.insert(tied.end(), {unit, 0, 0, all.bytes});
    same->reductions = std::max(same->reductions, all.count);
    same->doubled += all.doubled;
  }
}

/// Adds the launches of `segment`, which a step runs `times` times.
static void countWork(const schedule::Segment &segment, int64_t times,
                      std::vector<WorkCount> &work) {
  for (const schedule::Launch &launch : segment.launches) {
    if (launch.kind.empty())
      continue;
    auto same = llvm::find_if(work, [&](const WorkCount &other) {
      return other.kind == launch.kind && other.direction == launch.direction;
    });
    if (same == work.end())
      same = work.insert(work.end(), {launch.kind.str(), launch.direction.str(), 0, {}});
    same->count += times;
    same->cost.flops += times * launch.cost.flops;
    same->cost.bytesRead += times * launch.cost.bytesRead;
    same->cost.bytesWritten += times * launch.cost.bytesWritten;
  }
}

/// Merges the calls of two roles: calls of the same kind run at the same time.
static void joinCollectives(std::vector<CollectiveCount> &all,
                            const std::vector<CollectiveCount> &counts) {
  for (const CollectiveCount &call : counts) {
    auto same =
        llvm::find_if(all, [&](const CollectiveCount &other) { return other.isLike(call); });
    if (same == all.end())
      all.push_back(call);
    else
      same->count = std::max(same->count, call.count);
  }
}

/// Adds those of a role whose storages no role before has.
static void joinTied(std::vector<TiedGradient> &all, const std::vector<TiedGradient> &tied) {
  for (const TiedGradient &gradient : tied)
    if (llvm::none_of(all, [&](const TiedGradient &other) {
          return other.unit == gradient.unit && other.memory == gradient.memory;
        }))
      all.push_back(gradient);
}

/// The storages that several programs own: all do where it names none.
static void addTiedCopies(ModuleOp module, const ScheduleProblem &schedule, MemoryReport &report) {
  if (report.roles.empty())
    return;
  SymbolTable symbols(module);
  llvm::DenseSet<StringAttr> used; // storages that a launch accesses
  for (auto [role, buffers] : llvm::zip_equal(schedule.problem.roles, schedule.buffers)) {
    std::vector<bool> isAccessed(role.buffers.size());
    for (const schedule::Segment &segment : role.segments)
      for (const schedule::Launch &launch : segment.launches)
        for (const std::vector<schedule::Access> *accesses : {&launch.reads, &launch.writes})
          for (const schedule::Access &access : *accesses)
            isAccessed[access.buffer] = true;
    for (auto [op, accessed] : llvm::zip_equal(buffers, isAccessed))
      if (BufferOp buffer = op; accessed && buffer.getStorageAttr())
        used.insert(buffer.getStorageAttr().getAttr());
  }
  for (auto storage : module.getOps<StorageOp>()) {
    std::optional<ArrayAttr> roles = storage.getRoles();
    if (roles && roles->size() < 2)
      continue;
    const int64_t bytes = bytesOf(storage.getShardType());
    TiedCopies copies;
    copies.parameters = bytes;
    copies.optimizer = bytes * static_cast<int64_t>(storage.getStates().size());
    copies.isUsed = used.contains(storage.getSymNameAttr());
    for (auto member : storage.getMembers().getAsRange<MemberAttr>())
      copies.names.push_back(member.getParam().getValue().str());
    copies.unit = symbols.lookup<ParamOp>(copies.names.front()).getUnit().str();
    if (roles)
      for (auto role : roles->getAsRange<FlatSymbolRefAttr>())
        copies.roles.push_back(role.getValue().str());
    else
      for (const RoleMemory &role : report.roles)
        copies.roles.push_back(role.name);
    report.tiedCopies.push_back(std::move(copies));
  }
}

std::vector<StringAttr> mlir::fsdp::findBufferUnits(const ScheduleProblem &schedule, int index) {
  const schedule::Role &role = schedule.problem.roles[index];
  std::vector<LaunchOp> writers = findFirstWriters(schedule, index);
  SymbolTable symbols(schedule.programs[index]->getParentOp());
  std::vector<StringAttr> units;
  for (auto [b, buffer] : llvm::enumerate(schedule.buffers[index])) {
    BufferOp op = buffer;
    StringAttr &unit = units.emplace_back();
    if (FlatSymbolRefAttr symbol = op.getStorageAttr()) {
      auto storage = symbols.lookup<StorageOp>(symbol.getAttr());
      for (auto member : storage.getMembers().getAsRange<MemberAttr>())
        unit = symbols.lookup<ParamOp>(member.getParam().getAttr()).getUnitAttr();
    } else if (writers[b] && !role.buffers[b].isPersistent()) {
      unit = getStructure(writers[b]).unit;
    }
  }
  return units;
}

/// The buffers that are live at the peak of one role.
static MemoryPeak measurePeak(const ScheduleProblem &schedule, int index,
                              ArrayRef<BufferKind> kinds,
                              const std::vector<schedule::SegmentTouches> &touches) {
  const schedule::Role &role = schedule.problem.roles[index];
  schedule::Peak found = schedule::findPeak(role, touches);
  MemoryPeak peak;
  peak.bytes = peak.alignment = found.bytes;
  if (found.segment >= 0)
    peak.segment = role.segments[found.segment].name;
  if (found.launch >= 0) {
    LaunchOp launch = schedule.launches[index][found.segment][found.launch];
    Structure structure = getStructure(launch);
    peak.launch = launch.getFullName();
    peak.stream = launch.getStream().str();
    peak.unit = structure.unit ? structure.unit.str() : "";
    peak.direction = stringifyDirection(structure.direction).str();
  }
  const std::vector<StringAttr> units = findBufferUnits(schedule, index);
  for (int b : found.buffers) {
    const StringAttr unit = units[b];
    const int64_t bytes = role.buffers[b].size;
    peak.buffers.push_back({role.buffers[b].name, unit ? unit.str() : "", kinds[b], bytes});
    peak.kinds[static_cast<int>(kinds[b])] += bytes;
    peak.alignment -= bytes;
  }
  // Of the same size, in their order in the role.
  std::vector<std::pair<int64_t, size_t>> order;
  for (auto [i, buffer] : llvm::enumerate(peak.buffers))
    order.push_back({-buffer.bytes, i});
  llvm::sort(order);
  std::vector<LiveBuffer> sorted;
  for (auto [bytes, i] : order)
    sorted.push_back(std::move(peak.buffers[i]));
  peak.buffers = std::move(sorted);
  return peak;
}

/// The numbers of one role, without its peak.
static MemoryReport measureRole(const ScheduleProblem &schedule, int index,
                                ArrayRef<BufferKind> kinds,
                                std::vector<schedule::SegmentTouches> &touches) {
  const schedule::Role &role = schedule.problem.roles[index];
  MemoryReport report;
  for (auto [buffer, kind] : llvm::zip_equal(role.buffers, kinds)) {
    if (!buffer.isPersistent())
      continue;
    report.persistent += llvm::alignTo(buffer.size, schedule::kAlignment);
    if (kind == BufferKind::parameters)
      report.parameters += buffer.size;
    if (kind == BufferKind::optimizer)
      report.optimizer += buffer.size;
  }
  std::vector<int64_t> gradientsOf(role.segments.size(),
                                   0); // for the updates of each segment
  for (size_t s = 0; s < role.segments.size(); ++s) {
    std::vector<bool> gathered(role.buffers.size()), messages(role.buffers.size()),
        other(role.buffers.size());
    for (size_t b = 0; b < role.buffers.size(); ++b) {
      gathered[b] = kinds[b] == BufferKind::gathered;
      messages[b] = kinds[b] == BufferKind::messages;
      other[b] = !gathered[b] && !messages[b];
    }
    int64_t &gradients = gradientsOf[s];
    for (auto [op, launch] :
         llvm::zip_equal(schedule.launches[index][s], role.segments[s].launches))
      for (auto step : LaunchOp(op).getBody().getOps<OptimizerStepOp>())
        if (auto argument = dyn_cast<BlockArgument>(step.getGradient())) {
          const schedule::Access &access = launch.reads[argument.getArgNumber()];
          other[access.buffer] = false;
          gradients += access.end - access.begin;
        }
    touches.emplace_back(role, static_cast<int>(s));
    const std::vector<int64_t> peaks =
        schedule::peaksOf(role, touches.back(), {gathered, messages, other});
    report.gathered = std::max(report.gathered, peaks[0]);
    report.messages = std::max(report.messages, peaks[1]);
    report.activations = std::max(report.activations, peaks[2]);
  }
  if (role.walks.empty())
    for (int64_t gradients : gradientsOf)
      report.gradients = std::max(report.gradients, gradients);
  // The updates of a step may be in several of its segments.
  for (const schedule::ExecutionPlan &walk : role.walks) {
    const std::set<int> segments(walk.segments.begin(), walk.segments.end());
    int64_t gradients = 0;
    for (int segment : segments)
      gradients += gradientsOf[segment];
    report.gradients = std::max(report.gradients, gradients);
  }
  std::vector<int64_t> times(role.segments.size(), 1);
  for (const schedule::ExecutionPlan &walk : role.walks)
    for (size_t i = 0; i < walk.segments.size(); ++i)
      times[walk.segments[i]] = walk.times[i];
  // A drain performs the updates of a step in place of the next step.
  for (auto [segment, runs] : llvm::zip_equal(schedule.segments[index], times))
    if (SegmentOp(segment).getDrain())
      runs = 0;
  for (auto [segment, launches, runs] :
       llvm::zip_equal(schedule.segments[index], schedule.launches[index], times))
    if (runs > 0)
      countCollectives(launches, runs,
                       SegmentOp(segment).getKind() == StepKind::train
                           ? report.collectives
                           : report.evaluateCollectives);
  for (size_t s = 0; s < role.segments.size(); ++s)
    if (times[s] > 0 && SegmentOp(schedule.segments[index][s]).getKind() == StepKind::train) {
      countWork(role.segments[s], times[s], report.work);
      countTied(schedule, index, s, times[s], report.tiedGradients);
    }
  report.arena = role.arena >= 0 ? role.arena : schedule::planMemory(role).arena;
  report.transient = report.arena - report.persistent;
  return report;
}

MemoryReport mlir::fsdp::computeMemoryReport(ModuleOp module) {
  return computeMemoryReport(module, ScheduleProblem(module));
}

MemoryReport mlir::fsdp::computeMemoryReport(ModuleOp module, const ScheduleProblem &schedule) {
  MemoryReport report;
  MeshAttr mesh =
      getMesh(module.getBody()->empty() ? module.getOperation() : &module.getBody()->front());
  report.mesh = spellMesh(mesh);
  if (auto attention = module->getAttrOfType<StringAttr>(kContextAttentionAttrName))
    report.contextAttention = attention.str();
  if (auto order = module->getAttrOfType<StringAttr>(kContextOrderAttrName))
    report.contextOrder = order.str();
  report.ranks = mesh.getNumRanks();
  addReplicated(module, schedule, report);
  const PipelineParts parts(schedule);
  report.pipelineAxis = parts.getAxis().str();
  report.microbatches = parts.getMicrobatches();
  int64_t mostFlops = -1;
  for (int index = 0, end = static_cast<int>(schedule.programs.size()); index < end; ++index) {
    const std::vector<BufferKind> kinds = classifyBuffers(schedule, index);
    std::vector<schedule::SegmentTouches> touches; // of its segments
    MemoryReport role = measureRole(schedule, index, kinds, touches);
    // No buffers take more together than their arena.
    if (role.arena > report.peak.bytes || index == 0)
      role.peak = measurePeak(schedule, index, kinds, touches);
    role.lowerBound = role.peak.bytes;
    for (auto field : {&MemoryReport::parameters, &MemoryReport::gradients,
                       &MemoryReport::optimizer, &MemoryReport::gathered, &MemoryReport::messages,
                       &MemoryReport::activations, &MemoryReport::persistent,
                       &MemoryReport::transient, &MemoryReport::arena, &MemoryReport::lowerBound})
      report.*field = std::max(report.*field, role.*field);
    int64_t flops = 0;
    for (const WorkCount &work : role.work)
      flops += work.cost.flops;
    if (end > 1) {
      RoleMemory &memory = report.roles.emplace_back(
          RoleMemory{schedule.problem.roles[index].name, role.parameters, role.gradients,
                     role.optimizer, role.gathered, role.activations, role.messages, role.arena,
                     flops, role.collectives, role.evaluateCollectives});
      if (!parts.getAxis().empty())
        memory.stage = {parts.listUnits(index), parts.countAlive(index, kinds)};
    }
    if (role.peak.bytes > report.peak.bytes)
      report.peak = role.peak;
    if (flops > mostFlops) {
      mostFlops = flops;
      report.work = role.work;
      report.workRole = end > 1 ? schedule.problem.roles[index].name : "";
    }
    joinTied(report.tiedGradients, role.tiedGradients);
    joinCollectives(report.collectives, role.collectives);
    joinCollectives(report.evaluateCollectives, role.evaluateCollectives);
  }
  if (const std::vector<schedule::RankOrder> orders = parts.readOrders(); !orders.empty()) {
    const schedule::PipelineTimes times =
        schedule::timePipeline(orders, {}, parts.findFrozenStages());
    if (times.fault.empty())
      for (auto [role, idle] : llvm::zip_equal(report.roles, times.idle))
        role.stage.idle = static_cast<double>(idle) / static_cast<double>(times.makespan);
  }
  addTiedCopies(module, schedule, report);
  return report;
}

double MemoryReport::getPipelineIdle() const {
  double idle = -1;
  for (const RoleMemory &role : roles)
    idle = std::max(idle, role.stage.idle);
  return idle;
}
