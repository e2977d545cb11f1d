//===- llama.cpp - Llama, parameters named as on Hugging Face -------------===//

#include "dsl/Operations.h"
#include "tools/fsdpc/Driver.h"
#include <cmath>

using namespace fsdp::dsl;

/// Sizes of a block.
struct Config {
  int64_t layers = 32, width = 4096, heads = 32, groups = 0, ffn = 11008;
};

/// Grouped-query attention and a gated feed-forward part, each added to what it reads. Weights are
/// stored (out, in), with the heads as a factor of their own here and joined in weight files.
struct Block {
  Parameter norm1, norm2, query, key, value, attnOut, gate, up, down;

  Block(const Scope &scope, const Config &sizes) {
    auto [layers, width, heads, groups, ffn] = sizes;
    int64_t head = width / heads;
    Init inner = normal(0.02), residual = normal(0.02 / std::sqrt(2.0 * layers));
    Scope attn = scope.scope("self_attn"), mlp = scope.scope("mlp");
    norm1 = scope.scope("input_layernorm").parameter("weight", {width}, ones());
    norm2 = scope.scope("post_attention_layernorm").parameter("weight", {width}, ones());
    // Split by heads and by hidden units over the axis `tensor`, where the mesh has it; the rest follows.
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
  static Tensor byHead(Located x, Located weight) {
    return einsum("bsd,hkd->bshk", x, weight);
  }

  Tensor operator()(Tensor x) const {
    Tensor a = rmsNorm(x, norm1);
    auto turned = [](Tensor heads) { return rope("b t h d", heads); };
    Tensor mixed = attention("b t h d", turned(byHead(a, query)), turned(byHead(a, key)),
                             byHead(a, value));
    x = einsum("bshk,dhk->bsd", mixed, attnOut) + x;
    Tensor m = rmsNorm(x, norm2);
    Tensor hidden = silu(einsum("bsd,fd->bsf", m, gate)) * einsum("bsd,fd->bsf", m, up);
    return einsum("bsf,df->bsd", hidden, down) + x;
  }
};

/// What `LlamaForCausalLM.from_pretrained` reads beside the weights.
static std::string huggingFaceConfig(const Config &sizes, int64_t context, int64_t vocab) {
  auto field = [](const std::string &name, const std::string &value) {
    return "  \"" + name + "\": " + value + ",\n";
  };
  // The ids of <s> and </s> in Llama's tokenizer. A smaller vocabulary is another one.
  const bool ownTokens = vocab >= 32000;
  return "{\n" + field("architectures", "[\"LlamaForCausalLM\"]") + field("model_type", "\"llama\"") +
         field("hidden_act", "\"silu\"") + field("rms_norm_eps", "1e-06") +
         field("num_hidden_layers", std::to_string(sizes.layers)) +
         field("hidden_size", std::to_string(sizes.width)) +
         field("num_attention_heads", std::to_string(sizes.heads)) +
         field("num_key_value_heads", std::to_string(sizes.groups)) +
         field("head_dim", std::to_string(sizes.width / sizes.heads)) +
         field("intermediate_size", std::to_string(sizes.ffn)) +
         field("max_position_embeddings", std::to_string(context)) +
         field("vocab_size", std::to_string(vocab)) + field("bos_token_id", ownTokens ? "1" : "null") +
         field("eos_token_id", ownTokens ? "2" : "null") + field("rope_theta", "10000.0") +
         field("attention_bias", "false") + field("mlp_bias", "false") +
         field("tie_word_embeddings", "false") + "  \"torch_dtype\": \"float32\"\n}\n";
}

int main(int argc, char **argv) {
  fsdpc::Driver driver("llama", "Llama");
  Config sizes;
  int64_t context = 2048, vocab = 32000, batch = 8;
  driver.option("--layers", sizes.layers, "blocks");
  driver.option("--width", sizes.width, "width of the residual stream");
  driver.option("--heads", sizes.heads, "heads of the queries");
  driver.option("--kv-heads", sizes.groups,
                "heads of keys and values; without it as many as of queries");
  driver.option("--ffn", sizes.ffn, "width of the feed-forward parts");
  driver.option("--context", context, "tokens of a sample");
  driver.option("--vocab", vocab, "different tokens");
  driver.option("--batch", batch, "samples of a step, on all ranks together");

  return driver.run(argc, argv, [&](Model &model) {
    auto demand = [](bool holds, const std::string &message) {
      if (!holds)
        throw ModelError(Where::here(), message);
    };
    sizes.groups = sizes.groups == 0 ? sizes.heads : sizes.groups;
    demand(sizes.width % (2 * sizes.heads) == 0,
           "got --width=" + std::to_string(sizes.width) +
               ", expected a multiple of twice --heads=" + std::to_string(sizes.heads) +
               ", for rope turns pairs");
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
    Parameter head =
        model.unit("head", "lm_head").parameter("weight", {vocab, sizes.width}, init).split("tensor,_");
    Tensor logits = einsum("bsd,vd->bsv", rmsNorm(x, norm), head);
    model.loss(mean(crossEntropy(logits, targets)));
    model.checkpointFile("config.json", huggingFaceConfig(sizes, context, vocab));
  });
}
