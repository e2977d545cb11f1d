//===- Model.cpp - build the global IR of a step --------------------------===//

#include "dsl/Model.h"

#include "dialect/fsdp/Names.h"
#include "dialect/fsdp/TokenSource.h"
#include "dialect/nn/TensorSize.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
namespace ir = mlir::fsdp;

namespace fsdp::dsl {

void registerDialects(DialectRegistry &registry) {
  registry.insert<nn::NNDialect, ir::FSDPDialect, arith::ArithDialect, math::MathDialect>();
  nn::registerElementwiseModels(registry);
}

ir::OptimizerConstants Optimizer::defaults() {
  ir::OptimizerConstants constants;
  constants.lr = 3e-4;
  constants.weightDecay = 0.01;
  return constants;
}

Shape Tensor::shape() const { return Shape(type().getShape()); }

Located::Located(const Tensor &tensor, Where where) : tensor(tensor), where(where) {
  if (!tensor.model)
    throw ModelError(where, "this tensor holds no value; assign one before it is used");
}

Located::Located(const Parameter &parameter, Where where) : where(where) {
  if (!parameter.model)
    throw ModelError(where, "this parameter was not declared; make it with 'Scope::parameter'");
  tensor = parameter.model->read(parameter, where);
}

/// "10x64xf32" for messages.
static std::string describe(RankedTensorType type) {
  std::string text;
  llvm::raw_string_ostream out(text);
  for (int64_t size : type.getShape())
    out << size << "x";
  out << type.getElementType();
  return text;
}

void Model::fail(const std::string &what, llvm::ArrayRef<Tensor> operands, Where where,
                 const std::string &message) {
  std::string text = what;
  llvm::ListSeparator separator(" and ");
  for (const Tensor &operand : operands)
    text += std::string(text.size() == what.size() ? " of " : "") +
            std::string(StringRef(separator)) + "'" + operand.name() + "' (" +
            describe(operand.type()) + ")";
  throw ModelError(where, text + ": " + message);
}

static Type convert(MLIRContext &context, ElementType type) {
  Builder builder(&context);
  switch (type) {
  case ElementType::f32:
    return builder.getF32Type();
  case ElementType::f64:
    return builder.getF64Type();
  case ElementType::i32:
    return builder.getI32Type();
  case ElementType::i64:
    return builder.getI64Type();
  }
  llvm_unreachable("unknown element type");
}

/// The type of `what`. Fails unless all sizes are at least 0 and its bytes can be counted.
static RankedTensorType checkedType(const std::string &what, const Shape &shape, Type element,
                                    Where where) {
  for (int64_t size : shape)
    if (size < 0)
      throw ModelError(where, what + " has a dimension of size " + std::to_string(size) +
                                  ", expected at least 0");
  auto type = RankedTensorType::get(shape, element);
  if (!nn::countBytes(type))
    throw ModelError(where, what + " (" + describe(type) + ") " + nn::tooLargeMessage);
  return type;
}

Model::Model(MLIRContext &context, Where where)
    : context(context), module(ModuleOp::create(UnknownLoc::get(&context))), builder(&context) {
  builder.setInsertionPointToEnd(module->getBody());
  Optimizer optimizer;
  step = ir::StepOp::create(builder, location("train", where), "train", ir::StepKind::train,
                            ir::OptimizerAttr());
  step.getBody().emplaceBlock();
  this->optimizer(optimizer);
  builder.setInsertionPointToEnd(&step.getBody().front());
}

Location Model::location(const std::string &name, Where where) {
  return NameLoc::get(builder.getStringAttr(name),
                      FileLineColLoc::get(&context, where.file, where.line, 1));
}

Tensor Model::wrap(Value value, const std::string &label, const Origin &origin) {
  Tensor tensor;
  tensor.value = value;
  tensor.model = this;
  tensor.label = label;
  tensor.origin = origin;
  return tensor;
}

/// That of what a unit computes forward.
ir::Structure Model::structureOf(const Origin &origin) {
  return {origin.unit.empty() ? StringAttr() : builder.getStringAttr(origin.unit)};
}

Tensor Model::input(const std::string &name, const Shape &shape, ElementType elementType,
                    int64_t sampleDim, Where where) {
  RankedTensorType type =
      checkedType("input '" + name + "'", shape, convert(context, elementType), where);
  for (auto other : step.getOps<ir::InputOp>())
    if (other.getName() == name)
      throw ModelError(where, "input '" + name + "' is declared twice; give each its own name");
  if (sampleDim < 0 || sampleDim >= static_cast<int64_t>(shape.size()))
    throw ModelError(where, "input '" + name + "' counts samples along dimension " +
                                std::to_string(sampleDim) + ", expected a dimension below " +
                                std::to_string(shape.size()));
  auto op = ir::InputOp::create(builder, location(name, where), type, name, sampleDim,
                                IntegerAttr(), ArrayAttr());
  check([&] { return mlir::verify(op); }, "input '" + ir::shownName(name) + "'", where);
  return wrap(op, name, Origin());
}

Tensor Model::inputOfTokens(llvm::StringRef source, const std::string &name, const Shape &shape,
                            int64_t vocab, Where where) {
  if (shape.size() != 2 || vocab < 1)
    throw ModelError(where, "tokens '" + name + "' have " + std::to_string(shape.size()) +
                                " dimensions and a vocabulary of " + std::to_string(vocab) +
                                ", expected samples by positions and at least 1");
  Tensor result = input(name, shape, ElementType::i32, 0, where);
  result.value.getDefiningOp()->setDiscardableAttr(source, builder.getI64IntegerAttr(vocab));
  return result;
}

Tensor Model::tokens(const std::string &name, const Shape &shape, int64_t vocab, Where where) {
  return inputOfTokens(ir::tokensAttrName, name, shape, vocab, where);
}

Tensor Model::targets(const std::string &name, const Shape &shape, int64_t vocab, Where where) {
  return inputOfTokens(ir::targetsAttrName, name, shape, vocab, where);
}

Scope Model::unit(const std::string &name, const std::string &prefix) {
  Scope scope;
  scope.model = this;
  scope.prefix = prefix;
  scope.origin = {name, name};
  return scope;
}

Scope Scope::scope(const std::string &name) const {
  Scope inner = *this;
  inner.prefix += (prefix.empty() ? "" : ".") + name;
  inner.origin.path += "." + name;
  return inner;
}

Scope Scope::frozen() const {
  Scope same = *this;
  same.isFrozen = true;
  return same;
}

Parameter Scope::parameter(const std::string &name, const Shape &shape, Init init,
                           const Shape &fileShape, Where where) const {
  std::string label = prefix.empty() ? name : prefix + "." + name;
  Builder builder(&model->context);
  RankedTensorType type =
      checkedType("parameter '" + label + "'", shape, builder.getF32Type(), where);
  if (model->module->lookupSymbol(label))
    throw ModelError(where, "parameter '" + label + "' is declared twice; give each its own name");
  Parameter parameter;
  parameter.tensorType = type;
  parameter.model = model;
  parameter.label = label;
  parameter.origin = origin;
  OpBuilder declarations(model->step);
  auto op = ir::ParamOp::create(
      declarations, model->location(label, where), builder.getStringAttr(label),
      TypeAttr::get(parameter.tensorType), builder.getStringAttr(origin.unit),
      ir::InitAttr::get(&model->context, init.kind, builder.getF64FloatAttr(init.value)),
      fileShape.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(fileShape),
      ir::PlacementAttr(), isFrozen ? builder.getUnitAttr() : UnitAttr());
  model->check([&] { return mlir::verify(op); }, "parameter '" + ir::shownName(label) + "'", where);
  return parameter;
}

Tensor Model::read(const Parameter &parameter, Where where) {
  ir::StructureScope scope(builder, structureOf(parameter.origin));
  Value value = ir::ReadOp::create(builder, location(parameter.label, where), parameter.tensorType,
                                   parameter.label);
  return wrap(value, parameter.label, parameter.origin);
}

Tensor Model::scalar(double value, ElementType elementType, Where where) {
  auto type = RankedTensorType::get({}, convert(context, elementType));
  Attribute element =
      isa<FloatType>(type.getElementType())
          ? Attribute(builder.getFloatAttr(type.getElementType(), value))
          : Attribute(builder.getIntegerAttr(type.getElementType(), static_cast<int64_t>(value)));
  Value constant = arith::ConstantOp::create(builder, location("constant", where),
                                             DenseElementsAttr::get(type, element));
  return wrap(constant, "constant", Origin());
}

/// The op's own name leads the verifier's message; the model's author wrote something else.
static std::string withoutOpName(StringRef message) {
  size_t colon = message.find("op ");
  return (message.starts_with("'") && colon != StringRef::npos ? message.drop_front(colon + 3)
                                                               : message)
      .str();
}

void Model::check(llvm::function_ref<LogicalResult()> verify, const std::string &what,
                  Where where) {
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (message.empty())
      message = diagnostic.str();
    return success();
  });
  if (failed(verify()))
    throw ModelError(where, what + ": " + withoutOpName(message));
}

