//===- Elementwise.cpp ----------------------------------------------------===//

#include "codegen/Elementwise.h"

#include "dialect/nn/Elementwise.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;

StringRef mlir::fsdp::elementType(Type type) {
  return llvm::TypeSwitch<Type, StringRef>(type)
      .Case<Float32Type>([](Type) { return "float"; })
      .Case<Float64Type>([](Type) { return "double"; })
      .Case<BFloat16Type>([](Type) { return "bf16"; })
      .Case<IntegerType>([](IntegerType integer) {
        switch (integer.getWidth()) {
        case 1:
          return "bool";
        case 32:
          return "std::int32_t";
        case 64:
          return "std::int64_t";
        default:
          return "";
        }
      })
      .Default([](Type) { return ""; });
}

Type mlir::fsdp::computeType(Type type) {
  return type.isBF16() ? Float32Type::get(type.getContext()) : type;
}

//===----------------------------------------------------------------------===//
// Literals
//===----------------------------------------------------------------------===//

std::string mlir::fsdp::literal(double value, Type type) {
  bool single = computeType(type).isF32();
  std::string suffix = single ? "f" : "";
  if (std::isnan(value))
    return "__builtin_nan" + suffix + "(\"\")";
  if (std::isinf(value))
    return (value < 0 ? "-__builtin_inf" : "__builtin_inf") + suffix + "()";
  char text[40];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof(text), "%.*g", digits, value);
    if (single ? std::strtof(text, nullptr) == static_cast<float>(value)
               : std::strtod(text, nullptr) == value)
      break;
  }
  std::string result = text;
  if (result.find_first_of(".e") == std::string::npos)
    result += ".0";
  return result + suffix;
}

std::string mlir::fsdp::literal(Attribute attr) {
  if (auto number = dyn_cast<FloatAttr>(attr)) {
    double value =
        number.getType().isF32() ? number.getValue().convertToFloat() : number.getValueAsDouble();
    return literal(value, number.getType());
  }
  auto integer = cast<IntegerAttr>(attr);
  if (integer.getType().isInteger(1))
    return integer.getValue().isZero() ? "false" : "true";
  int64_t value = integer.getValue().getSExtValue();
  if (value == INT64_MIN)
    return "INT64_MIN";
  if (value == INT32_MIN && integer.getType().isInteger(32))
    return "INT32_MIN";
  return std::to_string(value) + (integer.getType().isInteger(64) ? "LL" : "");
}

std::string mlir::fsdp::identityOf(bool maximum, Type type) {
  if (isa<FloatType>(type))
    return literal(maximum ? -INFINITY : 0.0, type);
  if (!maximum)
    return "0";
  return type.isInteger(32) ? "INT32_MIN" : "INT64_MIN";
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

std::string mlir::fsdp::elementwiseExpression(Operation *op) {
  const std::string text = nn::elementExpression(op);
  if (text.empty())
    return "";
  Type result = computeType(getElementTypeOrSelf(op->getResult(0).getType()));
  std::string spelled;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '@')
      spelled += text[i];
    else if (StringRef(text).substr(i + 1).starts_with("u("))
      spelled += result.isInteger(64) ? "std::uint64_t" : "std::uint32_t", ++i;
    else
      spelled += elementType(result);
  }
  return spelled;
}

std::string mlir::fsdp::hostFunction(StringRef name, Type type) {
  // These vectorize; for f64 they are the library's.
  static constexpr std::pair<StringLiteral, StringLiteral> vectorized[] = {{"exp", "vectorExp"},
                                                                           {"log", "vectorLog"},
                                                                           {"log1p", "vectorLog1p"},
                                                                           {"tanh", "vectorTanh"},
                                                                           {"erf", "vectorErf"}};
  for (auto [function, spelled] : vectorized)
    if (name == function)
      return spelled.str();
  return name == "rsqrt" ? (elementType(type) + "(1) / std::sqrt").str() : "std::" + name.str();
}

std::string mlir::fsdp::deviceFunction(StringRef name, Type type) {
  if (!type.isF64())
    return name.str() + "f";
  return name == "rsqrt" ? "double(1) / std::sqrt" : "std::" + name.str();
}

std::string mlir::fsdp::spellExpression(StringRef text, Type type, FunctionName functionName,
                                        llvm::function_ref<std::string(int)> operand) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '$') {
      result += operand(text[++i] - '0');
    } else if (text[i] == '#') {
      StringRef name = text.substr(i + 1).take_until([](char c) { return c == '('; });
      result += functionName(name, type);
      i += name.size();
    } else {
      result += text[i];
    }
  }
  return result;
}
