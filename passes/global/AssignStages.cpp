//===- AssignStages.cpp - which stage of a pipeline computes a unit -------===//
//
// Units are divided in the order of forward. A unit that is used in several places (the table of a
// tied embedding) is several: each place has a stage of its own.
//
//===----------------------------------------------------------------------===//

#include "base/Numbers.h"
#include "dialect/fsdp/Structure.h"
#include "passes/Passes.h"
#include "passes/global/ParameterValues.h"
#include "passes/global/UnitRuns.h"
#include "passes/schedule/BalancedCut.h"
#include "passes/schedule/PipelineOrder.h"
#include "passes/sharding/MeshAxes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include <map>
#include <set>

namespace mlir::fsdp {
#define GEN_PASS_DEF_ASSIGNSTAGESPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {

struct AssignStages : fsdp::impl::AssignStagesPassBase<AssignStages> {
  using Base::Base;

  void runOnOperation() override;

private:
  FailureOr<SmallVector<int64_t>> cut(ArrayRef<UnitRun> runs, int64_t count, int64_t ranks);
};

} // namespace

static std::string listUnits(ArrayRef<UnitRun> runs) {
  std::string text;
  for (const UnitRun &run : runs)
    text += (text.empty() ? "" : ", ") + run.unit.str();
  return text;
}

/// "1 unit", "2 units".
static std::string countOf(int64_t number, StringRef what) {
  return std::to_string(number) + " " + what.str() + (number == 1 ? "" : "s");
}

/// The number of units of each of `count` stages of `ranks` ranks.
FailureOr<SmallVector<int64_t>> AssignStages::cut(ArrayRef<UnitRun> runs, int64_t count,
                                                  int64_t ranks) {
  const auto units = static_cast<int64_t>(runs.size());
  if (units == 0)
    return getOperation().emitError()
           << "no op of the model has a unit, expected ops of at least " << count
           << " units, one for each stage; name the unit of each op in its 'fsdp.structure', not "
              "that of parameters alone";
  if (units < count)
    return getOperation().emitError() << "the model has " << countOf(units, "unit") << " ("
                                      << listUnits(runs) << "), expected at least " << count
                                      << ", one for each stage; take fewer ranks along 'pipeline'"
                                      << (count > ranks ? ", or fewer parts a rank" : "");
  if (stages == "auto") {
    std::vector<double> costs;
    for (const UnitRun &run : runs)
      costs.push_back(static_cast<double>(run.flops));
    return llvm::to_vector(schedule::cutBalanced(costs, count));
  }
  SmallVector<int64_t> sizes;
  SmallVector<StringRef> words;
  StringRef(stages).split(words, ',');
  for (StringRef word : words) {
    int64_t &size = sizes.emplace_back();
    const base::IntegerRange<int64_t> range{1, INT64_MAX};
    if (std::string wrong = base::parseInteger(std::string_view(word), range, size); !wrong.empty())
      return getOperation().emitError() << "--stages=" << stages << ": " << wrong
                                        << "; give 'auto', or the number of units of "
                                        << "each stage, separated by commas";
  }
  int64_t sum = 0;
  for (int64_t size : sizes)
    sum += std::min(size, units + 1);
  if (static_cast<int64_t>(sizes.size()) != count)
    return getOperation().emitError()
           << "--stages=" << stages << " has "
           << countOf(static_cast<int64_t>(sizes.size()), "stage") << ", expected " << count << ": "
           << ranks << " ranks along 'pipeline', " << count / ranks << " each";
  if (sum != units)
    return getOperation().emitError()
           << "--stages=" << stages << " adds up to " << (sum > units ? "more" : "fewer")
           << " units than the " << units << " of the model: " << listUnits(runs);
  return sizes;
}

/// The stages of the runs `found` of a step, of which another one has `runs` with the stages
/// `stages`: those of a longest common subsequence. A run beyond that has the stage of the run
/// before it: an evaluation lacks units that only compute dropout, and contains the ops that a
/// checkpoint of the model joins as separate ops. Nothing where a unit of the other step is found
/// in another order.
static std::optional<SmallVector<int64_t>>
alignStages(ArrayRef<UnitRun> found, ArrayRef<UnitRun> runs, ArrayRef<int64_t> stages) {
  // length[i][j]: of the longest common subsequence of the runs from i and from j.
  std::vector<std::vector<int64_t>> length(found.size() + 1,
                                           std::vector<int64_t>(runs.size() + 1, 0));
  for (size_t i = found.size(); i-- > 0;)
    for (size_t j = runs.size(); j-- > 0;)
      length[i][j] = found[i].unit == runs[j].unit ? length[i + 1][j + 1] + 1
                                                   : std::max(length[i + 1][j], length[i][j + 1]);
  SmallVector<int64_t> result;
  llvm::SmallDenseSet<StringAttr> aligned;
  size_t j = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    while (j < runs.size() && found[i].unit != runs[j].unit && length[i][j] == length[i][j + 1])
      ++j;
    if (j < runs.size() && found[i].unit == runs[j].unit) {
      aligned.insert(found[i].unit);
      result.push_back(stages[j++]);
    } else {
      result.push_back(result.empty() ? 0 : result.back());
    }
  }
  for (const UnitRun &run : found)
    if (!aligned.contains(run.unit) &&
        llvm::any_of(runs, [&](const UnitRun &other) { return other.unit == run.unit; }))
      return std::nullopt;
  return result;
}

