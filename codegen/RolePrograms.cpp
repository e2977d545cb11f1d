//===- RolePrograms.cpp ---------------------------------------------------===//

#include "codegen/RolePrograms.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace mlir;
using namespace mlir::fsdp;

/// The step that the driver runs a walk for: "train", "evaluate", "drain".
static std::string stepOf(const ScheduledProgram &program, const ProgramWalk &walk) {
  return program.timelines[walk.runs.front().first].segment.getDrain()
             ? "drain"
             : stringifyStepKind(walk.kind).str();
}

static std::string listed(const std::set<std::string> &names) {
  return "[" + llvm::join(names, ", ") + "]";
}

/// Fails unless `got` of `program` is `expected`, that of the first program.
static LogicalResult verifySame(const ScheduledProgram &program, const ScheduledProgram &first,
                                const std::string &what, const std::set<std::string> &got,
                                const std::set<std::string> &expected, StringRef remedy) {
  if (got == expected)
    return success();
  InFlightDiagnostic diagnostic = program.program.emitOpError()
                                  << "'" << program.program.getSymName() << "' has " << what << " "
                                  << listed(got) << ", expected " << listed(expected) << " as in '"
                                  << first.program.getSymName() << "'; " << remedy;
  diagnostic.attachNote(first.program.getLoc()) << "the first role is here";
  return diagnostic;
}

static std::set<std::string> stepsOf(const ScheduledProgram &program) {
  std::set<std::string> steps;
  for (const ProgramWalk &walk : program.walks)
    steps.insert(stepOf(program, walk));
  return steps;
}

/// The outputs of `walk`, or those of them that are checks.
static std::set<std::string> outputsOf(const ProgramWalk &walk, bool checks) {
  std::set<std::string> names;
  for (auto [slot, name] : llvm::enumerate(walk.outputs))
    if (!checks || llvm::is_contained(walk.checks, static_cast<int>(slot)))
      names.insert(name.str());
  return names;
}

/// Whether a batch of the step has samples that do not count is known to all roles where one counts
/// them.
static LogicalResult joinRoles(std::vector<ScheduledProgram> &programs) {
  ScheduledProgram &first = programs.front();
  for (ScheduledProgram &program : llvm::drop_begin(programs)) {
    if (failed(verifySame(program, first, "steps", stepsOf(program), stepsOf(first),
                          "ranks of all roles run the same steps, give each a segment")))
      return failure();
    for (ProgramWalk &walk : program.walks) {
      const std::string step = stepOf(program, walk);
      auto same = llvm::find_if(
          first.walks, [&](const ProgramWalk &other) { return stepOf(first, other) == step; });
      for (bool checks : {false, true})
        if (failed(
                verifySame(program, first,
                           std::string(checks ? "checks" : "outputs") + " of step '" + step + "'",
                           outputsOf(walk, checks), outputsOf(*same, checks),
                           "every rank acts on them, send them to each role")))
          return failure();
      same->countsSamples |= walk.countsSamples;
    }
  }
  for (ScheduledProgram &program : programs)
    for (ProgramWalk &walk : program.walks) {
      if (walk.kind == StepKind::prefill || walk.kind == StepKind::decode)
        return program.timelines[walk.runs.front().first].segment.emitOpError()
               << "generates text in one of " << programs.size()
               << " roles, expected one role; compile for generation on a mesh whose ranks run one "
                  "program";
      for (const ProgramWalk &other : first.walks)
        if (stepOf(first, other) == stepOf(program, walk))
          walk.countsSamples |= other.countsSamples;
    }
  return success();
}

/// The settings of the optimizer are a table of the program, and every owner of a storage updates
/// its copy.
static LogicalResult verifyUpdates(ModuleOp module) {
  OptimizerAttr optimizer;
  auto verifySettings = [&](auto op) -> LogicalResult {
    if (!optimizer)
      optimizer = op.getOptimizer();
    if (op.getOptimizer() == optimizer)
      return success();
    return op.emitOpError() << "has the optimizer " << op.getOptimizer() << ", expected "
                            << optimizer << " as in other updates and learning rates of the module";
  };
  llvm::MapVector<StringAttr, llvm::SmallSetVector<ProgramOp, 2>> updaters;
  for (ProgramOp program : module.getOps<ProgramOp>()) {
    auto verify = [&](Operation &op) -> LogicalResult {
      if (auto rate = dyn_cast<LearningRateOp>(op))
        return verifySettings(rate);
      auto step = dyn_cast<OptimizerStepOp>(op);
      if (!step)
        return success();
      updaters[step.getStorageAttr().getAttr()].insert(program);
      return verifySettings(step);
    };
    for (SegmentOp segment : program.getOps<SegmentOp>())
      for (LaunchOp launch : segment.getOps<LaunchOp>())
        for (Operation &op : launch.getBody().front())
          if (failed(verify(op)))
            return failure();
  }
  SymbolTable symbols(module);
  for (auto &[name, programs] : updaters) {
    auto storage = symbols.lookup<StorageOp>(name);
    for (ProgramOp program : module.getOps<ProgramOp>())
      if (storage.isOwnedBy(program) && !programs.contains(program))
        return storage.emitOpError()
               << "is owned by '" << program.getSymName() << "', which does not update it, while '"
               << ProgramOp(programs.front()).getSymName()
               << "' does; name the owners in 'roles', and update the storage in each";
  }
  return success();
}

FailureOr<std::vector<ScheduledProgram>> mlir::fsdp::readPrograms(ModuleOp module) {
  std::vector<ScheduledProgram> programs;
  programs.reserve(llvm::range_size(module.getOps<ProgramOp>()));
  if (module.getOps<ProgramOp>().empty()) {
    (void)ScheduledProgram::create(module); // emits the error
    return failure();
  }
  for (ProgramOp program : module.getOps<ProgramOp>()) {
    FailureOr<ScheduledProgram> read =
        ScheduledProgram::create(module, program, programs.empty() ? nullptr : &programs.front());
    if (failed(read))
      return failure();
    programs.push_back(std::move(*read));
  }
  if (failed(verifyUpdates(module)) || (programs.size() > 1 && failed(joinRoles(programs))))
    return failure();
  return programs;
}
