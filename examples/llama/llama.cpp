//===- llama.cpp - Llama, parameters named as on Hugging Face -------------===//

#include "dsl/Operations.h"
#include "tools/fsdpc/Driver.h"
#include <cmath>

using namespace fsdp::dsl;

/// Sizes and constants of the model.
struct Config {
  int64_t layers = 32, width = 4096, heads = 32, groups = 0, head = 0, ffn = 11008;
  double theta = 10000, eps = 1e-6;
  bool tied = false;
};

/// Grouped-query attention and a gated feed-forward part, each added to what it reads. Weights are
/// stored (out, in), with the heads as a factor of their own here and joined in weight files.
struct Block {
  Config sizes;
  Parameter norm1, norm2, query, key, value, attnOut, gate, up, down;

  Block(const Scope &scope, const Config &sizes) : sizes(sizes) {
    auto [layers, width, heads, groups, head, ffn, theta, eps, tied] = sizes;
    Init inner = normal(0.02), residual = normal(0.02 / std::sqrt(2.0 * layers));
    Scope attn = scope.scope("self_attn"), mlp = scope.scope("mlp");
    norm1 = scope.scope("input_layernorm").parameter("weight", {width}, ones());
    norm2 = scope.scope("post_attention_layernorm").parameter("weight", {width}, ones());
    // Split by heads and by hidden units over the axis `tensor`, where the mesh has it; the rest
    // follows.
    query = project(attn.scope("q_proj"), heads, head, width).split("tensor,_,_");
    key = project(attn.scope("k_proj"), groups, head, width);
    value = project(attn.scope("v_proj"), groups, head, width);
    attnOut = attn.scope("o_proj").parameter("weight", {width, heads, head}, residual,
                                             {width, heads * head});
    gate = mlp.scope("gate_proj").parameter("weight", {ffn, width}, inner).split("tensor,_");
    up = mlp.scope("up_proj").parameter("weight", {ffn, width}, inner);
    down = mlp.scope("down_proj").parameter("weight", {width, ffn}, residual);
  }

  static Parameter project(const Scope &scope, int64_t heads, int64_t head, int64_t width) {
    return scope.parameter("weight", {heads, head, width}, normal(0.02), {heads * head, width});
  }
  static Tensor byHead(Located x, Located weight) { return einsum("bsd,hkd->bshk", x, weight); }

  Tensor operator()(Tensor x) const {
    Tensor a = rmsNorm(x, norm1, sizes.eps);
    auto turned = [&](Tensor heads) { return rope("b t h d", heads, sizes.theta); };
    Tensor mixed =
        attention("b t h d", turned(byHead(a, query)), turned(byHead(a, key)), byHead(a, value));
    x = einsum("bshk,dhk->bsd", mixed, attnOut) + x;
    Tensor m = rmsNorm(x, norm2, sizes.eps);
    Tensor hidden = silu(einsum("bsd,fd->bsf", m, gate)) * einsum("bsd,fd->bsf", m, up);
    return einsum("bsf,df->bsd", hidden, down) + x;
  }
};

/// What `LlamaForCausalLM.from_pretrained` reads beside the weights, and what weights are compared
/// with. What a file leaves out is as in `LlamaConfig()`.
static ModelConfig huggingFaceConfig(const Config &sizes, int64_t context, int64_t vocab) {
  ModelConfig config("config.json");
  config.note("architectures", std::vector<std::string>{"LlamaForCausalLM"});
  config.add("model_type", "llama").implied("llama");
  config.add("hidden_act", "silu").implied("silu").same("swish");
  config.add("rms_norm_eps", sizes.eps).option("--norm-eps").implied(1e-6);
  config.add("num_hidden_layers", sizes.layers).option("--layers").implied(32);
  config.add("hidden_size", sizes.width).option("--width").implied(4096);
  config.add("num_attention_heads", sizes.heads).option("--heads").implied(32);
  config.add("num_key_value_heads", sizes.groups).option("--kv-heads").implied(sizes.heads);
  config.add("head_dim", sizes.head).option("--head-dim").implied(sizes.width / sizes.heads);
  config.add("intermediate_size", sizes.ffn).option("--ffn").implied(11008);
  config.note("max_position_embeddings", context);
  config.add("vocab_size", vocab).option("--vocab").implied(32000);
  // <s> and </s> of Llama's tokenizer. A smaller vocabulary is another one.
  const bool ownTokens = vocab >= 32000;
  config.note("bos_token_id", ownTokens ? ConfigValue(1) : ConfigValue(nullptr));
  config.note("eos_token_id", ownTokens ? ConfigValue(2) : ConfigValue(nullptr));
  // Newer versions of transformers take all of rope_parameters from rope_scaling where a file has
  // that instead.
  config.add("rope_theta", sizes.theta)
      .option("--rope-theta")
      .implied(10000.0)
      .alias("rope_parameters.rope_theta")
      .alias("rope_scaling.rope_theta");
  config.require("rope_parameters.rope_type", "default")
      .alias("rope_scaling.rope_type")
      .alias("rope_scaling.type");
  config.require("partial_rotary_factor", 1.0)
      .alias("rope_parameters.partial_rotary_factor")
      .alias("rope_scaling.partial_rotary_factor");
  config.add("attention_bias", false).implied(false);
  config.add("mlp_bias", false).implied(false);
  config.add("tie_word_embeddings", sizes.tied).option("--tie").implied(false);
  config.note("torch_dtype", "float32");
  return config;
}

