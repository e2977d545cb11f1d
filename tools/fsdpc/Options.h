//===- Options.h - the command line of the compiler -------------*- C++ -*-===//
//
// Shared by `fsdpc` and by every program that describes a model. Names, meanings and defaults are
// a contract (docs/design.md, "Contracts").
//
//===----------------------------------------------------------------------===//

#ifndef TOOLS_FSDPC_OPTIONS_H
#define TOOLS_FSDPC_OPTIONS_H

#include "codegen/CudaArchitectures.h"
#include "dialect/fsdp/FSDPDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/MeshAxes.h"
#include "passes/Pipelines.h"
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace fsdpc {

/// What the compiler writes, in the order in which it comes into being.
enum class Emit { Model, Global, Local, Scheduled, Source, Binary };

/// Names and sizes, in the mesh's order.
using MeshAxes = std::vector<std::pair<std::string, int64_t>>;

/// A command line that makes no sense: exit status 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Bad input, or a failure on the way: exit status 1.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What replaces the optimizer of the model; absent values leave it as it is.
struct OptimizerOptions {
  std::optional<std::string> kind, schedule;
  std::optional<double> lr, momentum, beta1, beta2, eps, weightDecay, clip;
  std::optional<int64_t> warmup;

  /// `optimizer` with the options that were given; throws UsageError for one that its rule does not
  /// read. A rule other than the model's starts from that
  /// rule's own defaults (weight decay 0.01 for adamw, else 0); rate, clipping and schedule stay.
  mlir::fsdp::OptimizerAttr apply(mlir::fsdp::OptimizerAttr optimizer) const;
};

struct Options {
  std::string output;
  std::string emit = "binary";
  bool emitGiven = false;
  std::string target = "cpu";
  std::string cudaArch;
  std::string mesh;
  /// What the passes are told, with the defaults that stand there; `prefetch` is `automatic` for
  /// auto.
  mlir::fsdp::PipelineOptions pipeline;
  static constexpr int64_t automatic = -1;
  bool strategyGiven = false;
  std::string memoryLimit;
  std::string communicator = "auto";
  /// What was given of the options of distribution, but for the mesh: "--strategy=hsdp
  /// --prefetch=2".
  std::string distribution;
  /// What was given of all that the program follows from, those of the model among them, as a shell
  /// reads it.
  std::string given;
  bool record = false;
  bool emitLocations = false;
  /// Where the JSON of the report goes; empty for none, "-" for the table only.
  std::string report;
  OptimizerOptions optimizer;

  /// Adds every option to `app`, bound to this object, which must outlive the parse.
  void declare(CLI::App &app);
  /// Sets `given`, once `app` has parsed the command line.
  void noteGiven(const CLI::App &app);
  /// Throws UsageError where options exclude each other, Failure for what this release cannot do.
  void check() const;

  /// The same for options that do not fit the mesh of `module`.
  void checkMesh(mlir::ModuleOp module) const;

  Emit getEmit() const;
  /// Whether a binary was only implied, by `--report` without `-o`: then there is only the report.
  bool onlyReport() const;
  /// The axes of each mesh of `--mesh`: one plan of the program each. A single empty one where it
  /// was not given.
  std::vector<MeshAxes> getMeshes() const;
  /// What kernels are compiled for: `--cuda-arch`, or the default.
  mlir::fsdp::CudaArchitectures getCudaArchitectures() const;
};

/// Parses `data=2,fsdp=4`; on an error says so in `message` and returns nothing.
MeshAxes parseMesh(const std::string &text, std::string &message);
/// The same for several, separated by `|`; none may stand there twice.
std::vector<MeshAxes> parseMeshes(const std::string &text, std::string &message);

/// CLI11 would take the word after `--report` for its value; makes it `--report=-`.
std::vector<std::string> normalizeArguments(int argc, char **argv);

} // namespace fsdpc

#endif // TOOLS_FSDPC_OPTIONS_H
