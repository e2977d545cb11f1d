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

/// The type of the first of `operands` with `size` elements along `dim`; throws if there is no such
/// dimension or number of elements.
static RankedTensorType resized(const std::string &what, ArrayRef<Located> operands, int64_t dim,
                                int64_t size) {
  RankedTensorType type = typeOf(operands.front());
  if (dim < 0 || dim >= type.getRank())
    fail(what, operands, "expected a dimension below " + std::to_string(type.getRank()));
  if (size < 0)
    fail(what, operands, "expected a non-negative size");
  Shape shape(type.getShape());
  shape[dim] = size;
  return type.clone(shape);
}

/// The elements along `dim`; 0 if there is no such dimension.
static int64_t sizeAlong(const Tensor &tensor, int64_t dim) {
  return dim >= 0 && dim < tensor.rank() ? tensor.size(dim) : 0;
}

Tensor slice(Located input, int64_t dim, int64_t start, int64_t size) {
  std::string what = "slice " + std::to_string(start) + "+" + std::to_string(size) +
                     " of dimension " + std::to_string(dim);
  RankedTensorType type = resized(what, {input}, dim, size);
  return createOp<nn::SliceOp>(what, {input}, type, valueOf(input), dim, start);
}

Tensor pad(Located input, int64_t dim, int64_t low, int64_t high) {
  std::string what = "pad of dimension " + std::to_string(dim);
  RankedTensorType type = resized(what, {input}, dim, low + sizeAlong(input.tensor, dim) + high);
  return createOp<nn::PadOp>(what, {input}, type, valueOf(input), dim, low);
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
  std::vector<Located> operands;
  SmallVector<Value> values;
  int64_t sum = 0;
  for (const Located &input : inputs) {
    operands.emplace_back(input.tensor, where);
    values.push_back(valueOf(input));
    sum += sizeAlong(input.tensor, dim);
  }
  RankedTensorType type = resized(what, operands, dim, sum);
  return createOp<nn::ConcatOp>(what, operands, type, values, dim);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

Tensor crossEntropy(Located logits, Located labels) {
  requireFloat("crossEntropy", logits);
  if (Type element = typeOf(labels).getElementType();
      !element.isInteger(32) && !element.isInteger(64))
    fail("crossEntropy", {logits, labels}, "expected labels that are integers, i32 or i64");
  RankedTensorType type = typeOf(logits).clone(rowShape("crossEntropy", logits));
  return createOp<nn::CrossEntropyOp>("crossEntropy", {logits, labels}, TypeRange{type, type},
                                      ValueRange{valueOf(logits), valueOf(labels)});
}

Tensor argmax(Located input) {
  requireFloat("argmax", input);
  auto type =
      RankedTensorType::get(rowShape("argmax", input), builderOf(input).builder.getI32Type());
  return createOp<nn::ArgmaxOp>("argmax", {input}, type, valueOf(input));
}

Tensor softmax(Located input) {
  requireFloat("softmax", input);
  return createOp<nn::SoftmaxOp>("softmax", {input}, typeOf(input), valueOf(input));
}

Tensor layerNorm(Located input, Located scale, Located bias, double eps) {
  requireFloat("layerNorm", input);
  RankedTensorType type = typeOf(input), row = type.clone(rowShape("layerNorm", input));
  if (typeOf(scale) != typeOf(bias))
    fail("layerNorm", {input, scale, bias},
         "expected a scale and a bias of one type, that of a row");
  return createOp<nn::LayerNormOp>("layerNorm", {input, scale, bias}, TypeRange{type, row, row},
                                   valueOf(input), valueOf(scale), valueOf(bias),
                                   builderOf(input).builder.getF64FloatAttr(eps));
}

Tensor rmsNorm(Located input, Located scale, double eps) {
  requireFloat("rmsNorm", input);
  RankedTensorType type = typeOf(input), row = type.clone(rowShape("rmsNorm", input));
  return createOp<nn::RmsNormOp>("rmsNorm", {input, scale}, TypeRange{type, row}, valueOf(input),
                                 valueOf(scale), builderOf(input).builder.getF64FloatAttr(eps));
}

Tensor embedding(Located table, Located ids) {
  requireFloat("embedding", table);
  if (table.tensor.rank() != 2)
    fail("embedding", {table, ids}, "expected a table of two dimensions: rows and width");
  if (!typeOf(ids).getElementType().isInteger())
    fail("embedding", {table, ids}, "expected integer ids");
  Shape shape = ids.tensor.shape();
  shape.push_back(table.tensor.size(1));
  return createOp<nn::EmbeddingOp>("embedding", {table, ids}, typeOf(table).clone(shape),
                                   valueOf(table), valueOf(ids));
}

//===----------------------------------------------------------------------===//
// Regularization
//===----------------------------------------------------------------------===//

Tensor dropout(Located input, double rate, const std::string &name) {
  requireFloat("dropout", input);
  if (rate == 0)
    return input.tensor;
  return create("dropout", {input}, [&](OpBuilder &builder, Location loc) -> Value {
    llvm::StringSet<> taken;
    builderOf(input).step.walk([&](mlir::fsdp::DropoutOp other) { taken.insert(other.getName()); });
    std::string base = name.empty() ? cast<NameLoc>(loc).getName().str() : name, own = base;
    if (!name.empty() && taken.contains(name))
      fail("dropout", {input},
           "dropout name '" + name + "' is already in use; give each dropout its own name");
    for (int number = 1; taken.contains(own); ++number)
      own = base + "." + std::to_string(number);
    return mlir::fsdp::DropoutOp::create(builder, loc, typeOf(input), valueOf(input),
                                         llvm::APFloat(rate), own, DenseI64ArrayAttr(), ArrayAttr(),
                                         IntegerAttr(), IntegerAttr(), IntegerAttr());
  });
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// The attention of `inputs`: three, or one with n in the order.
static Tensor attend(const std::string &order, std::vector<Located> inputs,
                     const AttentionOptions &options) {
  const Located first = inputs.front();
  if (!nn::isAttentionOrder(order) || (nn::attentionDim(order, 'n') >= 0) != (inputs.size() == 1))
    fail("attention", inputs,
         "got the order '" + order + "', expected " +
             (inputs.size() == 1 ? "b, h, t and n" : "b, h and t") +
             " with spaces between them, then d, such as '" +
             (inputs.size() == 1 ? "b t n h d" : "b t h d") + "'");
  if (first.tensor.rank() != static_cast<int64_t>(order.size() / 2 + 1))
    fail("attention", inputs, "expected the dimensions '" + order + "'");
  double width = static_cast<double>(first.tensor.shape().back());
  double scale = options.scale.value_or(1 / std::sqrt(width));
  std::string outOrder = nn::attentionOutOrder(order);
  Shape out(outOrder.size() / 2 + 1);
  auto sizeOf = [&](char letter) { return first.tensor.size(nn::attentionDim(order, letter)); };
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = sizeOf(outOrder[2 * i]);
  Shape rows = {sizeOf('b'), sizeOf('h'), sizeOf('t')};
  if (options.bias.operand)
    inputs.push_back(*options.bias.operand);
  if (options.documents)
    inputs.emplace_back(*options.documents, first.where);
  SmallVector<Value> values;
  for (const Located &input : inputs)
    values.push_back(valueOf(input));
  Builder &builder = builderOf(first).builder;
  auto flag = [&](bool is) { return is ? builder.getUnitAttr() : UnitAttr(); };
  return createOp<nn::AttentionOp>(
      "attention", inputs, TypeRange{typeOf(first).clone(out), typeOf(first).clone(rows)},
      builder.getStringAttr(order), values, builder.getF64FloatAttr(scale), flag(options.causal),
      options.window ? builder.getI64IntegerAttr(*options.window) : IntegerAttr(),
      options.softcap ? builder.getF64FloatAttr(*options.softcap) : FloatAttr(),
      flag(options.bias.operand.has_value()), flag(options.documents.has_value()),
      nn::KeyExchangeAttr(), IntegerAttr(), DenseI64ArrayAttr(), ArrayAttr());
}

Tensor attention(const std::string &order, Located q, Located k, Located v,
                 const AttentionOptions &options) {
  requireFloat("attention", q);
  if (typeOf(k) != typeOf(v))
    fail("attention", {q, k, v}, "expected keys and values of one type");
  return attend(order, {q, k, v}, options);
}

Tensor attention(Located q, Located k, Located v, const AttentionOptions &options) {
  return attention("b h t d", q, k, v, options);
}

Tensor attention(const std::string &order, Located qkv, const AttentionOptions &options) {
  requireFloat("attention", qkv);
  return attend(order, {qkv}, options);
}

} // namespace fsdp::dsl
