//===- gpt2.cpp - the blocks of GPT-2 -------------------------------------===//

#include "models/gpt2.h"

#include "models/activation.h"
#include "models/sizes.h"
#include <cmath>

using namespace fsdp::dsl;

namespace fsdp::models {

void GPT2Config::check() const {
  if (width % heads != 0)
    throw ModelError(Where::here(),
                     "got --width=" + std::to_string(width) +
                         ", expected a multiple of --heads=" + std::to_string(heads));
  packing.check(vocab);
  checkTensor({{"--vocab", vocab}, {"--width", width}});
  checkTensor({{"--width", width}, {"the width of the feed-forward parts", hiddenWidth()}});
  checkTensor({{"positions", positions}, {"--width", width}});
}

static Init residualInit(const GPT2Config &sizes) {
  return normal(0.02 / std::sqrt(2.0 * static_cast<double>(sizes.layers)));
}

GPT2Norm::GPT2Norm(const Scope &scope, int64_t width, double eps)
    : eps(eps), weight(scope.parameter("weight", {width}, ones())),
      bias(scope.parameter("bias", {width}, zeros())) {}

Tensor GPT2Norm::operator()(Located x) const { return layerNorm(x, weight, bias, eps); }

// Weights are stored (in, out); their factors (queries, keys and values; heads) are separate
// dimensions here and joined in weight files. They are split by heads, and below by hidden units,
// over the axis `tensor` if the mesh has it; other splits follow.
GPT2Attention::GPT2Attention(const Scope &scope, const GPT2Config &sizes, int64_t layer,
                             Lora *lora) {
  const int64_t width = sizes.width, heads = sizes.heads, head = width / heads;
  scale = 1;
  if (sizes.scalesByWidth)
    scale /= std::sqrt(static_cast<double>(head));
  if (sizes.scalesByLayer)
    scale /= static_cast<double>(layer + 1);
  const Scope in = scope.scope("c_attn"), output = scope.scope("c_proj");
  qkv = in.parameter("weight", {width, 3, heads, head}, normal(0.02), {width, 3 * width})
            .split("_,_,tensor,_");
  qkvBias = in.parameter("bias", {3, heads, head}, zeros(), {3 * width});
  out = output.parameter("weight", {heads, head, width}, residualInit(sizes), {width, width});
  outBias = output.parameter("bias", {width}, zeros());
  if (!lora)
    return;
  qkvAdapter = lora->adapt(in, qkv, {width}, {3, heads, head}, /*isTransposed=*/true);
  outAdapter = lora->adapt(output, out, {heads, head}, {width}, /*isTransposed=*/true);
}

Tensor GPT2Attention::operator()(Located x, const std::optional<Tensor> &documents) const {
  // Queries, keys and values stay next to each other in the result of the product.
  Tensor parts = Lora::add(einsum("bsd,dnhk->bsnhk", x, qkv), qkvAdapter, x) + qkvBias;
  AttentionOptions options;
  options.scale = scale;
  options.documents = documents;
  Tensor mixed = dsl::attention("b t n h d", parts, options);
  return Lora::add(einsum("bshk,hkd->bsd", mixed, out), outAdapter, mixed) + outBias;
}

GPT2Mlp::GPT2Mlp(const Scope &scope, const GPT2Config &sizes, Lora *lora)
    : activation(sizes.activation) {
  const int64_t width = sizes.width, hidden = sizes.hiddenWidth();
  const Scope in = scope.scope("c_fc"), output = scope.scope("c_proj");
  up = in.parameter("weight", {width, hidden}, normal(0.02)).split("_,tensor");
  upBias = in.parameter("bias", {hidden}, zeros());
  down = output.parameter("weight", {hidden, width}, residualInit(sizes));
  downBias = output.parameter("bias", {width}, zeros());
  if (!lora)
    return;
  upAdapter = lora->adapt(in, up, {width}, {hidden}, /*isTransposed=*/true);
  downAdapter = lora->adapt(output, down, {hidden}, {width}, /*isTransposed=*/true);
}

Tensor GPT2Mlp::operator()(Located x) const {
  Tensor hidden =
      activate(activation, Lora::add(einsum("bsd,df->bsf", x, up), upAdapter, x) + upBias);
  return Lora::add(einsum("bsf,fd->bsd", hidden, down), downAdapter, hidden) + downBias;
}

GPT2Block::GPT2Block(const Scope &scope, const GPT2Config &sizes, int64_t layer, Lora *lora)
    : norm1(scope.scope("ln_1"), sizes.width, sizes.eps),
      norm2(scope.scope("ln_2"), sizes.width, sizes.eps),
      attention(scope.scope("attn"), sizes, layer, lora), mlp(scope.scope("mlp"), sizes, lora),
      drop(sizes.drop) {}

Tensor GPT2Block::operator()(Tensor x, const std::optional<Tensor> &documents) const {
  x = dropout(attention(norm1(x), documents), drop) + x;
  return dropout(mlp(norm2(x)), drop) + x;
}

// The head's weight is the embedding's, so both are one unit, which is gathered for each.
GPT2::GPT2(Model &model, const GPT2Config &sizes)
    : GPT2(model, Lora(model, sizes.lora, "c_attn"), model.unit("wte", "transformer"), sizes) {}

GPT2::GPT2(Model &model, Lora lora, const Scope &unit, const GPT2Config &sizes)
    : sizes(sizes), tokenTable(lora.base(unit)
                                   .scope("wte")
                                   .parameter("weight", {sizes.vocab, sizes.width}, normal(0.02))
                                   .split("tensor,_")),
      positionTable(lora.base(unit).scope("wpe").parameter("weight", {sizes.positions, sizes.width},
                                                           normal(0.02))),
      head(tokenTable), norm(lora.base(unit).scope("ln_f"), sizes.width, sizes.eps) {
  for (int64_t layer = 0; layer < sizes.layers; ++layer) {
    const std::string name = "h." + std::to_string(layer);
    blocks.emplace_back(lora.base(model.unit(name, "transformer." + name)), sizes, layer, &lora);
  }
  if (!sizes.tied)
    head = lora.base(model.unit("head", "lm_head"))
               .parameter("weight", {sizes.vocab, sizes.width}, normal(0.02))
               .split("tensor,_");
  lora.finish();
}

Tensor GPT2::operator()(Located tokens) const {
  const int64_t context = tokens.tensor.size(1);
  Tensor x = dsl::embedding(tokenTable, tokens);
  if (const std::optional<Tensor> positions = sizes.packing.positions(tokens))
    x = x + dsl::embedding(positionTable, *positions);
  else
    x = context == sizes.positions ? x + positionTable : x + slice(positionTable, 0, 0, context);
  x = dropout(sequenceParallel(x), sizes.drop);
  const std::optional<Tensor> documents = sizes.packing.ids(tokens);
  for (const GPT2Block &block : blocks)
    x = block(x, documents);
  return einsum("bsd,vd->bsv", norm(x), head);
}

} // namespace fsdp::models