/// Values that are computed from parameters alone, `ofParameters`, are computed by each stage that
/// uses them: a broadcast is no larger there than the parameter, and each stage reduces its own
/// gradient of it. `stages`: the stages of all other ops that have one.
static void separateParameters(StepOp step, DenseMap<Operation *, int64_t> stages,
                               const DenseSet<Value> &ofParameters) {
  Block &body = step.getBody().front();
  auto place = [&](Operation *op, int64_t stage) {
    Structure structure = getStructure(op);
    structure.stage = stage;
    setStructure(op, structure);
    stages[op] = stage;
  };
  auto separate = [&](Operation &op) {
    llvm::MapVector<int64_t, Operation *> first; // user of each stage
    for (Operation *user : op.getUsers()) {
      Operation *outer = body.findAncestorOpInBlock(*user);
      auto [known, isNew] = first.insert({stages.lookup(outer), outer});
      if (!isNew && outer->isBeforeInBlock(known->second))
        known->second = outer;
    }
    if (first.size() == 1 && !isa<ReadOp>(op))
      return place(&op, first.front().first);
    for (const std::pair<int64_t, Operation *> &use : first) {
      const int64_t stage = use.first;
      OpBuilder builder(use.second);
      Operation *copy = builder.clone(op);
      place(copy, stage);
      for (auto [result, copied] : llvm::zip_equal(op.getResults(), copy->getResults()))
        result.replaceUsesWithIf(copied, [&](OpOperand &operand) {
          return stages.lookup(body.findAncestorOpInBlock(*operand.getOwner())) == stage;
        });
    }
    if (!first.empty())
      op.erase();
  };
  // From the last one to the first, so that all users of an op have their stages; then reads, in
  // the order in which they are gathered.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (yieldsOnly(op, ofParameters) && !isa<ReadOp>(op))
      separate(op);
  for (ReadOp read : llvm::to_vector(body.getOps<ReadOp>()))
    separate(*read);
}

/// Sets the stage of each op of `step`: that of its run. Ops without a unit that depend on inputs
/// and constants alone have none, and are computed where they are needed, as are ops that depend on
/// parameters alone; other ops, such as a loss, follow their operands.
static void setStages(StepOp step, ArrayRef<UnitRun> runs, ArrayRef<int64_t> stagesOfRuns) {
  Block &body = step.getBody().front();
  DenseSet<Value> ofParameters = collectParameterValues(body);
  DenseMap<Operation *, int64_t> stages;
  llvm::SmallDenseSet<int64_t> busy; // stages that compute with samples
  for (auto [run, stage] : llvm::zip_equal(runs, stagesOfRuns))
    for (Operation *op : run.ops) {
      stages[op] = stage;
      if (!yieldsOnly(*op, ofParameters))
        busy.insert(stage);
    }
  // A stage of such units alone computes them for the others, and has something to do.
  for (Operation &op : body) {
    if (!yieldsOnly(op, ofParameters) || isa<ReadOp>(op))
      continue;
    auto own = stages.find(&op);
    const bool isAlone = own != stages.end() && !busy.contains(own->second);
    if (isAlone || llvm::any_of(op.getOperands(), [&](Value operand) {
          return !ofParameters.contains(operand) && !operand.getDefiningOp<arith::ConstantOp>();
        }))
      for (Value result : op.getResults())
        ofParameters.erase(result);
  }
  for (Operation &op : body) {
    if (yieldsOnly(op, ofParameters))
      continue;
    if (!stages.contains(&op)) {
      int64_t latest = -1;
      op.walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          if (auto made = stages.find(operand.getDefiningOp()); made != stages.end())
            latest = std::max(latest, made->second);
      });
      if (latest < 0)
        continue;
      stages[&op] = latest;
    }
    op.walk([&](Operation *inner) {
      if (isa<arith::ConstantOp, YieldOp, CheckpointOp>(inner))
        return;
      Structure structure = getStructure(inner);
      structure.stage = stages.lookup(&op);
      setStructure(inner, structure);
    });
  }
  separateParameters(step, std::move(stages), ofParameters);
}

