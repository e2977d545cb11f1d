//===- ModelBuilder.h - builds the global IR of a model ---------*- C++ -*-===//
//
// The common part of all front ends: declares inputs and parameters, creates ops in units, with
// names and locations, checks shapes, and reports errors in terms of the model. An operation of a
// front end is a call of `create`.
//
//===----------------------------------------------------------------------===//

#ifndef FRONTEND_MODELBUILDER_H
#define FRONTEND_MODELBUILDER_H

#include "dialect/fsdp/Structure.h"
#include "frontend/ModelValue.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace fsdp::frontend {

/// Builds one training step. All functions throw ModelError, with the location of their caller, for
/// arguments that the IR cannot express: shapes that do not fit, duplicate names.
class ModelBuilder {
public:
  ModelBuilder(mlir::MLIRContext &context, Where where);

  /// A batch: dimension `sampleDim` is the sample dimension.
  ModelValue input(const std::string &name, const Shape &shape, ElementType elementType,
                   int64_t sampleDim, Where where);
  /// Declares the parameter `name`. `fileShape` is its shape in weight files if that joins
  /// dimensions that `shape` separates, else empty. A frozen one is not trained.
  void parameter(const std::string &name, const Shape &shape, mlir::fsdp::InitAttr init,
                 const Shape &fileShape, const Origin &origin, bool isFrozen, Where where);
  ModelValue read(const std::string &parameter, const Origin &origin, Where where);
  /// Creates an op by `build` in the unit of its operands, names it after them and `what`, and
  /// verifies it; errors have the operands' names and shapes and the verifier's message.
  ModelValue create(const std::string &what, llvm::ArrayRef<ModelValue> operands, Where where,
                    llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location)> build);
  /// A constant of rank 0.
  ModelValue scalar(double value, ElementType elementType, Where where);
  /// The result of `function`, computed in an `fsdp.checkpoint`.
  std::vector<ModelValue> checkpoint(llvm::function_ref<std::vector<ModelValue>()> function,
                                     mlir::fsdp::CheckpointPolicy policy, Where where);
  /// The results of `function` for the parts of `inputs` that one rank along `over` has, by their
  /// shardings `in`, computed in an `fsdp.manual`; `function` also says how each result leaves it.
  struct ManualResults {
    std::vector<ModelValue> values;
    llvm::SmallVector<mlir::fsdp::ShardingAttr> shardings;
  };
  std::vector<ModelValue>
  manual(llvm::ArrayRef<ModelValue> inputs, llvm::ArrayRef<mlir::fsdp::ShardingAttr> in,
         mlir::ArrayAttr over,
         llvm::function_ref<ManualResults(llvm::ArrayRef<ModelValue> parts)> function, Where where);
  /// The index of the rank along `over`.
  ModelValue axisIndex(mlir::ArrayAttr over, Where where);
  /// The mesh of the module, in which each of `axes` has a place: of size 1, until the compiler is
  /// told another, or, if it `isSized`, of the size that it has already been told.
  mlir::fsdp::MeshOp meshWith(llvm::ArrayRef<mlir::StringAttr> axes, bool isSized = false);
  /// The ranks along `axis` in the mesh that the model is compiled for: 1 where it lacks the axis.
  int64_t axisSize(const std::string &axis) const;
  /// The loss that training minimizes, a quotient of scalars in f64.
  void loss(const ModelValue &sum, const ModelValue &weight, Where where);
  /// A further quotient to log.
  void metric(const std::string &name, const ModelValue &sum, const ModelValue &weight,
              Where where);
  /// Logs statistics of `value` in each training step.
  void print(const std::string &name, const ModelValue &value, Where where);
  /// A training step in which floats of `value` are not finite is bad.
  void check(const std::string &name, const ModelValue &value, Where where);
  /// `constants` of the rule by name; others have the rule's defaults.
  void optimizer(const std::string &rule,
                 llvm::ArrayRef<mlir::fsdp::OptimizerAttr::Constant> constants,
                 mlir::fsdp::ScheduleKind schedule, int64_t warmup,
                 const base::ParameterGroups &groups, Where where);
  /// A file written next to the weights in every checkpoint.
  void checkpointFile(const std::string &name, const std::string &text, Where where);
  /// Ends the description: the module. Throws without a loss, parameters or an optimizer.
  mlir::OwningOpRef<mlir::ModuleOp> take(Where where);

  /// Throws while the function of a checkpoint or a manual region runs.
  void requireOutside(const std::string &what, Where where);
  /// Throws for a value of a checkpoint or a manual region that has ended, and inside a region for
  /// one from outside.
  void requireVisible(const std::string &what, const ModelValue &value, Where where);
  /// Throws `message` for operation `what` on `operands`.
  [[noreturn]] static void fail(const std::string &what, llvm::ArrayRef<ModelValue> operands,
                                Where where, const std::string &message);
  /// Throws the message of `verify` of `what` if it fails.
  void check(llvm::function_ref<llvm::LogicalResult()> verify, const std::string &what,
             Where where);
  mlir::Location location(const std::string &name, Where where);

  static mlir::Value valueOf(const ModelValue &value) {
    return mlir::Value::getFromOpaquePointer(value.value);
  }
  static ModelBuilder &of(const ModelValue &value) { return *value.model; }

  mlir::MLIRContext &context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::SymbolTable symbols; ///< of the module
  mlir::fsdp::StepOp step;
  std::optional<Where> optimizerAt; ///< where the model chose it
  /// The axes of the mesh that the model is compiled for, with their sizes, if it is known.
  std::vector<std::pair<std::string, int64_t>> meshAxes;
  mlir::OpBuilder builder; ///< at the end of the step

private:
  /// The region whose function runs, if there is one.
  mlir::fsdp::ManualOp openRegion() {
    return llvm::dyn_cast<mlir::fsdp::ManualOp>(builder.getInsertionBlock()->getParentOp());
  }
  /// Throws, naming the operation of `region` that the verifier refuses.
  void verifyManual(mlir::fsdp::ManualOp region, Where where);
  bool isOutside() { return builder.getInsertionBlock() == &step.getBody().front(); }
  bool isVisible(const ModelValue &value);
  mlir::fsdp::Structure structureOf(const Origin &origin);
  ModelValue wrap(mlir::Value value, const std::string &label, const Origin &origin);
  mlir::Type typeOf(ElementType type);
  /// The type of `what`. Throws unless all sizes are at least 0 and its bytes can be counted.
  static mlir::RankedTensorType checkedType(const std::string &what, const Shape &shape,
                                            mlir::Type element, Where where);
  /// Erases `op`, a metric, print or check, and throws, unless the log can write it.
  void checkLogged(mlir::Operation *op, const std::string &what, Where where);
  /// Creates an `Op` of `value`; messages call it `kind`.
  template <typename Op>
  void report(llvm::StringRef kind, const std::string &name, const ModelValue &value, Where where);
  /// Throws unless `sum` and `weight` of `what` are visible scalars in f64.
  void requireQuotient(const std::string &what, const ModelValue &sum, const ModelValue &weight,
                       Where where);
};

inline mlir::Value valueOf(const ModelValue &value) { return ModelBuilder::valueOf(value); }
inline mlir::RankedTensorType typeOf(const ModelValue &value) {
  return llvm::cast<mlir::RankedTensorType>(valueOf(value).getType());
}
inline ModelBuilder &builderOf(const ModelValue &value) { return ModelBuilder::of(value); }

/// Loads every dialect that models and the compiler use, with their interfaces.
void registerDialects(mlir::DialectRegistry &registry);

} // namespace fsdp::frontend

#endif // FRONTEND_MODELBUILDER_H
