//===- llama.cpp - the blocks of Llama ------------------------------------===//

#include "models/llama.h"

#include "models/activation.h"
#include "models/sizes.h"
#include <cmath>

using namespace fsdp::dsl;

namespace fsdp::models {

void LlamaConfig::complete() {
  auto demand = [](bool holds, const std::string &message) {
    if (!holds)
      throw ModelError(Where::here(), message);
  };
  groups = groups == 0 ? heads : groups;
  demand(head != 0 || width % (2 * heads) == 0,
         "got --width=" + std::to_string(width) + ", expected a multiple of twice --heads=" +
             std::to_string(heads) + ", for rope turns pairs");
  demand(head % 2 == 0, "got --head-dim=" + std::to_string(head) +
                            ", expected an even number, for rope turns pairs");
  head = head == 0 ? width / heads : head;
  packing.check(vocab);
  demand(heads % groups == 0, "got --heads=" + std::to_string(heads) +
                                  ", expected a multiple of --kv-heads=" + std::to_string(groups));
  checkTensor({{"--vocab", vocab}, {"--width", width}});
  checkTensor({{"--ffn", ffn}, {"--width", width}});
  checkTensor({{"--heads", heads}, {"--head-dim", head}, {"--width", width}});
}

std::optional<int64_t> LlamaConfig::windowOf(int64_t layer) const {
  const bool applies =
      family == "mistral" ||
      (usesWindow && (layerTypes.empty() ? layer >= windowLayers.value_or(0)
                                         : layerTypes[layer] == "sliding_attention"));
  return applies ? window : std::nullopt;
}

RopeScaling LlamaConfig::ropeScaling() const {
  if (scaling.type == "linear")
    return RopeScaling::linear(scaling.factor);
  if (scaling.type == "llama3")
    return RopeScaling::llama3(scaling.factor, scaling.low, scaling.high,
                               scaling.context.value_or(positions));
  if (scaling.type != "yarn")
    return {};
  RopeScaling::Yarn yarn;
  yarn.factor = scaling.factor;
  yarn.context = scaling.context.value_or(positions);
  yarn.betaFast = scaling.betaFast;
  yarn.betaSlow = scaling.betaSlow;
  yarn.truncate = scaling.truncate;
  yarn.magnitude = scaling.attentionFactor;
  if (!yarn.magnitude && scaling.magnitude && scaling.magnitudeOfAll) {
    auto grown = [&](double by) {
      return scaling.factor <= 1 ? 1 : 0.1 * by * std::log(scaling.factor) + 1;
    };
    yarn.magnitude = grown(*scaling.magnitude) / grown(*scaling.magnitudeOfAll);
  }
  return RopeScaling::yarn(yarn, theta, head);
}

HeadProjection::HeadProjection(const Scope &scope, int64_t heads, int64_t head, int64_t width,
                               bool hasBias, const std::string &split, Lora *lora)
    : weight(scope.parameter("weight", {heads, head, width}, normal(0.02), {heads * head, width})) {
  if (!split.empty())
    weight = weight.split(split);
  if (hasBias)
    bias = scope.parameter("bias", {heads, head}, zeros(), {heads * head});
  if (lora)
    adapter = lora->adapt(scope, weight, {width}, {heads, head});
}

Tensor HeadProjection::operator()(Located x) const {
  Tensor y = Lora::add(einsum("bsd,hkd->bshk", x, weight), adapter, x);
  return bias ? y + *bias : y;
}

// Split by heads, and below by hidden units, over the axis `tensor`, where the mesh has it; the
// rest follows.
LlamaAttention::LlamaAttention(const Scope &scope, const LlamaConfig &sizes, Lora *lora,
                               int64_t layer)
    : sizes(sizes), window(sizes.windowOf(layer)),
      query(scope.scope("q_proj"), sizes.heads, sizes.head, sizes.width, sizes.attentionBias,
            "tensor,_,_", lora),
      key(scope.scope("k_proj"), sizes.groups, sizes.head, sizes.width, sizes.attentionBias, "",
          lora),
      value(scope.scope("v_proj"), sizes.groups, sizes.head, sizes.width, sizes.attentionBias, "",
            lora) {
  const Scope output = scope.scope("o_proj");
  out = output.parameter("weight", {sizes.width, sizes.heads, sizes.head},
                         normal(0.02 / std::sqrt(2.0 * static_cast<double>(sizes.layers))),
                         {sizes.width, sizes.heads * sizes.head});
  if (lora)
    outAdapter = lora->adapt(output, out, {sizes.heads, sizes.head}, {sizes.width});
  if (sizes.hasOutputBias())
    outBias = output.parameter("bias", {sizes.width}, zeros());
  if (sizes.hasHeadNorms()) {
    queryNorm = scope.scope("q_norm").parameter("weight", {sizes.head}, ones());
    keyNorm = scope.scope("k_norm").parameter("weight", {sizes.head}, ones());
  }
}

Tensor LlamaAttention::operator()(Located x, const std::optional<Tensor> &documents) const {
  const RopeScaling scaling = sizes.ropeScaling();
  auto turned = [&](Tensor heads, const std::optional<Parameter> &norm) {
    return rope("b t h d", norm ? rmsNorm(heads, *norm, sizes.eps) : heads, sizes.theta, scaling);
  };
  AttentionOptions options;
  options.documents = documents;
  if (window && *window < x.tensor.size(1))
    options.window = window;
  Tensor mixed = dsl::attention("b t h d", turned(query(x), queryNorm), turned(key(x), keyNorm),
                                value(x), options);
  Tensor y = Lora::add(einsum("bshk,dhk->bsd", mixed, out), outAdapter, mixed);
  return outBias ? y + *outBias : y;
}

LlamaMlp::LlamaMlp(const Scope &scope, const LlamaConfig &sizes, Lora *lora)
    : activation(sizes.activation) {
  const double residual = 0.02 / std::sqrt(2.0 * static_cast<double>(sizes.layers));
  const Scope in = scope.scope("gate_proj"), other = scope.scope("up_proj"),
              output = scope.scope("down_proj");
  gate = in.parameter("weight", {sizes.ffn, sizes.width}, normal(0.02)).split("tensor,_");
  up = other.parameter("weight", {sizes.ffn, sizes.width}, normal(0.02));
  down = output.parameter("weight", {sizes.width, sizes.ffn}, normal(residual));
  if (lora) {
    gateAdapter = lora->adapt(in, gate, {sizes.width}, {sizes.ffn});
    upAdapter = lora->adapt(other, up, {sizes.width}, {sizes.ffn});
    downAdapter = lora->adapt(output, down, {sizes.ffn}, {sizes.width});
  }
  if (!sizes.mlpBias)
    return;
  gateBias = in.parameter("bias", {sizes.ffn}, zeros());
  upBias = other.parameter("bias", {sizes.ffn}, zeros());
  downBias = output.parameter("bias", {sizes.width}, zeros());
}

Tensor LlamaMlp::operator()(Located x) const {
  auto biased = [](Tensor y, const std::optional<Parameter> &bias) { return bias ? y + *bias : y; };
  Tensor open = activate(
      activation, biased(Lora::add(einsum("bsd,fd->bsf", x, gate), gateAdapter, x), gateBias));
  Tensor hidden = open * biased(Lora::add(einsum("bsd,fd->bsf", x, up), upAdapter, x), upBias);
  return biased(Lora::add(einsum("bsf,df->bsd", hidden, down), downAdapter, hidden), downBias);
}

LlamaBlock::LlamaBlock(const Scope &scope, const LlamaConfig &sizes, Lora *lora, int64_t layer)
    : eps(sizes.eps),
      norm1(scope.scope("input_layernorm").parameter("weight", {sizes.width}, ones())),
      norm2(scope.scope("post_attention_layernorm").parameter("weight", {sizes.width}, ones())),
      attention(scope.scope("self_attn"), sizes, lora, layer),
      mlp(scope.scope("mlp"), sizes, lora) {}

Tensor LlamaBlock::operator()(Tensor x, const std::optional<Tensor> &documents) const {
  x = attention(rmsNorm(x, norm1, eps), documents) + x;
  return mlp(rmsNorm(x, norm2, eps)) + x;
}

Llama::Llama(Model &model, const LlamaConfig &sizes) : sizes(sizes) {
  const Init init = normal(0.02);
  Lora lora(model, sizes.lora, "q_proj,v_proj");
  auto unit = [&](const std::string &name, const std::string &prefix) {
    return lora.base(model.unit(name, prefix));
  };
  embedding = unit("embed_tokens", "model.embed_tokens")
                  .parameter("weight", {sizes.vocab, sizes.width}, init)
                  .split("tensor,_");
  for (int64_t layer = 0; layer < sizes.layers; ++layer) {
    const std::string name = "layers." + std::to_string(layer);
    blocks.emplace_back(unit(name, "model." + name), sizes, &lora, layer);
  }
  norm = unit("head", "model.norm").parameter("weight", {sizes.width}, ones());
  head = sizes.tied ? embedding
                    : unit("head", "lm_head")
                          .parameter("weight", {sizes.vocab, sizes.width}, init)
                          .split("tensor,_");
  lora.finish();
}

Tensor Llama::operator()(Located tokens) const {
  Tensor x = sequenceParallel(dsl::embedding(embedding, tokens));
  // Rotary positions need not begin anew: attention within a document depends on differences only.
  const std::optional<Tensor> documents = sizes.packing.ids(tokens);
  for (const LlamaBlock &block : blocks)
    x = block(x, documents);
  return einsum("bsd,vd->bsv", rmsNorm(x, norm, sizes.eps), head);
}

} // namespace fsdp::models
