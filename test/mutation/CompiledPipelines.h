//===- CompiledPipelines.h - schedules of several roles ---------*- C++ -*-===//
//
// Pipelines as the compiler schedules them, and the results of their steps: small models of layers
// with a tied weight, in every schedule, and the random models of `property-tests` in stages.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_MUTATION_COMPILEDPIPELINES_H
#define TEST_MUTATION_COMPILEDPIPELINES_H

#include "test/unit/interpreter/StepTrace.h"

#include <string>
#include <vector>

namespace fsdp::mutation {

struct PipelineSource;

/// The number of orders in which each schedule is run.
constexpr int kOrders = 20;

class CompiledPipeline {
public:
  /// Pipeline number `number`.
  static CompiledPipeline get(int64_t number);

  mlir::ModuleOp getModule() const { return *module; }
  /// The mesh, the schedule and the number of microbatches, for messages.
  const std::string &describe() const { return description; }
  /// What the compiler, or the interpreter, has against the pipeline; empty for all that are right.
  const std::string &getFault() const { return fault; }
  /// Runs `mutant`, a changed copy of the module, in up to `kOrders` orders of its streams. Returns
  /// what goes wrong in the first order in which something does: no rank continues, launches race,
  /// or a result differs from those of the local phase in any bit; or nothing.
  std::string findHarm(mlir::ModuleOp mutant) const;

private:
  bool compile(mlir::OwningOpRef<mlir::ModuleOp> source, const PipelineSource &of);
  /// Runs steps in `kOrders` drawn orders, each with other initial values, until `take` returns
  /// false for the results. In every second one, hosts issue the second step before the first one
  /// has logged anything. Returns false, with a diagnostic, where one of the runs fails.
  bool forEachOrder(mlir::ModuleOp of,
                    llvm::function_ref<bool(const mlir::fsdp::StepTrace &)> take) const;

  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::fsdp::interpreter::DataSet data;
  std::vector<mlir::fsdp::StepTrace> expected; ///< by order
  bool defersUpdates = false;
  std::string description, fault;
};

} // namespace fsdp::mutation

#endif // TEST_MUTATION_COMPILEDPIPELINES_H