/// "0_1", "0_2to5": the stages in `stages`, runs of three or more by their ends.
static std::string listStages(const std::set<int64_t> &stages) {
  std::string text;
  for (auto stage = stages.begin(); stage != stages.end();) {
    const int64_t first = *stage;
    int64_t last = first;
    while (++stage != stages.end() && *stage == last + 1)
      last = *stage;
    const StringRef between = last - first > 1 ? "to" : "_";
    text += (text.empty() ? "" : "_") + std::to_string(first);
    if (last > first)
      text += between.str() + std::to_string(last);
  }
  return text;
}

/// Parameters of a unit that are used by other ranks than its other parameters become a separate
/// unit: a rank computes with all parameters that it stores, gathers and reduces together.
/// Parameters that the same stages use share a unit.
static void separateUnits(ModuleOp module, int64_t ranks) {
  SymbolTable symbols(module);
  llvm::StringSet<> taken;
  module.walk([&](Operation *op) {
    if (StringAttr unit = getStructure(op).unit)
      taken.insert(unit);
    if (auto param = dyn_cast<ParamOp>(op))
      taken.insert(param.getUnit());
  });
  llvm::MapVector<ParamOp, std::set<int64_t>> users; // stages
  for (auto param : module.getOps<ParamOp>())
    users.insert({param, {}});
  module.walk([&](ReadOp read) {
    users[symbols.lookup<ParamOp>(read.getParam())].insert(getStructure(read).stage);
  });
  auto ranksOf = [&](ParamOp param) {
    llvm::SmallBitVector used(ranks);
    for (int64_t stage : users[param])
      used.set(static_cast<unsigned>(stage % ranks));
    return used;
  };
  llvm::MapVector<StringAttr, SmallVector<ParamOp>> units;
  for (auto &[param, stages] : users)
    if (!stages.empty())
      units[param.getUnitAttr()].push_back(param);
  for (const std::pair<StringAttr, SmallVector<ParamOp>> &members : units) {
    StringAttr unit = members.first;
    ArrayRef<ParamOp> params = members.second;
    if (llvm::all_of(params,
                     [&](ParamOp param) { return ranksOf(param) == ranksOf(params.front()); }))
      continue;
    std::map<std::set<int64_t>, std::string> names;
    for (ParamOp param : params) {
      std::string &name = names[users[param]];
      if (name.empty()) {
        const std::string own = (unit.getValue() + ".stage" + listStages(users[param])).str();
        name = own;
        for (int64_t number = 2; !taken.insert(name).second; ++number) // a unit of the model
          name = own + "." + std::to_string(number);
      }
      param.setUnit(name);
    }
  }
}

void AssignStages::runOnOperation() {
  ModuleOp module = getOperation();
  schedule::PipelineSchedule order;
  if (std::string fault = schedule::parsePipelineSchedule(schedule, order); !fault.empty()) {
    module.emitError() << "--pipeline-schedule: " << fault;
    return signalPassFailure();
  }
  StringAttr axis = findPipelineAxis(module);
  if (!axis) {
    if (stages != "auto") {
      module.emitError() << "--stages=" << stages
                         << " divides a model over the mesh axis 'pipeline', which has no ranks to "
                            "divide it over, or is used by a manual region; give the axis a size "
                            "of 2 or more and no other use, or leave the option out";
      return signalPassFailure();
    }
    return;
  }
  if (failed(verifyPipelineAxis(module, axis)))
    return signalPassFailure();
  const int64_t ranks = getMesh(module).getAxisSize(axis), count = ranks * order.chunks;
  SmallVector<StepOp> steps(module.getOps<StepOp>());
  if (steps.empty())
    return;
  const SmallVector<UnitRun> runs = collectUnitRuns(steps.front());
  FailureOr<SmallVector<int64_t>> sizes = cut(runs, count, ranks);
  if (failed(sizes))
    return signalPassFailure();
  SmallVector<int64_t> stagesOfRuns;
  for (auto [stage, size] : llvm::enumerate(*sizes))
    stagesOfRuns.append(size, static_cast<int64_t>(stage));
  for (StepOp step : steps) {
    if (step.getKind() != StepKind::train && step.getKind() != StepKind::evaluate) {
      step.emitError() << "--generate is not possible with ranks along 'pipeline'; compile the "
                          "program that generates for a mesh without the axis";
      return signalPassFailure();
    }
    SmallVector<UnitRun> found = collectUnitRuns(step);
    std::optional<SmallVector<int64_t>> own = alignStages(found, runs, stagesOfRuns);
    if (!own) {
      step.emitError() << "step '" << step.getSymName() << "' uses units in another order ("
                       << listUnits(found) << ") than step '" << steps.front().getSymName() << "' ("
                       << listUnits(runs) << "); a pipeline has the same stages in both";
      return signalPassFailure();
    }
    setStages(step, found, *own);
  }
  separateUnits(module, ranks);
  module->setDiscardableAttr(kStagesAttrName, OpBuilder(module).getI64IntegerAttr(count));
}
