//===- Propagate.cpp - give every value a sharding ------------------------===//

#include "base/PrintableText.h"
#include "dialect/fsdp/AxisParts.h"
#include "dialect/fsdp/AxisRoles.h"
#include "passes/Passes.h"
#include "passes/global/ShardingProblem.h"
#include "passes/global/ShardingWarnings.h"
#include "passes/sharding/MeshAxes.h"
#include "passes/sharding/MeshParts.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/GlobPattern.h"
#include <map>

namespace mlir::fsdp {
#define GEN_PASS_DEF_PROPAGATEPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

namespace {
struct Propagate : fsdp::impl::PropagatePassBase<Propagate> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    std::vector<std::string> others(batchAxes.begin(), batchAxes.end());
    if (failed(splitNamedMeshAxes(module)) || failed(checkAxes(module, others)) ||
        failed(addMicrobatches(module)))
      return signalPassFailure();
    SmallVector<StepOp> steps(module.getOps<StepOp>());
    if (steps.empty())
      return;
    if (!getMeshOp(steps.front())) {
      steps.front().emitOpError() << "is in a module without a mesh; declare one, for one rank "
                                     "'fsdp.mesh @mesh <[\"fsdp\"=1]>'";
      return signalPassFailure();
    }
    DenseSet<StringAttr> placed;
    for (ParamOp param : module.getOps<ParamOp>())
      if (PlacementAttr placement = param.getPlacementAttr(); placement && placement.getCompute())
        placed.insert(param.getSymNameAttr());
    FailureOr<ShardingProblem> problem = solve(module, steps, others);
    if (failed(problem))
      return signalPassFailure();
    if (failed(explainShardings(steps, *problem)))
      return signalPassFailure();
    closeParameters(module, *problem);
    warnOfPadding(module);
    // Diagnostics of the training step also apply to the evaluation derived from it.
    bool trains =
        llvm::any_of(steps, [](StepOp step) { return step.getKind() == StepKind::train; });
    for (StepOp step : steps) {
      DenseSet<Operation *> given(llvm::from_range, step.getBody().getOps<ReshardOp>());
      StepShardings shardings =
          StepShardings::take(step, [&](Value value) { return problem->axesOf(value); });
      if (failed(shardings.verify()))
        return signalPassFailure();
      shardings.write();
      SmallVector<ReshardOp> moves;
      for (auto move : step.getBody().getOps<ReshardOp>())
        if (!given.contains(move)) {
          moves.push_back(move);
          move.setLowerPriority(isOfLowerPriority(move, *problem));
        }
      if (step.getKind() == StepKind::train) {
        warnOfIdleRanks(step, others);
        remarkIdleMarks(step);
      }
      if (trains && step.getKind() == StepKind::evaluate)
        continue;
      warnOfContradictions(step);
      warnOfReplication(shardings, moves, getSampleAxes(steps, others), placed);
    }
  }

private:
  /// The axes that split samples, that of microbatches included.
  SmallVector<StringAttr> getSampleAxes(ArrayRef<StepOp> steps, ArrayRef<std::string> others) {
    SmallVector<StringAttr> axes = getBatchAxes(getMesh(steps.front()), others);
    if (accumulate.value > 1)
      axes.push_back(StringAttr::get(&getContext(), kMicrobatchAxis));
    return axes;
  }

  /// Propagates; if the solution has parts of axes, splits the mesh axes there and propagates
  /// again, with the parts as axes.
  FailureOr<ShardingProblem> solve(ModuleOp module, ArrayRef<StepOp> steps,
                                   ArrayRef<std::string> others) {
    while (true) {
      FailureOr<ShardingProblem> problem =
          ShardingProblem::build(steps, getSampleAxes(steps, others));
      if (failed(problem))
        return failure();
      problem->solve(/*subAxes=*/true);
      SmallVector<AxisCut> cuts = problem->getCuts();
      if (cuts.empty())
        return problem;
      if (!splitMeshAxis(module, cuts)) {
        problem->solve(/*subAxes=*/false);
        return problem;
      }
    }
  }