int main(int argc, char **argv) {
  fsdpc::Driver driver("llama", "Llama");
  Config sizes;
  int64_t context = 2048, vocab = 32000, batch = 8;
  driver.blocks("--layers", sizes.layers, "blocks");
  driver.option("--width", sizes.width, "width of the residual stream");
  driver.option("--heads", sizes.heads, "heads of the queries");
  driver.option("--kv-heads", sizes.groups,
                "heads of keys and values; without it as many as of queries");
  driver.option("--head-dim", sizes.head, "width of a head; without it --width divided by --heads");
  driver.option("--ffn", sizes.ffn, "width of the feed-forward parts");
  driver.option("--rope-theta", sizes.theta, "base of the angles of rope",
                {/*least=*/0, /*aboveLeast=*/true});
  driver.option("--norm-eps", sizes.eps, "added to the mean square of each norm",
                {/*least=*/0, /*aboveLeast=*/true});
  driver.flag("--tie", sizes.tied, "the weight of the head is that of the embedding");
  driver.option("--context", context, "tokens of a sample");
  driver.option("--vocab", vocab, "different tokens");
  driver.option("--batch", batch, "samples of a step, on all ranks together");

  return driver.run(argc, argv, [&](Model &model) {
    auto demand = [](bool holds, const std::string &message) {
      if (!holds)
        throw ModelError(Where::here(), message);
    };
    sizes.groups = sizes.groups == 0 ? sizes.heads : sizes.groups;
    demand(sizes.head != 0 || sizes.width % (2 * sizes.heads) == 0,
           "got --width=" + std::to_string(sizes.width) +
               ", expected a multiple of twice --heads=" + std::to_string(sizes.heads) +
               ", for rope turns pairs");
    demand(sizes.head % 2 == 0, "got --head-dim=" + std::to_string(sizes.head) +
                                    ", expected an even number, for rope turns pairs");
    sizes.head = sizes.head == 0 ? sizes.width / sizes.heads : sizes.head;
    demand(sizes.heads % sizes.groups == 0,
           "got --heads=" + std::to_string(sizes.heads) +
               ", expected a multiple of --kv-heads=" + std::to_string(sizes.groups));
    Tensor tokens = model.tokens("tokens", {batch, context}, vocab);
    Tensor targets = model.targets("targets", {batch, context}, vocab);

    Init init = normal(0.02);
    Parameter table = model.unit("embed_tokens", "model.embed_tokens")
                          .parameter("weight", {vocab, sizes.width}, init)
                          .split("tensor,_");
    Tensor x = embedding(table, tokens);
    for (int64_t layer = 0; layer < sizes.layers; ++layer) {
      std::string name = "layers." + std::to_string(layer);
      x = Block(model.unit(name, "model." + name), sizes)(x);
    }
    Parameter norm = model.unit("head", "model.norm").parameter("weight", {sizes.width}, ones());
    Parameter head = table;
    if (!sizes.tied)
      head = model.unit("head", "lm_head")
                 .parameter("weight", {vocab, sizes.width}, init)
                 .split("tensor,_");
    Tensor logits = einsum("bsd,vd->bsv", rmsNorm(x, norm, sizes.eps), head);
    model.loss(mean(crossEntropy(logits, targets)));
    model.config(huggingFaceConfig(sizes, context, vocab));
  });
}