Tensor Model::create(const std::string &what, llvm::ArrayRef<Tensor> operands, Where where,
                     llvm::function_ref<Value(OpBuilder &, Location)> build) {
  // An operation belongs to the unit of the first operand that belongs somewhere, and is named
  // after it: `fc1.relu`.
  Origin origin;
  for (const Tensor &operand : operands) {
    if (operand.model != this)
      fail(what, operands, where, "operands belong to different models");
    // The last operand wins when it is a parameter: in x * w it is w's layer that computes.
    bool parameter = operand.value.getDefiningOp<ir::ReadOp>() != nullptr;
    if (origin.path.empty() || parameter)
      origin = operand.origin;
  }
  std::string operation = what.substr(0, what.find(' '));
  std::string label = origin.path.empty() ? operation : origin.path + "." + operation;
  ir::StructureScope scope(builder, structureOf(origin));
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (message.empty())
      message = diagnostic.str();
    return success();
  });
  Value value = build(builder, location(label, where));
  if (!value || failed(mlir::verify(value.getDefiningOp())))
    fail(what, operands, where, withoutOpName(message));
  return wrap(value, label, origin);
}

void Model::loss(const Average &average, Where where) {
  if (!step.getOps<ir::LossOp>().empty())
    throw ModelError(where, "the model has two losses; add them up first");
  ir::LossOp::create(builder, location("loss", where), average.sum.value, average.weight.value);
}

