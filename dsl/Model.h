//===- Model.h - describe a model once, in single-device terms --*- C++ -*-===//
//
//   Model model(context);
//   Tensor x = model.input("x", {batch, in});
//   Parameter w = model.unit("fc1").parameter("weight", {in, out}, normal(0.02));
//   model.loss(mean(square(einsum("bi,io->bo", x, w) - y)));
//
//===----------------------------------------------------------------------===//

#ifndef DSL_MODEL_H
#define DSL_MODEL_H

#include "dialect/fsdp/Structure.h"
#include "dsl/Tensor.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <optional>

namespace fsdp::dsl {

enum class ElementType { f32, f64, i32, i64 };

/// Initial values of a parameter.
struct Init {
  mlir::fsdp::InitKind kind;
  double value;
};
inline Init constant(double value) { return {mlir::fsdp::InitKind::constant, value}; }
inline Init zeros() { return constant(0); }
inline Init ones() { return constant(1); }
/// Mean 0, standard deviation `deviation`.
inline Init normal(double deviation) { return {mlir::fsdp::InitKind::normal, deviation}; }
/// Between -bound and bound.
inline Init uniform(double bound) { return {mlir::fsdp::InitKind::uniform, bound}; }

/// Update rule and schedule of the step; see `#fsdp.optimizer` for the formulas. The
/// defaults are AdamW's.
struct Optimizer {
  mlir::fsdp::OptimizerKind kind = mlir::fsdp::OptimizerKind::adamw;
  mlir::fsdp::OptimizerConstants constants = defaults();
  mlir::fsdp::ScheduleKind schedule = mlir::fsdp::ScheduleKind::constant;
  int64_t warmup = 0;

  static mlir::fsdp::OptimizerConstants defaults();
};

/// A number as a sum over elements and the weight of these elements (how many, or the sum of
/// their weights). It is divided once, over the whole batch of all ranks.
struct Average {
  Tensor sum;    ///< f64, rank 0
  Tensor weight; ///< f64, rank 0
};

/// Where parameters are declared: a unit (what is gathered together), and a prefix of names
/// inside it.
class Scope {
public:
  /// A parameter called `<prefix>.<name>` of the given shape. `fileShape` is its shape in weight
  /// files when that joins factors that `shape` keeps apart.
  Parameter parameter(const std::string &name, const Shape &shape, Init init,
                      const Shape &fileShape = {}, Where where = Where::here()) const;
  /// The same unit with a longer prefix.
  Scope scope(const std::string &name) const;
  /// The same, but its parameters stay as they are: they have no gradient and no optimizer state, and
  /// are initialized, loaded and exported like the others.
  Scope frozen() const;

private:
  friend class Model;
  Model *model;
  std::string prefix; ///< of parameters' names
  Origin origin;
  bool isFrozen = false;
};

/// Builds the global IR of one training step.
class Model {
public:
  /// `context` has the dialects of `registerDialects` loaded.
  explicit Model(mlir::MLIRContext &context, Where where = Where::here());

  /// A batch: dimension `sampleDim` counts samples.
  Tensor input(const std::string &name, const Shape &shape,
               ElementType elementType = ElementType::f32, int64_t sampleDim = 0,
               Where where = Where::here());
  /// A batch (samples, positions) of tokens, i32 below `vocab`, off one long row: sample i is the
  /// tokens from i * positions on.
  Tensor tokens(const std::string &name, const Shape &shape, int64_t vocab,
                Where where = Where::here());
  /// What follows each of these tokens.
  Tensor targets(const std::string &name, const Shape &shape, int64_t vocab,
                 Where where = Where::here());

  /// The unit called `name`, which is also the prefix of its parameters' names.
  Scope unit(const std::string &name) { return unit(name, name); }
  /// The unit called `name`, its parameters' names beginning with `prefix`, or bare where that is
  /// empty. What computes with them is named after the unit.
  Scope unit(const std::string &name, const std::string &prefix);

  /// What training minimizes. Once per model.
  void loss(const Average &average, Where where = Where::here());
  /// A further number to log under `name`.
  void metric(const std::string &name, const Average &average, Where where = Where::here());
  void optimizer(const Optimizer &optimizer, Where where = Where::here());

  /// A constant of rank 0.
  Tensor scalar(double value, ElementType elementType = ElementType::f32,
                Where where = Where::here());

  /// Ends the description. Throws ModelError without a loss or without parameters.
  mlir::OwningOpRef<mlir::ModuleOp> take(Where where = Where::here());

  // For operations (Operations.h), not for models.

  /// Creates an op by `build` in the unit of its operands, names it after them and `what`, and
  /// verifies it; throws ModelError with the operands' names and shapes and the verifier's words.
  Tensor create(const std::string &what, llvm::ArrayRef<Tensor> operands, Where where,
                llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location)> build);
  Tensor read(const Parameter &parameter, Where where);
  /// Throws ModelError saying `message` of operation `what` on `operands`.
  [[noreturn]] static void fail(const std::string &what, llvm::ArrayRef<Tensor> operands,
                                Where where, const std::string &message);

private:
  friend class Scope;
  mlir::Location location(const std::string &name, Where where);
  /// Throws ModelError where `verify` of `what` fails, with its words.
  void check(llvm::function_ref<llvm::LogicalResult()> verify, const std::string &what,
             Where where);
  Tensor inputOfTokens(llvm::StringRef source, const std::string &name, const Shape &shape,
                       int64_t vocab, Where where);

  mlir::MLIRContext &context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::fsdp::StepOp step;
  mlir::OpBuilder builder;
  Tensor wrap(mlir::Value value, const std::string &label, const Origin &origin);
  mlir::fsdp::Structure structureOf(const Origin &origin);
};

/// Loads every dialect that models and the compiler use, with their interfaces.
void registerDialects(mlir::DialectRegistry &registry);

} // namespace fsdp::dsl

#endif // DSL_MODEL_H
