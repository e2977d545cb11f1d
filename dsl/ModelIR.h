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

/// Throws unless `input`, an operand of the operation `what`, has floats.
void requireFloat(const char *what, const Located &input);
/// The shape of the rows of `input`: all dimensions but the last, which must exist.
Shape rowShape(const char *what, const Located &input);

} // namespace fsdp::dsl

#endif // DSL_MODELIR_H
