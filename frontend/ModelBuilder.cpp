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

namespace fsdp::frontend {

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

void ModelBuilder::fail(const std::string &what, llvm::ArrayRef<ModelValue> operands, Where where,
                        const std::string &message) {
  std::string text = what;
  llvm::ListSeparator separator(" and ");
  for (const ModelValue &operand : operands)
    text += std::string(text.size() == what.size() ? " of " : "") +
            std::string(StringRef(separator)) + "'" + operand.name() + "' (" +
            describe(frontend::typeOf(operand)) + ")";
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

ModelValue ModelBuilder::wrap(Value value, const std::string &label, const Origin &origin) {
  ModelValue wrapped;
  wrapped.value = value.getAsOpaquePointer();
  wrapped.model = this;
  wrapped.label = label;
  wrapped.origin = origin;
  return wrapped;
}

/// The structure of a unit's forward computation.
ir::Structure ModelBuilder::structureOf(const Origin &origin) {
  return {origin.unit.empty() ? StringAttr() : builder.getStringAttr(origin.unit)};
}

ModelValue ModelBuilder::read(const std::string &parameter, const Origin &origin, Where where) {
  if (openRegion())
    throw ModelError(where, "parameter '" + parameter +
                                "' is used in a manual region, where a rank has only what enters "
                                "it; pass it as an input of the region");
  ir::StructureScope scope(builder, structureOf(origin));
  auto param = cast<ir::ParamOp>(symbols.lookup(parameter));
  Value value =
      ir::ReadOp::create(builder, location(parameter, where), param.getTensorType(), parameter);
  return wrap(value, parameter, origin);
}

ModelValue ModelBuilder::scalar(double value, ElementType elementType, Where where) {
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

ModelValue ModelBuilder::create(const std::string &what, llvm::ArrayRef<ModelValue> operands,
                                Where where,
                                llvm::function_ref<Value(OpBuilder &, Location)> build) {
  // An operation belongs to the unit of the first operand that belongs somewhere, and is named
  // after it: `fc1.relu`.
  Origin origin;
  for (const ModelValue &operand : operands) {
    if (operand.model != this)
      fail(what, operands, where, "operands belong to different models");
    requireVisible(what, operand, where);
    // The last operand wins when it is a parameter: in x * w it is w's layer that computes.
    bool parameter = frontend::valueOf(operand).getDefiningOp<ir::ReadOp>() != nullptr;
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

} // namespace fsdp::frontend
