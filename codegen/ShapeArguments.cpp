//===- ShapeArguments.cpp -------------------------------------------------===//

#include "codegen/ShapeArguments.h"

#include "codegen/Elementwise.h"
#include "codegen/Names.h"
#include "dialect/nn/NNDialect.h"

using namespace mlir;
using namespace mlir::fsdp;

/// "{1, 2}"
static std::string spell(ArrayRef<int64_t> values) {
  std::string list;
  for (int64_t value : values)
    list += (list.empty() ? "{" : ", ") + std::to_string(value);
  return list.empty() ? "{}" : list + "}";
}

static std::string spell(const nn::ShapeArgument::Value &value, MLIRContext *context) {
  if (auto *integer = std::get_if<int64_t>(&value))
    return std::to_string(*integer);
  if (auto *flag = std::get_if<bool>(&value))
    return *flag ? "true" : "false";
  if (auto *number = std::get_if<nn::ShapeArgument::Number>(&value))
    return literal(number->value,
                   number->single ? Type(Float32Type::get(context)) : Float64Type::get(context));
  return spell(std::get<SmallVector<int64_t, 4>>(value));
}

/// "/*name=*/value"
static std::string field(StringRef name, const std::string &value) {
  return ("/*" + name + "=*/" + value).str();
}

std::string mlir::fsdp::spell(const nn::ShapeArgument &shape, MLIRContext *context) {
  std::string fields;
  for (const auto &[name, value] : shape.getFields())
    fields += (fields.empty() ? "" : ", ") + field(name, ::spell(value, context));
  return shape.getType().str() + "{" + fields + "}";
}

std::string mlir::fsdp::dropoutMask(DropoutOp op, std::string first) {
  // By how much the first index grows from one microbatch to the next.
  std::string microbatch;
  if (std::optional<uint64_t> along = op.getAlong()) {
    int64_t step = cast<RankedTensorType>(op.getType()).getDimSize(*along);
    for (int64_t size : op.getGlobalShape().drop_front(*along + 1))
      step *= size;
    microbatch = ", " + field("microbatch", std::to_string(step));
  }
  // From the innermost dimension on; dimensions that lie together in the whole tensor are joined.
  ArrayRef<int64_t> part = cast<RankedTensorType>(op.getType()).getShape(),
                    whole = op.getGlobalShape();
  SmallVector<std::pair<int64_t, int64_t>> extents = {{1, 1}};
  for (int64_t dim = part.size() - 1, stride = 1; dim >= 0; stride *= whole[dim--]) {
    auto &[size, step] = extents.back();
    if (size * step == stride)
      size *= part[dim];
    else
      extents.push_back({part[dim], stride});
  }
  std::string list;
  for (auto [size, stride] : llvm::reverse(extents))
    list +=
        (list.empty() ? "{" : ", {") + std::to_string(size) + ", " + std::to_string(stride) + "}";
  Type f64 = Float64Type::get(op.getContext());
  return "DropoutMask<" + std::to_string(extents.size()) + ">{" +
         field("rate", literal(op.getRate().convertToDouble(), f64)) + ", " +
         field("name", "hashName(\"" + escaped(op.getName()) + "\")") + ", " +
         field("first", first) + ", " + field("extents", "{" + list + "}") + microbatch + "}";
}
