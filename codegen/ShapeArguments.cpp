//===- ShapeArguments.cpp -------------------------------------------------===//

#include "codegen/ShapeArguments.h"

#include "codegen/Elementwise.h"
#include "codegen/Names.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

std::string mlir::fsdp::rankIndex(const ScheduledProgram &program, ArrayAttr over) {
  std::string text;
  for (StringAttr axis : getAxisNames(over)) {
    std::string own = "c.coordinate(" + program.names.axis(axis) + ")";
    text = text.empty()
               ? own
               : "(" + text + ") * " + std::to_string(program.mesh.getAxisSize(axis)) + " + " + own;
  }
  return text.empty() ? "0" : text;
}

namespace {

/// A value of a field as C++.
struct ValueText {
  const ScheduledProgram &program;

  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const nn::ShapeArgument::Number &number) const {
    MLIRContext *context = program.module.getContext();
    return literal(number.value,
                   number.single ? Type(Float32Type::get(context)) : Float64Type::get(context));
  }
  /// "{1, 2}"
  template <typename T, unsigned N> std::string operator()(const SmallVector<T, N> &values) const {
    std::string list;
    for (const T &value : values)
      list += (list.empty() ? "{" : ", ") + (*this)(value);
    return list.empty() ? "{}" : list + "}";
  }
  std::string operator()(std::pair<int64_t, int64_t> pair) const {
    return "{" + std::to_string(pair.first) + ", " + std::to_string(pair.second) + "}";
  }
  std::string operator()(const nn::ShapeArgument::RankSum &terms) const {
    std::string sum;
    for (const auto &[factor, over] : terms) {
      std::string index = over ? rankIndex(program, over) : "";
      std::string scale = "std::int64_t{" + std::to_string(factor) + "}";
      sum += (sum.empty() ? "" : " + ") + (!over         ? scale
                                           : factor == 1 ? index
                                                         : scale + " * (" + index + ")");
    }
    return sum.empty() ? "0" : sum;
  }
  std::string operator()(const nn::ShapeArgument::NumberOfRank &list) const {
    return "ofRank(" + (*this)(list.numbers) + ", " + rankIndex(program, list.over) + ")";
  }
  std::string operator()(const nn::ShapeArgument::Expression &expression) const {
    return expression.text;
  }
  std::string operator()(const nn::ShapeArgument::HashedName &hashed) const {
    return "hashName(\"" + escaped(hashed.name) + "\")";
  }
};

} // namespace

std::string mlir::fsdp::spell(const ScheduledProgram &program, const nn::ShapeArgument &shape) {
  std::string fields;
  for (const auto &[name, value] : shape.getFields())
    fields += (fields.empty() ? "/*" : ", /*") + name.str() + "=*/" +
              std::visit(ValueText{program}, value);
  return shape.getType().empty() ? fields : shape.getType().str() + "{" + fields + "}";
}