  /// Gives the mesh the axis over which microbatches follow one another, innermost.
  LogicalResult addMicrobatches(ModuleOp module) {
    auto meshes = module.getOps<MeshOp>();
    if (accumulate.value == 1 || meshes.empty()) // which is refused where a step needs one
      return success();
    MeshOp mesh = *meshes.begin();
    FailureOr<MeshAttr> extended = withMicrobatches(mesh.getMesh(), accumulate.value);
    if (failed(extended))
      return mesh.emitError() << "the mesh has an axis '" << kMicrobatchAxis
                              << "', which is reserved for microbatches; rename it";
    mesh.setMeshAttr(*extended);
    return success();
  }

  /// True if all axes that `move` gathers were requested with a lower priority than the first.
  static bool isOfLowerPriority(ReshardOp move, const ShardingProblem &problem) {
    bool isGathered = false;
    for (const ShardingOrigin &origin : problem.originsOf(move.getInput())) {
      const bool isKept = llvm::is_contained(move.getSharding().getAxes(origin.dim), origin.axis);
      if (!isKept && origin.priority == 0 && origin.axis != kMicrobatchAxis)
        return false;
      isGathered |= !isKept;
    }
    return isGathered;
  }

  /// Writes how parameters are split in compute into their placements.
  static void closeParameters(ModuleOp module, const ShardingProblem &problem) {
    MeshOp mesh = getMeshOp(module);
    for (ParamOp param : module.getOps<ParamOp>()) {
      PlacementAttr placement = param.getPlacementAttr();
      DimAxes axes = problem.axesOf(param);
      if (!placement || llvm::all_of(axes, [](const AxisList &dim) { return dim.empty(); }))
        continue;
      param.setPlacementAttr(placement.withCompute(
          ShardingAttr::getCanonical(FlatSymbolRefAttr::get(mesh.getSymNameAttr()), axes)));
    }
  }

  /// Fails for an axis without effect, and for a batch axis that the mesh lacks.
  static LogicalResult checkAxes(ModuleOp module, ArrayRef<std::string> others) {
    auto meshes = module.getOps<MeshOp>();
    if (meshes.empty())
      return success();
    MeshOp mesh = *meshes.begin();
    for (const std::string &name : others)
      if (!hasAxis(mesh.getMesh(), name))
        return mesh.emitError() << "option 'batch-axes' names axis '" << name << "', got mesh "
                                << spellMesh(mesh.getMesh()) << "; name one of its axes";
    if (StringAttr unused = findUnusedAxis(module, others))
      return mesh.emitError()
             << "nothing uses axis " << unused << ": " << listBatchAxes()
             << " split the batch, and so does the option "
                "'batch-axes'; name it there, in a constraint, in the split of a parameter or in "
                "a placement, or leave it out";
    return success();
  }

  /// A remark for each split dimension of each value that the option `explain` names. Ops with one
  /// name in the model, such as those of a gelu, are one value; an op is represented by its first
  /// result.
  LogicalResult explainShardings(ArrayRef<StepOp> steps, const ShardingProblem &problem) {
    if (explain.empty())
      return success();
    auto pattern = llvm::GlobPattern::create(explain);
    if (!pattern) {
      std::string why = llvm::toString(pattern.takeError());
      return getOperation().emitError() << "--explain-shardings got " << base::inQuotes(explain)
                                        << ", expected a pattern: " << why;
    }
    bool matched = false;
    llvm::StringSet<> said; // of training, where evaluation computes the same
    for (StepOp step : steps) {
      llvm::StringMap<SmallVector<Value>> named; // by the name in the model
      SmallVector<Value> values;
      for (Operation &op : step.getBody().front())
        for (Value value : op.getResults())
          if (pattern->match(nameOf(value))) {
            if (!op.getLoc()->findInstanceOf<NameLoc>())
              values.push_back(value);
            else if (value == op.getResult(0) && named[nameOf(value)].empty())
              values.push_back(value);
            named[nameOf(value)].push_back(value);
          }
      for (Value value : values)
        explainValue(value, named[nameOf(value)], problem, said);
      matched |= !values.empty();
    }
    if (!matched)
      return getOperation().emitError()
             << "--explain-shardings got " << base::inQuotes(explain)
             << ", expected the name of a value of a step; see the table of --print-shardings";
    return success();
  }

