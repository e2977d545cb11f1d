//===- gpt2.cpp - GPT-2, parameters named as on Hugging Face --------------===//

#include "dsl/Operations.h"
#include "tools/fsdpc/Driver.h"
#include <cmath>
#include <string>

using namespace fsdp::dsl;

static constexpr double kNormEps = 1e-5;

/// The scale and the bias of a layer norm.
struct Norm {
  Parameter weight, bias;

  Norm(const Scope &scope, int64_t width)
      : weight(scope.parameter("weight", {width}, ones())),
        bias(scope.parameter("bias", {width}, zeros())) {}

  Tensor operator()(Located x) const { return layerNorm(x, weight, bias, kNormEps); }
};

/// Attention and a feed-forward part, each added to what it reads. Weights are stored (in, out);
/// their factors (queries, keys and values; heads) stand apart here and joined in weight files.
struct Block {
  Norm ln1, ln2;
  double drop;
  Parameter qkv, qkvBias, attnOut, attnOutBias, up, upBias, down, downBias;

  Block(const Scope &scope, int64_t width, int64_t heads, Init residual, double drop)
      : ln1(scope.scope("ln_1"), width), ln2(scope.scope("ln_2"), width), drop(drop) {
    Scope attn = scope.scope("attn"), mlp = scope.scope("mlp");
    int64_t head = width / heads, hidden = 4 * width;
    Scope in = attn.scope("c_attn"), out = attn.scope("c_proj");
    // Split by heads and by hidden units over the axis `tensor`, where the mesh has it; the rest
    // follows.
    qkv = in.parameter("weight", {width, 3, heads, head}, normal(0.02), {width, 3 * width})
              .split("_,_,tensor,_");
    qkvBias = in.parameter("bias", {3, heads, head}, zeros(), {3 * width});
    attnOut = out.parameter("weight", {heads, head, width}, residual, {width, width});
    attnOutBias = out.parameter("bias", {width}, zeros());
    up = mlp.scope("c_fc").parameter("weight", {width, hidden}, normal(0.02)).split("_,tensor");
    upBias = mlp.scope("c_fc").parameter("bias", {hidden}, zeros());
    down = mlp.scope("c_proj").parameter("weight", {hidden, width}, residual);
    downBias = mlp.scope("c_proj").parameter("bias", {width}, zeros());
  }

  Tensor operator()(Tensor x) const {
    // Queries, keys and values stay where the product leaves them, one beside the other.
    Tensor parts = einsum("bsd,dnhk->bsnhk", ln1(x), qkv) + qkvBias;
    Tensor mixed = attention("b t n h d", parts);
    x = dropout(einsum("bshk,hkd->bsd", mixed, attnOut) + attnOutBias, drop) + x;
    Tensor hidden = gelu(einsum("bsd,df->bsf", ln2(x), up) + upBias);
    return dropout(einsum("bsf,fd->bsd", hidden, down) + downBias, drop) + x;
  }
};

/// What `GPT2LMHeadModel.from_pretrained` reads beside the weights, and what weights are compared
/// with. What a file leaves out is as in `GPT2Config()`.
static ModelConfig huggingFaceConfig(int64_t layers, int64_t width, int64_t heads, int64_t context,
                                     int64_t vocab, double drop) {
  ModelConfig config("config.json");
  config.note("architectures", std::vector<std::string>{"GPT2LMHeadModel"});
  config.add("model_type", "gpt2").implied("gpt2");
  config.add("activation_function", "gelu_new")
      .implied("gelu_new")
      .same("gelu_pytorch_tanh")
      .same("gelu_fast");
  config.add("layer_norm_epsilon", kNormEps).implied(1e-5);
  config.add("n_layer", layers).option("--layers").implied(12).alias("num_hidden_layers");
  config.add("n_embd", width).option("--width").implied(768).alias("hidden_size");
  config.add("n_head", heads).option("--heads").implied(12).alias("num_attention_heads");
  config.add("n_positions", context)
      .option("--context")
      .implied(1024)
      .alias("max_position_embeddings");
  config.add("vocab_size", vocab).option("--vocab").implied(50257);
  // <|endoftext|>, with which GPT-2's tokenizer begins and ends a text. A smaller vocabulary is
  // another one.
  const ConfigValue end = vocab > 50256 ? ConfigValue(50256) : ConfigValue(nullptr);
  config.note("bos_token_id", end);
  config.note("eos_token_id", end);
  config.require("n_inner", 4 * width);
  config.require("scale_attn_weights", true);
  config.require("scale_attn_by_inverse_layer_idx", false);
  config.require("add_cross_attention", false);
  config.add("tie_word_embeddings", true).implied(true);
  config.note("attn_pdrop", 0.0);
  config.note("embd_pdrop", drop);
  config.note("resid_pdrop", drop);
  config.note("torch_dtype", "float32");
  return config;
}

int main(int argc, char **argv) {
  fsdpc::Driver driver("gpt2", "GPT-2");
  int64_t layers = 12, width = 768, heads = 12, context = 1024, vocab = 50257, batch = 8;
  double drop = 0;
  driver.blocks("--layers", layers, "blocks");
  driver.option("--width", width, "width of the residual stream");
  driver.option("--heads", heads, "heads of each attention");
  driver.option("--context", context, "tokens of a sample");
  driver.option("--vocab", vocab, "different tokens");
  driver.option("--batch", batch, "samples of a step, on all ranks together");
  driver.option("--dropout", drop,
                "share of elements dropped before each sum of the residual stream",
                {/*least=*/0, /*aboveLeast=*/false, /*limit=*/1});

  return driver.run(argc, argv, [&](Model &model) {
    if (width % heads != 0)
      throw ModelError(Where::here(),
                       "got --width=" + std::to_string(width) +
                           ", expected a multiple of --heads=" + std::to_string(heads));
    Tensor tokens = model.tokens("tokens", {batch, context}, vocab);
    Tensor targets = model.targets("targets", {batch, context}, vocab);

    // The head's weight is the embedding's, so both are one unit, which is gathered for each.
    Scope tied = model.unit("wte", "transformer");
    Parameter wte =
        tied.scope("wte").parameter("weight", {vocab, width}, normal(0.02)).split("tensor,_");
    Parameter wpe = tied.scope("wpe").parameter("weight", {context, width}, normal(0.02));
    Norm norm(tied.scope("ln_f"), width);

    Init residual = normal(0.02 / std::sqrt(2.0 * layers));
    Tensor x = dropout(embedding(wte, tokens) + wpe, drop);
    for (int64_t layer = 0; layer < layers; ++layer) {
      std::string name = "h." + std::to_string(layer);
      x = Block(model.unit(name, "transformer." + name), width, heads, residual, drop)(x);
    }
    Tensor logits = einsum("bsd,vd->bsv", norm(x), wte);
    model.loss(mean(crossEntropy(logits, targets)));
    model.config(huggingFaceConfig(layers, width, heads, context, vocab, drop));
  });
}
