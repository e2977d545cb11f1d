//===- ModelIR.h - the IR behind the types of models ------------*- C++ -*-===//
//
// For sources that include MLIR: those of the DSL and the compiler's driver.
//
//===----------------------------------------------------------------------===//

#ifndef DSL_MODELIR_H
#define DSL_MODELIR_H

#include "dsl/Tensor.h"
#include "frontend/ModelBuilder.h"

namespace fsdp::dsl {

class Model;
using frontend::registerDialects;

/// Ends the description. Throws ModelError without a loss or without parameters.
mlir::OwningOpRef<mlir::ModuleOp> take(Model &model, Where where = Where::here());

/// The model is described for `mesh`: names of axes and their sizes. Regions in local terms have
/// the sizes of its ranks.
void describeFor(Model &model, const std::vector<std::pair<std::string, int64_t>> &mesh);

inline mlir::Value valueOf(const Located &operand) { return frontend::valueOf(operand.tensor); }
inline mlir::RankedTensorType typeOf(const Located &operand) {
  return frontend::typeOf(operand.tensor);
}
inline ModelBuilder &builderOf(const Located &operand) {
  return frontend::builderOf(operand.tensor);
}

/// The operation `what` on `operands`, at the source line of the first; see ModelBuilder::create.
Tensor create(const std::string &what, llvm::ArrayRef<Located> operands,
              llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location)> build);
/// The same of one op, created with `arguments`: its first result.
template <typename Op, typename... Arguments>
Tensor createOp(const std::string &what, llvm::ArrayRef<Located> operands,
                Arguments &&...arguments) {
  return create(what, operands, [&](mlir::OpBuilder &builder, mlir::Location loc) -> mlir::Value {
    return Op::create(builder, loc, std::forward<Arguments>(arguments)...)->getResult(0);
  });
}
/// Throws `message` for the operation `what` on `operands`.
[[noreturn]] void fail(const std::string &what, llvm::ArrayRef<Located> operands,
                       const std::string &message);

/// Throws unless `input`, an operand of the operation `what`, has floats.
void requireFloat(const char *what, const Located &input);
/// The shape of the rows of `input`: all dimensions but the last, which must exist.
Shape rowShape(const char *what, const Located &input);

} // namespace fsdp::dsl

#endif // DSL_MODELIR_H
