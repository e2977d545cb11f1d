//===- gpt2.cpp - GPT-2, parameters named as on Hugging Face --------------===//

#include "dsl/Operations.h"
#include "tools/fsdpc/Driver.h"
#include <cmath>
#include <string>

using namespace fsdp::dsl;

/// The scale and the bias of a layer norm.
struct Norm {
  Parameter weight, bias;

  Norm(const Scope &scope, int64_t width)
      : weight(scope.parameter("weight", {width}, ones())),
        bias(scope.parameter("bias", {width}, zeros())) {}

  Tensor operator()(Located x) const { return layerNorm(x, weight, bias); }
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
    // Split by heads and by hidden units over the axis `tensor`, where the mesh has it; the rest follows.
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

/// What `GPT2LMHeadModel.from_pretrained` reads beside the weights.
static std::string huggingFaceConfig(int64_t layers, int64_t width, int64_t heads, int64_t context,
                                     int64_t vocab, double drop) {
  auto field = [](const std::string &name, const std::string &value) {
    return "  \"" + name + "\": " + value + ",\n";
  };
  const std::string share = std::to_string(drop);
  // The id of <|endoftext|>, with which GPT-2's tokenizer begins and ends a text. A smaller vocabulary is another one.
  const std::string end = vocab > 50256 ? "50256" : "null";
  return "{\n" + field("architectures", "[\"GPT2LMHeadModel\"]") + field("model_type", "\"gpt2\"") +
         field("activation_function", "\"gelu_new\"") + field("layer_norm_epsilon", "1e-05") +
         field("n_layer", std::to_string(layers)) + field("n_embd", std::to_string(width)) +
         field("n_head", std::to_string(heads)) + field("n_positions", std::to_string(context)) +
         field("vocab_size", std::to_string(vocab)) + field("bos_token_id", end) +
         field("eos_token_id", end) + field("attn_pdrop", "0.0") +
         field("embd_pdrop", share) + field("resid_pdrop", share) +
         field("tie_word_embeddings", "true") + "  \"torch_dtype\": \"float32\"\n}\n";
}

int main(int argc, char **argv) {
  fsdpc::Driver driver("gpt2", "GPT-2");
  int64_t layers = 12, width = 768, heads = 12, context = 1024, vocab = 50257, batch = 8;
  double drop = 0;
  driver.option("--layers", layers, "blocks");
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
    model.checkpointFile("config.json",
                         huggingFaceConfig(layers, width, heads, context, vocab, drop));
  });
}