void Model::metric(const std::string &name, const Average &average, Where where) {
  for (auto other : step.getOps<ir::MetricOp>())
    if (other.getName() == name)
      throw ModelError(where, "metric '" + name + "' is given twice; give each its own name");
  auto op = ir::MetricOp::create(builder, location(name, where), name, average.sum.value,
                                 average.weight.value);
  check([&] { return ir::verifyMetric(op); }, "metric '" + ir::shownName(name) + "'", where);
}

void Model::optimizer(const Optimizer &optimizer, Where where) {
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    message = diagnostic.str();
    return success();
  });
  auto checked = ir::OptimizerAttr::getChecked(
      [&] { return mlir::emitError(location("optimizer", where)); }, &context, optimizer.kind,
      optimizer.constants, optimizer.schedule, optimizer.warmup);
  if (!checked)
    throw ModelError(where, message);
  step.setOptimizerAttr(checked);
}

OwningOpRef<ModuleOp> Model::take(Where where) {
  if (step.getOps<ir::LossOp>().empty())
    throw ModelError(where, "the model has no loss; call 'Model::loss' before 'Model::take'");
  if (module->getOps<ir::ParamOp>().empty())
    throw ModelError(where, "the model has no parameter; there is nothing to train");
  return std::move(module);
}

} // namespace fsdp::dsl
