//===- Declarations.cpp - declarations of a model besides operations ------===//

#include "dialect/fsdp/CheckpointFiles.h"
#include "dialect/fsdp/Names.h"
#include "dialect/fsdp/UpdateRule.h"
#include "frontend/ModelBuilder.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
namespace ir = mlir::fsdp;

namespace fsdp::frontend {

ModelValue ModelBuilder::input(const std::string &name, const Shape &shape, ElementType elementType,
                               int64_t sampleDim, Where where) {
  const std::string what = "input '" + name + "'";
  requireOutside(what, where);
  RankedTensorType type = checkedType(what, shape, typeOf(elementType), where);
  for (auto other : step.getOps<ir::InputOp>())
    if (other.getName() == name)
      throw ModelError(where, what + " is declared twice; give each its own name");
  if (sampleDim < 0 || sampleDim >= static_cast<int64_t>(shape.size()))
    throw ModelError(where, what + " counts samples along dimension " + std::to_string(sampleDim) +
                                ", expected a dimension below " + std::to_string(shape.size()));
  auto op = ir::InputOp::create(builder, location(name, where), type, name, sampleDim,
                                IntegerAttr(), ArrayAttr(), IntegerAttr(), IntegerAttr());
  check([&] { return mlir::verify(op); }, "input '" + ir::shownName(name) + "'", where);
  return wrap(op, name, Origin());
}

void ModelBuilder::parameter(const std::string &name, const Shape &shape, ir::InitAttr init,
                             const Shape &fileShape, const Origin &origin, bool isFrozen,
                             Where where) {
  RankedTensorType type =
      checkedType("parameter '" + name + "'", shape, builder.getF32Type(), where);
  if (symbols.lookup(name))
    throw ModelError(where, "parameter '" + name + "' is declared twice; give each its own name");
  OpBuilder declarations(step);
  auto op = ir::ParamOp::create(declarations, location(name, where), builder.getStringAttr(name),
                                TypeAttr::get(type), builder.getStringAttr(origin.unit), init,
                                fileShape.empty() ? DenseI64ArrayAttr()
                                                  : builder.getDenseI64ArrayAttr(fileShape),
                                ArrayAttr(), ir::PlacementAttr(),
                                isFrozen ? builder.getUnitAttr() : UnitAttr(), DenseI64ArrayAttr());
  symbols.insert(op);
  check([&] { return mlir::verify(op); }, "parameter '" + ir::shownName(name) + "'", where);
}

void ModelBuilder::requireQuotient(const std::string &what, const ModelValue &sum,
                                   const ModelValue &weight, Where where) {
  for (const ModelValue &part : {sum, weight}) {
    requireVisible(what, part, where);
    if (RankedTensorType type = frontend::typeOf(part);
        type.getRank() != 0 || !type.getElementType().isF64())
      fail(what, {sum, weight}, where,
           "expected a sum and a weight that are scalars in f64; use mean or weightedMean");
  }
}

void ModelBuilder::loss(const ModelValue &sum, const ModelValue &weight, Where where) {
  requireOutside("the loss", where);
  if (!step.getOps<ir::LossOp>().empty())
    throw ModelError(where, "the model has two losses; add them first");
  requireQuotient("the loss", sum, weight, where);
  ir::LossOp::create(builder, location("loss", where), valueOf(sum), valueOf(weight));
}

void ModelBuilder::metric(const std::string &name, const ModelValue &sum, const ModelValue &weight,
                          Where where) {
  const std::string what = "metric '" + name + "'";
  requireOutside(what, where);
  requireQuotient(what, sum, weight, where);
  for (auto other : step.getOps<ir::MetricOp>())
    if (other.getName() == name)
      throw ModelError(where, what + " is given twice; give each its own name");
  checkLogged(ir::MetricOp::create(builder, location(name, where), name, valueOf(sum),
                                   valueOf(weight),
                                   /*check=*/IntegerAttr()),
              "metric '" + ir::shownName(name) + "'", where);
}

void ModelBuilder::checkLogged(Operation *op, const std::string &what, Where where) {
  try {
    check([&] { return mlir::verify(op); }, what, where);
    check([&] { return ir::verifyLogged(step); }, what, where);
  } catch (const ModelError &) {
    op->erase();
    throw;
  }
}

template <typename Op>
void ModelBuilder::report(StringRef kind, const std::string &name, const ModelValue &value,
                          Where where) {
  const std::string what = (kind + " '" + name + "'").str();
  requireVisible(what, value, where);
  WalkResult given = step.walk([&](Op other) {
    return other.getName() == name ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (given.wasInterrupted())
    throw ModelError(where, what + " is given twice; give each its own name");
  ir::StructureScope scope(builder, structureOf(value.origin));
  checkLogged(Op::create(builder, location(name, where), name, valueOf(value)),
              (kind + " '" + ir::shownName(name) + "'").str(), where);
}

void ModelBuilder::print(const std::string &name, const ModelValue &value, Where where) {
  report<ir::PrintOp>("print", name, value, where);
}

void ModelBuilder::check(const std::string &name, const ModelValue &value, Where where) {
  if (!isa<FloatType>(frontend::typeOf(value).getElementType()))
    fail("check '" + name + "'", {value}, where,
         "expected floats: integers are always finite; leave it out");
  report<ir::CheckOp>("check", name, value, where);
}

void ModelBuilder::optimizer(const std::string &rule,
                             ArrayRef<ir::OptimizerAttr::Constant> constants,
                             ir::ScheduleKind schedule, int64_t warmup,
                             const base::ParameterGroups &groups, Where where) {
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    message = diagnostic.str();
    return success();
  });
  auto checked =
      ir::OptimizerAttr::create([&] { return mlir::emitError(location("optimizer", where)); },
                                &context, rule, constants, schedule, warmup, groups);
  if (!checked)
    throw ModelError(where, message);
  step.setOptimizerAttr(checked);
  optimizerAt = where;
}

void ModelBuilder::checkpointFile(const std::string &name, const std::string &text, Where where) {
  if (!ir::isCheckpointFileName(name))
    throw ModelError(where,
                     "got the file '" + ir::shownName(name) +
                         "' for checkpoints, expected a name without '/' that does not begin with "
                         "'.' and is neither 'manifest.json' nor '*.safetensors'");
  NamedAttrList files((*module)->getAttrOfType<DictionaryAttr>(ir::checkpointFilesAttrName));
  if (files.set(name, builder.getStringAttr(text)))
    throw ModelError(where, "the file '" + name + "' for checkpoints is given twice");
  (*module)->setDiscardableAttr(ir::checkpointFilesAttrName, files.getDictionary(&context));
}

OwningOpRef<ModuleOp> ModelBuilder::take(Where where) {
  if (step.getOps<ir::LossOp>().empty())
    throw ModelError(where, "the model has no loss; call 'Model::loss'");
  if (module->getOps<ir::ParamOp>().empty())
    throw ModelError(where, "the model has no parameter; there is nothing to train");
  if (!step.getOptimizerAttr())
    throw ModelError(where, "the model has no optimizer; call 'ModelBuilder::optimizer'");
  if (auto fault = step.findFaultOf(step.getOptimizer()->getGroups()))
    throw ModelError(*optimizerAt, "'" + fault->setting + "' of the optimizer: " + fault->why);
  return std::move(module);
}

} // namespace fsdp::frontend
