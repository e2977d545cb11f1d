//===- Options.h - the command line of the compiler -------------*- C++ -*-===//
//
// Shared by `fsdpc` and by every program that describes a model. Names, meanings and defaults are
// a contract with users.
//
//===----------------------------------------------------------------------===//

#ifndef TOOLS_FSDPC_OPTIONS_H
#define TOOLS_FSDPC_OPTIONS_H

#include "base/ParameterGroups.h"
#include "codegen/CudaArchitectures.h"
#include "dialect/fsdp/FSDPDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/Pipelines.h"
#include "passes/cost/Machine.h"
#include "passes/sharding/MeshAxes.h"
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace fsdpc {

/// The outputs of the compiler, in the order of compilation.
enum class Emit { Model, Global, Local, Scheduled, Source, Binary };

/// Names and sizes, in the mesh's order.
using MeshAxes = std::vector<std::pair<std::string, int64_t>>;

/// An invalid command line: exit status 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Bad input, or a failure: exit status 1.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Overrides of the optimizer of the model; absent values do not change it.
struct OptimizerOptions {
  std::optional<std::string> rule, schedule;
  std::optional<double> lr, clip, minLr, decayShare;
  std::map<std::string, std::optional<double>> constants; ///< of rules, by name
  std::optional<int64_t> warmup;
  base::GroupOptions groups;

  /// `optimizer` with the options that were given; throws UsageError for one that its rule does not
  /// read. A rule other than the model's starts from that rule's defaults; rate, clipping and
  /// schedule stay.
  mlir::fsdp::OptimizerAttr apply(mlir::fsdp::OptimizerAttr optimizer) const;
  /// Throws UsageError for a pattern that matches no trained parameter of the module of `step`.
  void checkGroups(mlir::fsdp::StepOp step) const;
  /// A warning about given patterns without effect in the module of `step`; or nothing. Throws as
  /// `apply` and `checkGroups`.
  std::string remarkOnGroups(mlir::fsdp::StepOp step) const;
};

struct Options {
  std::string output;
  std::string emit = "binary";
  bool emitGiven = false;
  std::string target = "cpu";
  std::string cudaArch;
  std::string mesh;
  /// The options of the passes, with their defaults; those of Decisions.h may be automatic
  /// until a plan is chosen (PlanChoice.h).
  mlir::fsdp::PipelineOptions pipeline;
  bool strategyGiven = false;
  std::string memoryLimit;
  std::string fit;     ///< the option of the model that --fit varies; empty for none
  int64_t fitStep = 0; ///< its values are multiples of this; 0: a step that suits the model
  std::string json;    ///< the destination of the data of --fit or `plan`; empty for none
  std::string communicator = "auto";
  /// The given options of distribution, except the mesh: "--strategy=hsdp --prefetch=2".
  std::string distribution;
  /// The given options that determine the program, those of the model included, quoted for a shell.
  std::string given;
  bool record = false;
  bool emitLocations = false;
  /// The destination of the JSON report; empty for none, "-" for the table only.
  std::string report;
  std::string machine;  ///< the machine of predicted times; empty: the default of the target
  std::string timeline; ///< the destination of the predicted timeline; empty for none
  std::string explain;  ///< the destination of the page that explains the plan; empty for none
  OptimizerOptions optimizer;

  /// Whether the number of microbatches is a choice of the cost model.
  bool choseMicrobatches = false;

  /// Adds every option to `app`, bound to this object, which must outlive the parse.
  void declare(CLI::App &app);
  /// Throws UsageError if `app` was given an option that writes a program or shows a plan; `what`
  /// does neither.
  static void refuseOutputs(const CLI::App &app, const std::string &what);
  /// The options for output files, and those that only show results.
  static const std::set<std::string> &getOutputOptions();
  /// The options that `app` was given, once it has parsed the command line, without those that
  /// write a program or show a plan and without the options `omitted`, quoted for a shell.
  static std::string listGiven(const CLI::App &app, const std::vector<std::string> &omitted = {});
  /// Throws UsageError where options exclude each other, Failure for features that this release
  /// lacks.
  void check() const;

  /// The same for options that do not fit the mesh of `module`.
  void checkMesh(mlir::ModuleOp module) const;

  /// A warning about given microbatches that leave ranks of the pipeline of `module` idle, or
  /// nothing.
  std::string remarkOnPipeline(mlir::ModuleOp module) const;

  /// These options for one of several meshes: axes that only other meshes have split nothing there,
  /// as with the splits of the model itself. Throws UsageError for an axis that no mesh has.
  Options forMesh(const MeshAxes &mesh, const std::vector<MeshAxes> &meshes) const;

  Emit getEmit() const;
  /// Whether `--report`, `--timeline` or `--explain` asks for a prediction.
  bool predicts() const;
  /// Whether these without `-o` are all that is requested, and no binary.
  bool onlyReport() const;
  /// Whether an option is `auto`.
  bool choosesPlan() const;
  /// Whether the stages of a plan for `mesh` are chosen by the cost model: they are `auto`, ranks
  /// have stages, and a machine is named.
  bool choosesStages(const MeshAxes &mesh) const;
  /// Whether --context-attention is `auto` for one mesh that splits sequences, and a machine is
  /// named, on which the kinds are compared.
  bool choosesAttention() const;
  /// Whether shardings are to be printed, drawn or explained.
  bool asksForShardings() const {
    return pipeline.printShardings || !pipeline.drawSharding.empty() ||
           !pipeline.explainShardings.empty();
  }
  /// Whether a scheduled module is all that is needed of the only plan.
  bool needsOneSchedule() const {
    return getMeshes().size() == 1 && getEmit() >= Emit::Scheduled && explain.empty() &&
           !asksForShardings();
  }
  /// Bytes of `--memory-limit`; 0 if it was not given.
  int64_t getMemoryLimit() const;
  /// The machine of `--machine` for a mesh of `ranks`. Throws UsageError, or Failure for a file
  /// that is wrong.
  mlir::fsdp::cost::Machine findMachine(int64_t ranks) const;
  /// An option that applies to the mesh axis `context` alone, with its value; "" without one.
  std::string getContextOption() const;
  /// The same of the mesh axis of stages.
  std::string getPipelineOption() const;
  /// The axes of each mesh of `--mesh`: one plan of the program each. A single empty one if it was
  /// not given.
  std::vector<MeshAxes> getMeshes() const;
  /// Throws UsageError where options do not fit the axis of the stages of `mesh`, of `ranks`; 1:
  /// none.
  void checkPipeline(int64_t ranks, const std::string &mesh) const;
  /// The compute capabilities of kernels: `--cuda-arch`, or the default.
  mlir::fsdp::CudaArchitectures getCudaArchitectures() const;
};

/// Whether ranks of `mesh` have stages of a pipeline.
bool hasStages(const MeshAxes &mesh);
/// `data=2,fsdp=4`, which parseMesh reads.
std::string describe(const MeshAxes &mesh);
/// Parses `data=2,fsdp=4`; on an error sets `message` and returns nothing.
MeshAxes parseMesh(const std::string &text, std::string &message);
/// The same for several, separated by `|`; duplicates are errors.
std::vector<MeshAxes> parseMeshes(const std::string &text, std::string &message);

/// CLI11 would read the word after `--report` as its value; replaces it by `--report=-`, and
/// likewise `--batch-sweep` by `--batch-sweep=auto`.
std::vector<std::string> normalizeArguments(int argc, char **argv);

} // namespace fsdpc

#endif // TOOLS_FSDPC_OPTIONS_H
