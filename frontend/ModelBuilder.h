//===- ModelBuilder.h - builds the IR of a model ----------------*- C++ -*-===//
// The implementation of Model.h, which does not include MLIR. An operation of Operations.h is a
// call
// of `create`.
//
//===----------------------------------------------------------------------===//

#ifndef FRONTEND_MODELBUILDER_H
#define FRONTEND_MODELBUILDER_H

#include "dialect/fsdp/Structure.h"
#include "dsl/Tensor.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace fsdp::dsl {

class Model;

class ModelBuilder {
public:
  ModelBuilder(mlir::MLIRContext &context, Where where);

  /// Creates an op by `build` in the unit of its operands, names it after them and `what`, and
  /// verifies it; throws ModelError with the operands' names and shapes and the verifier's message.
  Tensor create(const std::string &what, llvm::ArrayRef<Tensor> operands, Where where,
                llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location)> build);
  Tensor read(const Parameter &parameter, Where where);
  /// A constant of rank 0.
  Tensor scalar(double value, ElementType elementType, Where where);
  /// The result of `function`, computed in an `fsdp.checkpoint`.
  std::vector<Tensor> checkpoint(llvm::function_ref<std::vector<Tensor>()> function,
                                 mlir::fsdp::CheckpointPolicy policy, Where where);
  /// Throws ModelError while the function of a checkpoint runs.
  void requireOutside(const std::string &what, Where where);
  /// Throws ModelError for a tensor of a checkpoint that has ended.
  void requireVisible(const std::string &what, const Tensor &tensor, Where where);
  /// Throws ModelError with `message` for operation `what` on `operands`.
  [[noreturn]] static void fail(const std::string &what, llvm::ArrayRef<Tensor> operands,
                                Where where, const std::string &message);

  /// Throws ModelError with the message of `verify` of `what` if it fails.
  void check(llvm::function_ref<llvm::LogicalResult()> verify, const std::string &what,
             Where where);
  mlir::Location location(const std::string &name, Where where);
  Tensor wrap(mlir::Value value, const std::string &label, const Origin &origin);
  mlir::Type typeOf(ElementType type);
  /// The type of `what`. Throws ModelError unless all sizes are at least 0 and its bytes can be
  /// counted.
  static mlir::RankedTensorType checkedType(const std::string &what, const Shape &shape,
                                            mlir::Type element, Where where);

  static mlir::Value valueOf(const Tensor &tensor) {
    return mlir::Value::getFromOpaquePointer(tensor.value);
  }
  static ModelBuilder &of(const Tensor &tensor) { return *tensor.model; }
  static ModelBuilder &of(Model &model);

  mlir::MLIRContext &context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::SymbolTable symbols; ///< of the module
  mlir::fsdp::StepOp step;
  mlir::OpBuilder builder; ///< at the end of the step

private:
  bool isInCheckpoint() { return builder.getInsertionBlock() != &step.getBody().front(); }
  bool isVisible(const Tensor &tensor);
  mlir::fsdp::Structure structureOf(const Origin &origin);
};

inline mlir::Value valueOf(const Tensor &tensor) { return ModelBuilder::valueOf(tensor); }
inline mlir::RankedTensorType typeOf(const Tensor &tensor) {
  return llvm::cast<mlir::RankedTensorType>(valueOf(tensor).getType());
}
inline ModelBuilder &builderOf(const Tensor &tensor) { return ModelBuilder::of(tensor); }

/// Throws unless `input`, an operand of the operation `what`, has floats.
void requireFloat(const char *what, const Located &input);
/// The shape of the rows of `input`: all dimensions but the last, which must exist.
Shape rowShape(const char *what, const Located &input);

/// Ends the description. Throws ModelError without a loss or without parameters.
mlir::OwningOpRef<mlir::ModuleOp> take(Model &model, Where where = Where::here());

/// Loads every dialect that models and the compiler use, with their interfaces.
void registerDialects(mlir::DialectRegistry &registry);

} // namespace fsdp::dsl

#endif // FRONTEND_MODELBUILDER_H