  /// The name of `op` in the model, or else the op's name.
  static std::string describe(Operation *op) {
    return op->getNumResults() > 0 && op->getLoc()->findInstanceOf<NameLoc>()
               ? nameOf(op->getResult(0))
               : op->getName().getStringRef().str();
  }

  /// `same`: all values that the model calls like `value`.
  static void explainValue(Value value, ArrayRef<Value> same, const ShardingProblem &problem,
                           llvm::StringSet<> &said) {
    static const char *rounds[] = {"ops that pass dimensions through",
                                   "ops that pass dimensions through", "factors that pass through",
                                   "all but broadcasts forward", "all ops"};
    const bool isNamed = bool(value.getLoc()->findInstanceOf<NameLoc>());
    std::map<int64_t, std::string> lines; // by dimension
    for (Value other : isNamed ? same : ArrayRef(value)) {
      if (other != value && (!isa<OpResult>(other) || cast<OpResult>(other).getResultNumber() != 0))
        continue;
      std::map<int64_t, std::string> own;
      for (const ShardingOrigin &origin : problem.originsOf(other)) {
        if (origin.axis == kMicrobatchAxis)
          continue;
        std::string &line = own[origin.dim];
        llvm::raw_string_ostream out(line);
        out << (line.empty() ? "" : "; and over ") << "'" << origin.axis.getValue() << "': ";
        if (!origin.op)
          out << "given by '" << describe(other.getDefiningOp()) << "', priority "
              << origin.priority;
        else
          out << "from '" << nameOf(origin.from) << "' across '" << describe(origin.op)
              << "', priority " << origin.priority << ", round '" << rounds[origin.opPriority]
              << "'" << (origin.aggressive ? ", a conflict resolved" : "");
      }
      for (auto &[dim, line] : own)
        lines.try_emplace(dim, std::move(line));
    }
    Operation *definer = value.getDefiningOp();
    auto say = [&](const std::string &text) {
      if (said.insert((isNamed ? "" : std::to_string(said.size())) + text).second)
        definer->emitRemark() << text;
    };
    if (lines.empty())
      say("'" + nameOf(value) + "' is not split: no axis reached it");
    for (auto &[dim, line] : lines)
      say("'" + nameOf(value) + "' dimension " + std::to_string(dim) + " is split over " + line);
  }

  /// Says so where a batch has fewer samples than ranks that share it.
  static void warnOfIdleRanks(StepOp step, ArrayRef<std::string> others) {
    auto inputs = step.getOps<InputOp>();
    MeshAttr mesh = getMesh(step);
    int64_t ranks = mesh.getSize(getBatchAxes(mesh, others));
    if (inputs.empty())
      return;
    InputOp input = *inputs.begin();
    int64_t samples = cast<RankedTensorType>(input.getType()).getDimSize(input.getSampleDim());
    const char *const noun = samples == 1 ? " sample" : " samples";
    int64_t parts = mesh.getAxisSize(kMicrobatchAxis), ofRank = llvm::divideCeil(samples, ranks);
    if (parts > ofRank) {
      // A pipeline needs as many microbatches as it has ranks.
      const StringAttr pipeline = findPipelineAxis(step->getParentOfType<ModuleOp>());
      const std::string fewer = pipeline && ofRank < mesh.getAxisSize(pipeline) ? "use"
                                : ofRank <= 1
                                    ? "leave out --accumulate, or use"
                                    : "use --accumulate=" + std::to_string(ofRank) + " or less, or";
      input.emitWarning() << "a rank has " << ofRank << " of the " << samples << noun
                          << " of a step, in " << parts
                          << " microbatches, some of which get only padding; " << fewer
                          << " a batch of " << ranks * parts << " samples or more";
    }
    if (samples < ranks)
      input.emitWarning() << "a step has " << samples << noun << ", and the mesh splits them over "
                          << ranks
                          << " ranks, some of which get only padding; use a batch of at "
                             "least "
                          << ranks << " or fewer ranks";
  }
};
} // namespace
