//===- ModelBuilder.cpp - build the global IR of a step -------------------===//

#include "frontend/ModelBuilder.h"

#include "dialect/fsdp/ModelWords.h"
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

ModelBuilder::ModelBuilder(MLIRContext &context, Where where)
    : context(context), module(ModuleOp::create(UnknownLoc::get(&context))), symbols(*module),
      builder(&context) {
  builder.setInsertionPointToEnd(module->getBody());
  step = ir::StepOp::create(builder, location("train", where), "train", ir::StepKind::train,
                            ir::OptimizerAttr());
  symbols.insert(step);
  step.getBody().emplaceBlock();
  builder.setInsertionPointToEnd(&step.getBody().front());
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

void ModelBuilder::fail(const std::string &what, llvm::ArrayRef<Tensor> operands, Where where,
                        const std::string &message) {
  std::string text = what;
  llvm::ListSeparator separator(" and ");
  for (const Tensor &operand : operands)
    text += std::string(text.size() == what.size() ? " of " : "") +
            std::string(StringRef(separator)) + "'" + operand.name() + "' (" +
            describe(dsl::typeOf(operand)) + ")";
  throw ModelError(where, text + ": " + message);
}

Type ModelBuilder::typeOf(ElementType type) {
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

RankedTensorType ModelBuilder::checkedType(const std::string &what, const Shape &shape,
                                           Type element, Where where) {
  for (int64_t size : shape)
    if (size < 0)
      throw ModelError(where, what + " has a dimension of size " + std::to_string(size) +
                                  ", expected at least 0");
  auto type = RankedTensorType::get(shape, element);
  if (!nn::countBytes(type))
    throw ModelError(where, what + " (" + describe(type) + ") " + nn::tooLargeMessage);
  return type;
}

Location ModelBuilder::location(const std::string &name, Where where) {
  return NameLoc::get(builder.getStringAttr(name),
                      FileLineColLoc::get(&context, where.file, where.line, 1));
}

Tensor ModelBuilder::wrap(Value value, const std::string &label, const Origin &origin) {
  Tensor tensor;
  tensor.value = value.getAsOpaquePointer();
  tensor.model = this;
  tensor.label = label;
  tensor.origin = origin;
  return tensor;
}

/// That of what a unit computes forward.
ir::Structure ModelBuilder::structureOf(const Origin &origin) {
  return {origin.unit.empty() ? StringAttr() : builder.getStringAttr(origin.unit)};
}

Tensor ModelBuilder::read(const Parameter &parameter, Where where) {
  ir::StructureScope scope(builder, structureOf(parameter.origin));
  auto type = RankedTensorType::get(parameter.sizes, builder.getF32Type());
  Value value =
      ir::ReadOp::create(builder, location(parameter.label, where), type, parameter.label);
  return wrap(value, parameter.label, parameter.origin);
}

Tensor ModelBuilder::scalar(double value, ElementType elementType, Where where) {
  auto type = RankedTensorType::get({}, typeOf(elementType));
  Attribute element =
      isa<FloatType>(type.getElementType())
          ? Attribute(builder.getFloatAttr(type.getElementType(), value))
          : Attribute(builder.getIntegerAttr(type.getElementType(), static_cast<int64_t>(value)));
  Value constant = arith::ConstantOp::create(builder, location("constant", where),
                                             DenseElementsAttr::get(type, element));
  return wrap(constant, "constant", Origin());
}

void ModelBuilder::check(llvm::function_ref<LogicalResult()> verify, const std::string &what,
                         Where where) {
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (message.empty())
      message = diagnostic.str();
    return success();
  });
  if (failed(verify()))
    throw ModelError(where, what + ": " + ir::inWordsOfModel(message, &context));
}

Tensor ModelBuilder::create(const std::string &what, llvm::ArrayRef<Tensor> operands, Where where,
                            llvm::function_ref<Value(OpBuilder &, Location)> build) {
  // An operation belongs to the unit of the first operand that belongs somewhere, and is named
  // after it: `fc1.relu`.
  Origin origin;
  for (const Tensor &operand : operands) {
    if (operand.model != this)
      fail(what, operands, where, "operands belong to different models");
    requireVisible(what, operand, where);
    // The last operand wins when it is a parameter: in x * w it is w's layer that computes.
    bool parameter = dsl::valueOf(operand).getDefiningOp<ir::ReadOp>() != nullptr;
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
    fail(what, operands, where, ir::inWordsOfModel(message, &context));
  return wrap(value, label, origin);
}

void requireFloat(const char *what, const Located &input) {
  if (!isa<FloatType>(typeOf(input.tensor).getElementType()))
    ModelBuilder::fail(what, {input.tensor}, input.where, "expected a float element type");
}

Shape rowShape(const char *what, const Located &input) {
  Shape shape = input.tensor.shape();
  if (shape.empty())
    ModelBuilder::fail(what, {input.tensor}, input.where,
                       "expected at least one dimension, the row's");
  shape.pop_back();
  return shape;
}

} // namespace fsdp::dsl
