//===- MemoryReport.cpp - sums over a scheduled module --------------------===//

#include "passes/scheduled/MemoryReport.h"
#include "passes/MeshAxes.h"
#include "passes/scheduled/ScheduleProblem.h"
#include "passes/scheduled/SegmentPlan.h"
#include "passes/schedule/MemoryPlanner.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fsdp;

static int64_t bytesOf(RankedTensorType type) {
  return BufferType::get(type.getContext(), type).getSizeInBytes();
}

/// Adds up what parameters, gradients and states would take unsplit.
static void addReplicated(ModuleOp module, MemoryReport &report) {
  llvm::StringSet<> updated;
  module.walk([&](OptimizerStepOp step) { updated.insert(step.getStorage()); });
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

/// Adds the collectives of `segment` to `counts`, in the order of their first call.
static void countCollectives(SegmentOp segment, std::vector<CollectiveCount> &counts) {
  segment.walk([&](CollectiveOpInterface op) {
    if (isa<AllSliceOp>(op))
      return; // moves nothing
    CollectiveCount call{op->getName().stripDialect().str(), {}, op.getBytes(), 1};
    for (StringAttr axis : op.getAxes())
      call.axes.push_back(axis.getValue().str());
    auto same = llvm::find_if(counts, [&](const CollectiveCount &other) {
      return other.kind == call.kind && other.axes == call.axes && other.bytes == call.bytes;
    });
    if (same != counts.end())
      ++same->count;
    else
      counts.push_back(call);
  });
}

/// Joins what two roles do: calls of the same kind happen at once.
static void joinCollectives(std::vector<CollectiveCount> &all,
                            const std::vector<CollectiveCount> &counts) {
  for (const CollectiveCount &call : counts) {
    auto same = llvm::find_if(all, [&](const CollectiveCount &other) {
      return other.kind == call.kind && other.axes == call.axes && other.bytes == call.bytes;
    });
    if (same == all.end())
      all.push_back(call);
    else
      same->count = std::max(same->count, call.count);
  }
}

/// The numbers of one role.
static MemoryReport measureRole(const ScheduleProblem &schedule, int index) {
  const schedule::Role &role = schedule.problem.roles[index];
  MemoryReport report;
  for (auto [op, buffer] : llvm::zip_equal(schedule.buffers[index], role.buffers)) {
    BufferOp declared = op;
    if (!buffer.isPersistent())
      continue;
    report.persistent += llvm::alignTo(buffer.size, schedule::kAlignment);
    if (declared.getStorage())
      (*declared.getWhat() == "parameter" ? report.parameters : report.optimizer) += buffer.size;
  }
  for (size_t s = 0; s < role.segments.size(); ++s) {
    std::vector<bool> gathered(role.buffers.size()), gradient(role.buffers.size());
    std::vector<bool> other(role.buffers.size());
    int64_t gradients = 0;
    for (auto [op, launch] :
         llvm::zip_equal(schedule.launches[index][s], role.segments[s].launches)) {
      LaunchOp launchOp = op;
      if (launchOp.getStream() == streams::gather) {
        // A shard that is cast to be gathered is not whole.
        for (const schedule::Access &shard : launch.reads)
          gathered[shard.buffer] = false;
        for (const schedule::Access &whole : launch.writes)
          gathered[whole.buffer] = true;
      }
      for (auto step : launchOp.getBody().getOps<OptimizerStepOp>())
        if (auto argument = dyn_cast<BlockArgument>(step.getGradient())) {
          const schedule::Access &access = launch.reads[argument.getArgNumber()];
          gradient[access.buffer] = true;
          gradients += access.end - access.begin;
        }
    }
    for (size_t b = 0; b < role.buffers.size(); ++b)
      other[b] = !gathered[b] && !gradient[b];
    int segment = static_cast<int>(s);
    report.gradients = std::max(report.gradients, gradients);
    report.gathered = std::max(report.gathered, schedule::peakOf(role, segment, gathered));
    report.activations = std::max(report.activations, schedule::peakOf(role, segment, other));
  }
  for (SegmentOp segment : schedule.segments[index])
    countCollectives(segment, segment.getKind() == StepKind::train ? report.collectives
                                                                   : report.evaluateCollectives);
  report.lowerBound = schedule::lowerBoundOf(role);
  report.arena = role.arena >= 0 ? role.arena : schedule::planMemory(role).arena;
  report.transient = report.arena - report.persistent;
  return report;
}

MemoryReport mlir::fsdp::computeMemoryReport(ModuleOp module) {
  ScheduleProblem schedule(module);
  MemoryReport report;
  MeshAttr mesh = getMesh(module.getBody()->empty() ? module.getOperation()
                                                    : &module.getBody()->front());
  report.mesh = describeAxes(mesh);
  report.ranks = mesh.getNumRanks();
  addReplicated(module, report);
  for (int index = 0, end = static_cast<int>(schedule.programs.size()); index < end; ++index) {
    MemoryReport role = measureRole(schedule, index);
    for (auto field : {&MemoryReport::parameters, &MemoryReport::gradients,
                       &MemoryReport::optimizer, &MemoryReport::gathered,
                       &MemoryReport::activations, &MemoryReport::persistent,
                       &MemoryReport::transient, &MemoryReport::arena, &MemoryReport::lowerBound})
      report.*field = std::max(report.*field, role.*field);
    joinCollectives(report.collectives, role.collectives);
    joinCollectives(report.evaluateCollectives, role.evaluateCollectives);
  }
  return report;
}

static llvm::json::Array toJSON(const std::vector<CollectiveCount> &counts) {
  llvm::json::Array array;
  for (const CollectiveCount &call : counts)
    array.push_back(llvm::json::Object{{"kind", call.kind},
                                       {"axes", llvm::json::Array(call.axes)},
                                       {"bytes", call.bytes},
                                       {"count", call.count}});
  return array;
}

llvm::json::Value MemoryReport::toJSON() const {
  return llvm::json::Object{
      {"mesh", mesh},
      {"ranks", ranks},
      {"parameters", parameters},
      {"gradients", gradients},
      {"optimizer", optimizer},
      {"gathered", gathered},
      {"activations", activations},
      {"persistent", persistent},
      {"transient", transient},
      {"arena", arena},
      {"lower_bound", lowerBound},
      {"replicated_parameters", replicatedParameters},
      {"replicated_gradients", replicatedGradients},
      {"replicated_optimizer", replicatedOptimizer},
      {"collectives", ::toJSON(collectives)},
      {"evaluate_collectives", ::toJSON(evaluateCollectives)},
  };
}

/// 1234567 as "1.18 MiB", with three digits.
static std::string shorten(int64_t bytes) {
  static constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto size = static_cast<double>(bytes);
  int unit = 0;
  for (; size >= 1024 && unit < 5; ++unit)
    size /= 1024;
  const int digits = unit == 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.*f %s", digits, size, units[unit]);
  return text;
}

/// 1234567 as "1,234,567".
static std::string group(int64_t number) {
  std::string digits = std::to_string(number);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

void MemoryReport::print(llvm::raw_ostream &os) const {
  auto row = [&](StringRef what, const std::string &left, int64_t right, StringRef note = "") {
    os << llvm::formatv("  {0,-14}{1,16}{2,16}{3,11}", what, left, group(right), shorten(right));
    if (!note.empty())
      os << "  " << note;
    os << "\n";
  };
  os << "memory of each of " << ranks << (ranks == 1 ? " rank" : " ranks") << " (" << mesh
     << "), in bytes\n";
  os << llvm::formatv("  {0,-14}{1,16}{2,16}\n", "", "replicated", "sharded");
  row("parameters", group(replicatedParameters), parameters);
  row("gradients", group(replicatedGradients), gradients);
  row("optimizer", group(replicatedOptimizer), optimizer);
  row("total", group(replicatedParameters + replicatedGradients + replicatedOptimizer),
      parameters + gradients + optimizer);
  row("gathered", "", gathered, "peak unsharded parameters");
  row("activations", "", activations, "peak of all other transient buffers");
  row("arena", "", arena,
      "allocated once: " + group(persistent) + " persistent, " + group(transient) + " transient");
  row("lower bound", "", lowerBound, "of the arena, for this schedule");
  for (auto [title, counts] :
       {std::make_pair("collectives of a training step", &collectives),
        std::make_pair("collectives of an evaluation step", &evaluateCollectives)}) {
    if (counts->empty())
      continue;
    os << title << "\n";
    for (const CollectiveCount &call : *counts)
      os << llvm::formatv("  {0,4} x {1,-15}over {2}, {3} bytes per call\n", call.count, call.kind,
                          llvm::join(call.axes, ", "), group(call.bytes));
  }
}
