//===- gpt2_config.cpp - config.json of GPT-2 -----------------------------===//

#include "models/activation.h"
#include "models/gpt2.h"

using namespace fsdp::dsl;

namespace fsdp::models {

void GPT2Config::describe(ModelConfig &config, std::optional<int64_t> context) {
  const bool reads = config.isReading();
  config.note("architectures", std::vector<std::string>{"GPT2LMHeadModel"});
  std::string type = "gpt2";
  config.take(ConfigEntry("model_type"), type, {"gpt2"}).implied("gpt2");
  ConfigEntry &act = config.take(ConfigEntry("activation_function").implied("gelu_new"), activation,
                                 activationNames());
  for (const std::string &name : sameActivations(activation))
    act.same(name);
  config.take(ConfigEntry("layer_norm_epsilon").implied(1e-5), eps);
  config.take(ConfigEntry("n_layer").option("--layers").implied(12).alias("num_hidden_layers"),
              layers, 1, kMaxBlocks);
  config.take(ConfigEntry("n_embd").option("--width").implied(768).alias("hidden_size"), width);
  config.take(ConfigEntry("n_head").option("--heads").implied(12).alias("num_attention_heads"),
              heads);
  if (reads && width % heads != 0)
    config.refuse(config.valueAt("n_embd").empty() ? "hidden_size" : "n_embd",
                  "a multiple of 'n_head', " + std::to_string(heads));
  ConfigEntry rows("n_positions");
  rows.implied(1024).alias("max_position_embeddings");
  if (!reads && context == positions)
    rows.option("--context");
  config.take(rows, positions);
  if (reads && context && *context > positions)
    config.refuse(config.valueAt("n_positions").empty() ? "max_position_embeddings" : "n_positions",
                  "at least the --context=" + std::to_string(*context));
  config.take(ConfigEntry("vocab_size").option("--vocab").implied(50257), vocab);
  // <|endoftext|>, with which GPT-2's tokenizer begins and ends a text. A smaller vocabulary is
  // another one.
  const ConfigValue ends = vocab > 50256 ? ConfigValue(50256) : ConfigValue(nullptr);
  config.carry("bos_token_id", begin, ends);
  config.carry("eos_token_id", end, ends);
  if (padding || reads)
    config.carry("pad_token_id", padding, nullptr);
  if (reads || hiddenWidth() != 4 * width)
    config.take(ConfigEntry("n_inner").implied(nullptr), hidden).implied(4 * width);
  else
    config.require("n_inner", 4 * width);
  if (reads && hidden == 0)
    config.refuse("n_inner", "a whole number from 1 to " + std::to_string(kMaxSize) + ", or null");
  config.take(ConfigEntry("scale_attn_weights").implied(true), scalesByWidth)
      .unwritten(scalesByWidth);
  config.take(ConfigEntry("scale_attn_by_inverse_layer_idx").implied(false), scalesByLayer)
      .unwritten(!scalesByLayer);
  config.demand(ConfigEntry("add_cross_attention", false));
  config.demand(ConfigEntry("is_causal", true));
  config.take(ConfigEntry("tie_word_embeddings").implied(true), tied);
  if (reads) {
    config.demand(ConfigEntry("quantization_config", nullptr));
    for (const char *name : {"attn_pdrop", "embd_pdrop", "resid_pdrop"})
      config.leaveToTraining(name);
  }
  config.note("attn_pdrop", 0.0);
  config.note("embd_pdrop", drop);
  config.note("resid_pdrop", drop);
  config.note("torch_dtype", "float32");
}

} // namespace fsdp::models
