//===- Elementwise.cpp ----------------------------------------------------===//

#include "codegen/Elementwise.h"

#include "dialect/nn/NNDialect.h"
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

static std::string compare(arith::CmpFOp op) {
  using P = arith::CmpFPredicate;
  switch (op.getPredicate()) {
  case P::AlwaysFalse:
    return "false";
  case P::AlwaysTrue:
    return "true";
  case P::OEQ:
    return "$0 == $1";
  case P::OGT:
    return "$0 > $1";
  case P::OGE:
    return "$0 >= $1";
  case P::OLT:
    return "$0 < $1";
  case P::OLE:
    return "$0 <= $1";
  case P::ONE:
    return "($0 < $1 || $0 > $1)";
  case P::ORD:
    return "($0 == $0 && $1 == $1)";
  case P::UEQ:
    return "!($0 < $1 || $0 > $1)";
  case P::UGT:
    return "!($0 <= $1)";
  case P::UGE:
    return "!($0 < $1)";
  case P::ULT:
    return "!($0 >= $1)";
  case P::ULE:
    return "!($0 > $1)";
  case P::UNE:
    return "$0 != $1";
  case P::UNO:
    return "($0 != $0 || $1 != $1)";
  }
  llvm_unreachable("unknown predicate");
}

static std::string compare(arith::CmpIOp op) {
  using P = arith::CmpIPredicate;
  StringRef sign;
  switch (op.getPredicate()) {
  case P::eq:
    return "$0 == $1";
  case P::ne:
    return "$0 != $1";
  case P::slt:
  case P::ult:
    sign = " < ";
    break;
  case P::sle:
  case P::ule:
    sign = " <= ";
    break;
  case P::sgt:
  case P::ugt:
    sign = " > ";
    break;
  case P::sge:
  case P::uge:
    sign = " >= ";
    break;
  }
  bool isUnsigned = op.getPredicate() >= P::ult;
  Type type = getElementTypeOrSelf(op.getLhs().getType());
  if (!isUnsigned || type.isInteger(1))
    return "$0" + sign.str() + "$1";
  std::string cast = type.isInteger(32) ? "std::uint32_t" : "std::uint64_t";
  return cast + "($0)" + sign.str() + cast + "($1)";
}

/// Integer arithmetic wraps, so it is done on unsigned values.
static std::string wrapping(Operation *op, StringRef sign) {
  Type type = getElementTypeOrSelf(op->getResult(0).getType());
  std::string cast = type.isInteger(64) ? "std::uint64_t" : "std::uint32_t";
  return (elementType(type) + "(" + cast + "($0) " + sign + " " + cast + "($1))").str();
}

std::string mlir::fsdp::elementwiseExpression(Operation *op) {
  Type result = computeType(getElementTypeOrSelf(op->getResult(0).getType()));
  std::string type = elementType(result).str();
  bool fromBool =
      op->getNumOperands() > 0 && getElementTypeOrSelf(op->getOperand(0).getType()).isInteger(1);
  return llvm::TypeSwitch<Operation *, std::string>(op)
      .Case<arith::AddFOp>([](auto) { return "$0 + $1"; })
      .Case<arith::SubFOp>([](auto) { return "$0 - $1"; })
      .Case<arith::MulFOp>([](auto) { return "$0 * $1"; })
      .Case<arith::DivFOp>([](auto) { return "$0 / $1"; })
      .Case<arith::NegFOp>([](auto) { return "-$0"; })
      .Case<arith::MaximumFOp>([](auto) { return "maximum($0, $1)"; })
      .Case<arith::MinimumFOp>([](auto) { return "minimum($0, $1)"; })
      .Case<arith::CmpFOp, arith::CmpIOp>([](auto cmp) { return compare(cmp); })
      .Case<arith::SelectOp>([](auto) { return "$0 ? $1 : $2"; })
      .Case<arith::AddIOp>([](auto add) { return wrapping(add, "+"); })
      .Case<arith::SubIOp>([](auto sub) { return wrapping(sub, "-"); })
      .Case<arith::MulIOp>([](auto mul) { return wrapping(mul, "*"); })
      .Case<arith::AndIOp>([&](auto) { return type + "($0 & $1)"; })
      .Case<arith::OrIOp>([&](auto) { return type + "($0 | $1)"; })
      .Case<arith::XOrIOp>([&](auto) { return type + "($0 ^ $1)"; })
      // A signed i1 is 0 or -1.
      .Case<arith::SIToFPOp, arith::ExtSIOp>(
          [&](auto) { return type + (fromBool ? "(-int($0))" : "($0)"); })
      .Case<arith::UIToFPOp>([&](arith::UIToFPOp cast) {
        Type from = getElementTypeOrSelf(cast.getIn().getType());
        if (from.isInteger(1))
          return type + "($0)";
        return type + (from.isInteger(32) ? "(std::uint32_t($0))" : "(std::uint64_t($0))");
      })
      .Case<arith::ExtFOp, arith::TruncFOp>([&](auto) { return type + "($0)"; })
      .Case<arith::TruncIOp>(
          [&](auto) { return result.isInteger(1) ? "($0 & 1) != 0" : type + "($0)"; })
      .Case<math::ExpOp>([](auto) { return "#exp($0)"; })
      .Case<math::LogOp>([](auto) { return "#log($0)"; })
      .Case<math::Log1pOp>([](auto) { return "#log1p($0)"; })
      .Case<math::SqrtOp>([](auto) { return "#sqrt($0)"; })
      .Case<math::RsqrtOp>([](auto) { return "#rsqrt($0)"; })
      .Case<math::TanhOp>([](auto) { return "#tanh($0)"; })
      .Case<math::ErfOp>([](auto) { return "#erf($0)"; })
      .Case<math::AbsFOp>([](auto) { return "#fabs($0)"; })
      .Case<math::SinOp>([](auto) { return "#sin($0)"; })
      .Case<math::CosOp>([](auto) { return "#cos($0)"; })
      .Case<math::PowFOp>([](auto) { return "#pow($0, $1)"; })
      .Case<math::FmaOp>([](auto) { return "#fma($0, $1, $2)"; })
      .Default([](Operation *) { return ""; });
}

std::string mlir::fsdp::hostFunction(StringRef name, Type type) {
  // These vectorize; where they take f64 they are the library's.
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
