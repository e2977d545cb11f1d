//===- Rows.cpp - parts of tensors, operations on rows, attention ---------===//

#include "dsl/Checks.h"
#include "dsl/Operations.h"

#include "dialect/nn/NNDialect.h"
#include <cmath>

using namespace mlir;

namespace fsdp::dsl {

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

/// The type of `like` with `size` elements along `dim`; throws where there is no such dimension or
/// number of elements.
static RankedTensorType resized(const std::string &what, const std::vector<Tensor> &operands,
                                Where where, int64_t dim, int64_t size) {
  RankedTensorType type = operands.front().type();
  if (dim < 0 || dim >= type.getRank())
    Model::fail(what, operands, where,
                "expected a dimension below " + std::to_string(type.getRank()));
  if (size < 0)
    Model::fail(what, operands, where, "expected a size that is not negative");
  Shape shape(type.getShape());
  shape[dim] = size;
  return type.clone(ArrayRef<int64_t>(shape));
}

Tensor slice(Located input, int64_t dim, int64_t start, int64_t size) {
  std::string what = "slice " + std::to_string(start) + "+" + std::to_string(size) +
                     " of dimension " + std::to_string(dim);
  RankedTensorType type = resized(what, {input.tensor}, input.where, dim, size);
  return input.tensor.owner().create(
      what, {input.tensor}, input.where, [&](OpBuilder &builder, Location loc) -> Value {
        return nn::SliceOp::create(builder, loc, type, input.tensor.irValue(), dim, start);
      });
}

Tensor pad(Located input, int64_t dim, int64_t low, int64_t high) {
  std::string what = "pad of dimension " + std::to_string(dim);
  int64_t own = dim >= 0 && dim < input.tensor.rank() ? input.tensor.size(dim) : 0;
  RankedTensorType type = resized(what, {input.tensor}, input.where, dim, low + own + high);
  return input.tensor.owner().create(
      what, {input.tensor}, input.where, [&](OpBuilder &builder, Location loc) -> Value {
        return nn::PadOp::create(builder, loc, type, input.tensor.irValue(), dim, low);
      });
}

Tensor concat(const std::vector<Located> &inputs, int64_t dim, Where where) {
  if (inputs.empty())
    throw ModelError(where, "concat of nothing: expected at least one tensor to join");
  std::string what = "concat along dimension " + std::to_string(dim);
  std::vector<Tensor> operands;
  SmallVector<Value> values;
  int64_t sum = 0;
  for (const Located &input : inputs) {
    operands.push_back(input.tensor);
    values.push_back(input.tensor.irValue());
    sum += dim >= 0 && dim < input.tensor.rank() ? input.tensor.size(dim) : 0;
  }
  RankedTensorType type = resized(what, operands, where, dim, sum);
  return inputs.front().tensor.owner().create(
      what, operands, where, [&](OpBuilder &builder, Location loc) -> Value {
        return nn::ConcatOp::create(builder, loc, type, values, dim);
      });
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

Tensor crossEntropy(Located logits, Located labels) {
  requireFloat("crossEntropy", logits);
  Shape rows = rowShape("crossEntropy", logits);
  return logits.tensor.owner().create(
      "crossEntropy", {logits.tensor, labels.tensor}, logits.where,
      [&](OpBuilder &builder, Location loc) -> Value {
        RankedTensorType type = logits.tensor.type().clone(ArrayRef<int64_t>(rows));
        return nn::CrossEntropyOp::create(
                   builder, loc, TypeRange{type, type},
                   ValueRange{logits.tensor.irValue(), labels.tensor.irValue()})
            .getLoss();
      });
}

Tensor argmax(Located input) {
  requireFloat("argmax", input);
  Shape rows = rowShape("argmax", input);
  return input.tensor.owner().create(
      "argmax", {input.tensor}, input.where, [&](OpBuilder &builder, Location loc) -> Value {
        auto type = RankedTensorType::get(rows, builder.getI32Type());
        return nn::ArgmaxOp::create(builder, loc, type, input.tensor.irValue());
      });
}

Tensor softmax(Located input) {
  requireFloat("softmax", input);
  return input.tensor.owner().create(
      "softmax", {input.tensor}, input.where, [&](OpBuilder &builder, Location loc) -> Value {
        return nn::SoftmaxOp::create(builder, loc, input.tensor.type(), input.tensor.irValue());
      });
}

Tensor layerNorm(Located input, Located scale, Located bias, double eps) {
  requireFloat("layerNorm", input);
  Shape rows = rowShape("layerNorm", input);
  std::vector<Tensor> operands = {input.tensor, scale.tensor, bias.tensor};
  if (scale.tensor.type() != bias.tensor.type())
    Model::fail("layerNorm", operands, input.where,
                "expected a scale and a bias of one type, that of a row");
  return input.tensor.owner().create(
      "layerNorm", operands, input.where, [&](OpBuilder &builder, Location loc) -> Value {
        RankedTensorType type = input.tensor.type(), row = type.clone(ArrayRef<int64_t>(rows));
        return nn::LayerNormOp::create(builder, loc, TypeRange{type, row, row},
                                       input.tensor.irValue(), scale.tensor.irValue(),
                                       bias.tensor.irValue(), builder.getF64FloatAttr(eps))
            .getY();
      });
}

Tensor rmsNorm(Located input, Located scale, double eps) {
  requireFloat("rmsNorm", input);
  Shape rows = rowShape("rmsNorm", input);
  return input.tensor.owner().create(
      "rmsNorm", {input.tensor, scale.tensor}, input.where,
      [&](OpBuilder &builder, Location loc) -> Value {
        RankedTensorType type = input.tensor.type(), row = type.clone(ArrayRef<int64_t>(rows));
        return nn::RmsNormOp::create(builder, loc, TypeRange{type, row}, input.tensor.irValue(),
                                     scale.tensor.irValue(), builder.getF64FloatAttr(eps))
            .getY();
      });
}

Tensor embedding(Located table, Located ids) {
  requireFloat("embedding", table);
  if (table.tensor.rank() != 2)
    Model::fail("embedding", {table.tensor, ids.tensor}, table.where,
                "expected a table of two dimensions: rows and width");
  if (!ids.tensor.type().getElementType().isInteger())
    Model::fail("embedding", {table.tensor, ids.tensor}, table.where, "expected integer ids");
  return table.tensor.owner().create("embedding", {table.tensor, ids.tensor}, table.where,
                                     [&](OpBuilder &builder, Location loc) -> Value {
                                       Shape shape = ids.tensor.shape();
                                       shape.push_back(table.tensor.size(1));
                                       return nn::EmbeddingOp::create(
                                           builder, loc,
                                           table.tensor.type().clone(ArrayRef<int64_t>(shape)),
                                           table.tensor.irValue(), ids.tensor.irValue());
                                     });
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

Tensor attention(Located q, Located k, Located v, const AttentionOptions &options) {
  requireFloat("attention", q);
  Shape rows = rowShape("attention", q);
  std::vector<Tensor> operands = {q.tensor, k.tensor, v.tensor};
  if (k.tensor.type() != v.tensor.type())
    Model::fail("attention", operands, q.where, "expected keys and values of one type");
  double width = static_cast<double>(q.tensor.shape().back());
  double scale = options.scale.value_or(1 / std::sqrt(width));
  return q.tensor.owner().create(
      "attention", operands, q.where, [&](OpBuilder &builder, Location loc) -> Value {
        RankedTensorType type = q.tensor.type();
        return nn::AttentionOp::create(builder, loc,
                                       TypeRange{type, type.clone(ArrayRef<int64_t>(rows))},
                                       q.tensor.irValue(), k.tensor.irValue(), v.tensor.irValue(),
                                       builder.getF64FloatAttr(scale),
                                       options.causal ? builder.getUnitAttr() : UnitAttr())
            .getOut();
      });
}

Tensor rope(Located input, double theta) {
  requireFloat("rope", input);
  return input.tensor.owner().create(
      "rope", {input.tensor}, input.where, [&](OpBuilder &builder, Location loc) -> Value {
        return nn::RopeOp::create(builder, loc, input.tensor.type(), input.tensor.irValue(),
                                  builder.getF64FloatAttr(theta), UnitAttr());
      });
}

} // namespace fsdp::dsl
