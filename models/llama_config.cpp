//===- llama_config.cpp - config.json of Llama and models of its kind -----===//

#include "models/activation.h"
#include "models/llama.h"

#include <algorithm>

using namespace fsdp::dsl;

namespace fsdp::models {

namespace {

/// Differences between the classes of transformers.
struct Family {
  std::string name, architecture;
  int64_t ffn, vocab, positions;         ///< the values of a file without them
  std::optional<int64_t> groups, window; ///< likewise; without, `heads` and none
  std::optional<int64_t> head;
};

const Family &familyOf(const std::string &name) {
  static const std::vector<Family> all = {
      {"llama", "LlamaForCausalLM", 11008, 32000, 2048, {}, {}, {}},
      {"mistral", "MistralForCausalLM", 14336, 32000, 131072, 8, 4096, {}},
      {"qwen2", "Qwen2ForCausalLM", 22016, 151936, 32768, 32, 4096, {}},
      {"qwen3", "Qwen3ForCausalLM", 22016, 151936, 32768, 32, 4096, 128},
  };
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Family &one) { return one.name == name; });
  return found == all.end() ? all.front() : *found;
}

ConfigEntry scalingEntry(const std::string &name) {
  return ConfigEntry("rope_scaling." + name).alias("rope_parameters." + name);
}

} // namespace

/// Older files have `rope_scaling` and `rope_theta`, newer ones `rope_parameters`; both versions of
/// transformers read the older, which is written.
static void describeRope(LlamaConfig &sizes, ModelConfig &config) {
  LlamaRopeScaling &scaling = sizes.scaling;
  const std::string older = config.valueAt("rope_scaling"),
                    newer = config.valueAt("rope_parameters");
  if (!older.empty() && !newer.empty() && older != newer)
    config.refuse("rope_scaling", "it alone, or 'rope_parameters' alone");
  for (auto [name, text] : {std::pair("rope_scaling", &older), {"rope_parameters", &newer}})
    if (!text->empty() && (text->front() != '{' || text->find('{', 1) != text->npos))
      config.refuse(name, "an object of parameters for all layers, or null");
  config.take(ConfigEntry("rope_theta")
                  .option("--rope-theta")
                  .implied(10000.0)
                  .alias("rope_parameters.rope_theta")
                  .alias("rope_scaling.rope_theta"),
              sizes.theta);
  const bool isScaled = scaling.type != "default";
  config
      .take((isScaled ? ConfigEntry("rope_scaling.rope_type").alias("rope_parameters.rope_type")
                      : ConfigEntry("rope_parameters.rope_type").alias("rope_scaling.rope_type"))
                .alias("rope_scaling.type")
                .alias("rope_parameters.type")
                .implied("default"),
            scaling.type, {"default", "linear", "llama3", "yarn"})
      .unwritten(!isScaled);
  config.demand(ConfigEntry("partial_rotary_factor", 1.0)
                    .alias("rope_parameters.partial_rotary_factor")
                    .alias("rope_scaling.partial_rotary_factor"));
  if (scaling.type == "default")
    return;
  config.take(scalingEntry("factor"), scaling.factor);
  if (scaling.type == "linear")
    return;
  ConfigEntry context =
      scalingEntry("original_max_position_embeddings").alias("original_max_position_embeddings");
  if (scaling.type == "yarn") // else every file has it
    context.implied(sizes.positions);
  int64_t positions = scaling.context.value_or(sizes.positions);
  config.take(context, positions);
  scaling.context = positions;
  if (scaling.type == "llama3") {
    config.take(scalingEntry("low_freq_factor"), scaling.low);
    config.take(scalingEntry("high_freq_factor"), scaling.high);
    if (scaling.high <= scaling.low)
      config.refuse(config.valueAt("rope_scaling.high_freq_factor").empty()
                        ? "rope_parameters.high_freq_factor"
                        : "rope_scaling.high_freq_factor",
                    "a number above that of 'low_freq_factor'");
    return;
  }
  config.take(scalingEntry("beta_fast").implied(32.0), scaling.betaFast);
  config.take(scalingEntry("beta_slow").implied(1.0), scaling.betaSlow);
  config.take(scalingEntry("truncate").implied(true), scaling.truncate);
  for (auto [name, value] : {std::pair("attention_factor", &scaling.attentionFactor),
                             {"mscale", &scaling.magnitude},
                             {"mscale_all_dim", &scaling.magnitudeOfAll}})
    config.take(scalingEntry(name).implied(nullptr), *value).unwritten(!*value);
}

/// The expected `layer_types` of a file of this model; a file may omit it.
static std::vector<std::string> typesOf(const LlamaConfig &sizes) {
  std::vector<std::string> types;
  for (int64_t layer = 0; layer < sizes.layers; ++layer)
    types.push_back(sizes.windowOf(layer) ? "sliding_attention" : "full_attention");
  return types;
}

