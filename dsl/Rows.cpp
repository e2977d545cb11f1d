//===- Rows.cpp - parts, operations on rows, dropout, attention -----------===//

#include "dsl/ModelIR.h"
#include "dsl/Operations.h"

#include "dialect/nn/NNDialect.h"
#include "llvm/ADT/StringSet.h"
#include <cmath>

using namespace mlir;

namespace fsdp::dsl {

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

/// The type of `like` with `size` elements along `dim`; throws if there is no such dimension or
/// number of elements.
static RankedTensorType resized(const std::string &what,
                                const std::vector<frontend::ModelValue> &operands, Where where,
                                int64_t dim, int64_t size) {
  RankedTensorType type = typeOf(operands.front());
  if (dim < 0 || dim >= type.getRank())
    ModelBuilder::fail(what, operands, where,
                       "expected a dimension below " + std::to_string(type.getRank()));
  if (size < 0)
    ModelBuilder::fail(what, operands, where, "expected a non-negative size");
  Shape shape(type.getShape());
  shape[dim] = size;
  return type.clone(ArrayRef<int64_t>(shape));
}

Tensor slice(Located input, int64_t dim, int64_t start, int64_t size) {
  std::string what = "slice " + std::to_string(start) + "+" + std::to_string(size) +
                     " of dimension " + std::to_string(dim);
  RankedTensorType type = resized(what, {input.tensor}, input.where, dim, size);
  return builderOf(input.tensor)
      .create(what, {input.tensor}, input.where, [&](OpBuilder &builder, Location loc) -> Value {
        return nn::SliceOp::create(builder, loc, type, valueOf(input.tensor), dim, start);
      });
}

Tensor pad(Located input, int64_t dim, int64_t low, int64_t high) {
  std::string what = "pad of dimension " + std::to_string(dim);
  int64_t own = dim >= 0 && dim < input.tensor.rank() ? input.tensor.size(dim) : 0;
  RankedTensorType type = resized(what, {input.tensor}, input.where, dim, low + own + high);
  return builderOf(input.tensor)
      .create(what, {input.tensor}, input.where, [&](OpBuilder &builder, Location loc) -> Value {
        return nn::PadOp::create(builder, loc, type, valueOf(input.tensor), dim, low);
      });
}

Tensor concat(std::initializer_list<Located> inputs, int64_t dim, Where where) {
  return concat(std::vector<Located>(inputs), dim, where);
}

Tensor concat(const std::vector<Tensor> &inputs, int64_t dim, Where where) {
  std::vector<Located> located;
  for (const Tensor &input : inputs)
    located.emplace_back(input, where);
  return concat(located, dim, where);
}

Tensor concat(const std::vector<Located> &inputs, int64_t dim, Where where) {
  if (inputs.empty())
    throw ModelError(where, "concat got no tensors: expected at least one tensor");
  std::string what = "concat along dimension " + std::to_string(dim);
  std::vector<frontend::ModelValue> operands;
  SmallVector<Value> values;
  int64_t sum = 0;
  for (const Located &input : inputs) {
    operands.push_back(input.tensor);
    values.push_back(valueOf(input.tensor));
    sum += dim >= 0 && dim < input.tensor.rank() ? input.tensor.size(dim) : 0;
  }
  RankedTensorType type = resized(what, operands, where, dim, sum);
  return builderOf(inputs.front().tensor)
      .create(what, operands, where, [&](OpBuilder &builder, Location loc) -> Value {
        return nn::ConcatOp::create(builder, loc, type, values, dim);
      });
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

Tensor crossEntropy(Located logits, Located labels) {
  requireFloat("crossEntropy", logits);
  if (Type element = typeOf(labels.tensor).getElementType();
      !element.isInteger(32) && !element.isInteger(64))
    ModelBuilder::fail("crossEntropy", {logits.tensor, labels.tensor}, logits.where,
                       "expected labels that are integers, i32 or i64");
  Shape rows = rowShape("crossEntropy", logits);
  return builderOf(logits.tensor)
      .create("crossEntropy", {logits.tensor, labels.tensor}, logits.where,
              [&](OpBuilder &builder, Location loc) -> Value {
                RankedTensorType type = typeOf(logits.tensor).clone(ArrayRef<int64_t>(rows));
                return nn::CrossEntropyOp::create(
                           builder, loc, TypeRange{type, type},
                           ValueRange{valueOf(logits.tensor), valueOf(labels.tensor)})
                    .getLoss();
              });
}

Tensor argmax(Located input) {
  requireFloat("argmax", input);
  Shape rows = rowShape("argmax", input);
  return builderOf(input.tensor)
      .create("argmax", {input.tensor}, input.where,
              [&](OpBuilder &builder, Location loc) -> Value {
                auto type = RankedTensorType::get(rows, builder.getI32Type());
                return nn::ArgmaxOp::create(builder, loc, type, valueOf(input.tensor));
              });
}

Tensor softmax(Located input) {
  requireFloat("softmax", input);
  return builderOf(input.tensor)
      .create(
          "softmax", {input.tensor}, input.where, [&](OpBuilder &builder, Location loc) -> Value {
            return nn::SoftmaxOp::create(builder, loc, typeOf(input.tensor), valueOf(input.tensor));
          });
}

Tensor layerNorm(Located input, Located scale, Located bias, double eps) {
  requireFloat("layerNorm", input);
  Shape rows = rowShape("layerNorm", input);
  std::vector<frontend::ModelValue> operands = {input.tensor, scale.tensor, bias.tensor};
  if (typeOf(scale.tensor) != typeOf(bias.tensor))
    ModelBuilder::fail("layerNorm", operands, input.where,
                       "expected a scale and a bias of one type, that of a row");
  return builderOf(input.tensor)
      .create("layerNorm", operands, input.where, [&](OpBuilder &builder, Location loc) -> Value {
        RankedTensorType type = typeOf(input.tensor), row = type.clone(ArrayRef<int64_t>(rows));
        return nn::LayerNormOp::create(builder, loc, TypeRange{type, row, row},
                                       valueOf(input.tensor), valueOf(scale.tensor),
                                       valueOf(bias.tensor), builder.getF64FloatAttr(eps))
            .getY();
      });
}

Tensor rmsNorm(Located input, Located scale, double eps) {
  requireFloat("rmsNorm", input);
  Shape rows = rowShape("rmsNorm", input);
  return builderOf(input.tensor)
      .create(
          "rmsNorm", {input.tensor, scale.tensor}, input.where,
          [&](OpBuilder &builder, Location loc) -> Value {
            RankedTensorType type = typeOf(input.tensor), row = type.clone(ArrayRef<int64_t>(rows));
            return nn::RmsNormOp::create(builder, loc, TypeRange{type, row}, valueOf(input.tensor),
                                         valueOf(scale.tensor), builder.getF64FloatAttr(eps))
                .getY();
          });
}

Tensor embedding(Located table, Located ids) {
  requireFloat("embedding", table);
  if (table.tensor.rank() != 2)
    ModelBuilder::fail("embedding", {table.tensor, ids.tensor}, table.where,
                       "expected a table of two dimensions: rows and width");
  if (!typeOf(ids.tensor).getElementType().isInteger())
    ModelBuilder::fail("embedding", {table.tensor, ids.tensor}, table.where,
                       "expected integer ids");
  return builderOf(table.tensor)
      .create("embedding", {table.tensor, ids.tensor}, table.where,
              [&](OpBuilder &builder, Location loc) -> Value {
                Shape shape = ids.tensor.shape();
                shape.push_back(table.tensor.size(1));
                return nn::EmbeddingOp::create(builder, loc,
                                               typeOf(table.tensor).clone(ArrayRef<int64_t>(shape)),
                                               valueOf(table.tensor), valueOf(ids.tensor));
              });
}

//===----------------------------------------------------------------------===//
// Regularization
//===----------------------------------------------------------------------===//

Tensor dropout(Located input, double rate, const std::string &name) {
  requireFloat("dropout", input);
  if (rate == 0)
    return input.tensor;
  return builderOf(input.tensor)
      .create(
          "dropout", {input.tensor}, input.where, [&](OpBuilder &builder, Location loc) -> Value {
            llvm::StringSet<> taken;
            builderOf(input.tensor).step.walk([&](mlir::fsdp::DropoutOp other) {
              taken.insert(other.getName());
            });
            auto isTaken = [&](const std::string &wanted) { return taken.contains(wanted); };
            std::string base = name.empty() ? cast<NameLoc>(loc).getName().str() : name, own = base;
            if (!name.empty() && isTaken(name))
              ModelBuilder::fail("dropout", {input.tensor}, input.where,
                                 "dropout name '" + name +
                                     "' is already in use; give each dropout its own name");
            for (int number = 1; isTaken(own); ++number)
              own = base + "." + std::to_string(number);
            return mlir::fsdp::DropoutOp::create(
                builder, loc, typeOf(input.tensor), valueOf(input.tensor), llvm::APFloat(rate), own,
                DenseI64ArrayAttr(), ArrayAttr(), IntegerAttr(), IntegerAttr(), IntegerAttr());
          });
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// The attention of `inputs`: three, or one with n in the order.
static Tensor attend(const std::string &order, std::vector<frontend::ModelValue> inputs,
                     Where where, const AttentionOptions &options) {
  const Tensor first = inputs.front();
  if (!nn::isAttentionOrder(order) || (nn::attentionDim(order, 'n') >= 0) != (inputs.size() == 1))
    ModelBuilder::fail("attention", inputs, where,
                       "got the order '" + order + "', expected " +
                           (inputs.size() == 1 ? "b, h, t and n" : "b, h and t") +
                           " with spaces between them, then d, such as '" +
                           (inputs.size() == 1 ? "b t n h d" : "b t h d") + "'");
  if (first.rank() != static_cast<int64_t>(order.size() / 2 + 1))
    ModelBuilder::fail("attention", inputs, where, "expected the dimensions '" + order + "'");
  double width = static_cast<double>(first.shape().back());
  double scale = options.scale.value_or(1 / std::sqrt(width));
  std::string outOrder = nn::attentionOutOrder(order);
  Shape out(outOrder.size() / 2 + 1);
  auto sizeOf = [&](char letter) { return first.size(nn::attentionDim(order, letter)); };
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = sizeOf(outOrder[2 * i]);
  Shape rows = {sizeOf('b'), sizeOf('h'), sizeOf('t')};
  if (options.bias.operand)
    inputs.push_back(options.bias.operand->tensor);
  if (options.documents)
    inputs.push_back(*options.documents);
  return builderOf(first).create(
      "attention", inputs, where, [&](OpBuilder &builder, Location loc) -> Value {
        SmallVector<Value> values;
        for (const Tensor &input : inputs)
          values.push_back(valueOf(input));
        auto flag = [&](bool is) { return is ? builder.getUnitAttr() : UnitAttr(); };
        auto shaped = [&](const Shape &shape) {
          return typeOf(first).clone(ArrayRef<int64_t>(shape));
        };
        return nn::AttentionOp::create(
                   builder, loc, TypeRange{shaped(out), shaped(rows)}, builder.getStringAttr(order),
                   values, builder.getF64FloatAttr(scale), flag(options.causal),
                   options.window ? builder.getI64IntegerAttr(*options.window) : IntegerAttr(),
                   options.softcap ? builder.getF64FloatAttr(*options.softcap) : FloatAttr(),
                   flag(options.bias.operand.has_value()), flag(options.documents.has_value()),
                   nn::KeyExchangeAttr(), IntegerAttr(), DenseI64ArrayAttr(), ArrayAttr())
            .getOut();
      });
}

Tensor attention(const std::string &order, Located q, Located k, Located v,
                 const AttentionOptions &options) {
  requireFloat("attention", q);
  std::vector<frontend::ModelValue> inputs = {q.tensor, k.tensor, v.tensor};
  if (typeOf(k.tensor) != typeOf(v.tensor))
    ModelBuilder::fail("attention", inputs, q.where, "expected keys and values of one type");
  return attend(order, inputs, q.where, options);
}

Tensor attention(Located q, Located k, Located v, const AttentionOptions &options) {
  return attention("b h t d", q, k, v, options);
}

Tensor attention(const std::string &order, Located qkv, const AttentionOptions &options) {
  requireFloat("attention", qkv);
  return attend(order, {qkv.tensor}, qkv.where, options);
}

} // namespace fsdp::dsl