static void describeWindow(LlamaConfig &sizes, ModelConfig &config, const Family &family) {
  if (!family.window)
    return;
  bool applies = true;
  if (family.name != "mistral") {
    config.take(ConfigEntry("use_sliding_window").implied(false), sizes.usesWindow);
    applies = sizes.usesWindow;
  }
  config.take(ConfigEntry("sliding_window").implied(*family.window), sizes.window)
      .uncompared(!applies);
  if (family.name != "mistral") {
    config.take(ConfigEntry("max_window_layers").implied(28), sizes.windowLayers)
        .uncompared(!applies);
    config
        .take(ConfigEntry("layer_types").implied(nullptr), sizes.layerTypes,
              {"full_attention", "sliding_attention"})
        .uncompared()
        .unwritten(sizes.layerTypes.empty());
    if (!sizes.layerTypes.empty() && static_cast<int64_t>(sizes.layerTypes.size()) != sizes.layers)
      config.refuse("layer_types", "one for each of " + std::to_string(sizes.layers) + " layers");
    else if (applies && sizes.window)
      config.require("layer_types", typesOf(sizes)).option("--from");
  }
  if (applies && config.isReading() && sizes.window && *sizes.window < 1)
    config.refuse("sliding_window",
                  "a whole number from 1 to " + std::to_string(kMaxSize) + ", or null");
}

int64_t LlamaConfig::describe(ModelConfig &config, int64_t context, bool mayShorten) {
  config.note("architectures", std::vector<std::string>{familyOf(family).architecture});
  config.take(ConfigEntry("model_type"), family, {"llama", "mistral", "qwen2", "qwen3"})
      .implied("llama");
  const Family &own = familyOf(family);
  ConfigEntry &act =
      config.take(ConfigEntry("hidden_act").implied("silu"), activation, activationNames());
  for (const std::string &name : sameActivations(activation))
    act.same(name);
  config.take(ConfigEntry("rms_norm_eps").option("--norm-eps").implied(1e-6), eps);
  config.take(ConfigEntry("num_hidden_layers").option("--layers").implied(32), layers, 1,
              kMaxBlocks);
  config.take(ConfigEntry("hidden_size").option("--width").implied(4096), width);
  config.take(ConfigEntry("num_attention_heads").option("--heads").implied(32), heads);
  const int64_t impliedGroups =
      config.isNullAt("num_key_value_heads") ? heads : own.groups.value_or(heads);
  config.take(ConfigEntry("num_key_value_heads").option("--kv-heads").implied(impliedGroups),
              groups);
  if (config.isReading() && groups > 0 && heads % groups != 0)
    config.refuse("num_attention_heads",
                  "a multiple of 'num_key_value_heads', " + std::to_string(groups));
  const bool hasHead = !config.valueAt("head_dim").empty() || own.head;
  if (config.isReading() && !hasHead && width % (2 * heads) != 0)
    config.refuse("hidden_size", "a multiple of twice 'num_attention_heads', " +
                                     std::to_string(heads) + ", for rope turns pairs");
  else
    config.take(
        ConfigEntry("head_dim").option("--head-dim").implied(own.head.value_or(width / heads)),
        head);
  if (config.isReading() && head % 2 != 0 &&
      config.valueAt("head_dim") == std::to_string(head)) // not of --head-dim
    config.refuse("head_dim", "an even number, for rope turns pairs");
  config.take(ConfigEntry("intermediate_size").option("--ffn").implied(own.ffn), ffn);
  if (!config.isReading() && positions == 0)
    positions = context;
  config.take(ConfigEntry("max_position_embeddings").implied(own.positions), positions)
      .uncompared();
  if (config.isReading() && mayShorten)
    context = std::min(context, positions);
  config.take(ConfigEntry("vocab_size").option("--vocab").implied(own.vocab), vocab);
  // <s> and </s> of Llama's tokenizer, also where a file lacks them. A model that no file
  // describes, with a smaller vocabulary, has another tokenizer.
  const bool ownTokens =
      (family == "llama" || family == "mistral") && (config.isReading() || vocab >= 32000);
  config.carry("bos_token_id", begin, ownTokens ? ConfigValue(1) : ConfigValue(nullptr));
  config.carry("eos_token_id", end, ownTokens ? ConfigValue(2) : ConfigValue(nullptr));
  if (padding || config.isReading())
    config.carry("pad_token_id", padding, nullptr);
  config.remark("pad_token_id", "is a row of the embedding that transformers gives no gradient "
                                "from its inputs; here it has one");
  describeRope(*this, config);
  if (family == "qwen2") {
    attentionBias = true;
  } else if (family != "mistral") {
    config.take(ConfigEntry("attention_bias").implied(false), attentionBias);
    if (family == "llama")
      config.take(ConfigEntry("mlp_bias").implied(false), mlpBias);
  }
  config.take(ConfigEntry("tie_word_embeddings").option("--tie").implied(false), tied);
  describeWindow(*this, config, own);
  config.demand(ConfigEntry("is_causal", true));
  config.demand(ConfigEntry("rope_interleaved", false));
  if (config.isReading()) {
    config.demand(ConfigEntry("quantization_config", nullptr));
    config.leaveToTraining("attention_dropout");
    if (const std::string range = config.valueAt("initializer_range");
        !range.empty() && range != "0.02")
      config.remark("initializer_range",
                    "is not taken: weights that no file gives are drawn with 0.02");
  }
  config.note("torch_dtype", "float32");
  return context;
}

} // namespace fsdp::models
