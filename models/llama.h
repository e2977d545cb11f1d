//===- llama.h - Llama and models of its kind: sizes, blocks ----*- C++ -*-===//
//
//   models::LlamaConfig sizes;
//   models::Llama llama(model, sizes);
//   sizes.packing.addLoss(model, crossEntropy(llama(tokens), targets), tokens);
// Parameters have the names and shapes of `LlamaForCausalLM`, `MistralForCausalLM`,
// `Qwen2ForCausalLM` and `Qwen3ForCausalLM` of Hugging Face. Blocks can be used alone.
//
//===----------------------------------------------------------------------===//

#ifndef MODELS_LLAMA_H
#define MODELS_LLAMA_H

#include "models/lora.h"
#include "models/packing.h"
#include <optional>
#include <string>
#include <vector>

namespace fsdp::models {

/// Scaling of the rotary embedding: `rope_scaling` of config.json.
struct LlamaRopeScaling {
  std::string type = "default"; ///< default, linear, llama3 or yarn
  double factor = 1;
  std::optional<int64_t> context; ///< `original_max_position_embeddings`
  double low = 1, high = 4;       ///< of llama3: `low_freq_factor`, `high_freq_factor`
  double betaFast = 32, betaSlow = 1;
  bool truncate = true;
  std::optional<double> attentionFactor, magnitude, magnitudeOfAll; ///< of yarn
};

/// Sizes and constants of a model; the defaults are those of `LlamaConfig()`.
struct LlamaConfig {
  std::string family = "llama"; ///< `model_type`: llama, mistral, qwen2 or qwen3
  int64_t layers = 32, width = 4096, heads = 32, ffn = 11008, vocab = 32000;
  int64_t groups = 0; ///< heads of keys and values; 0: `heads`
  int64_t head = 0;   ///< width of a head; 0: width / heads
  double theta = 10000, eps = 1e-6;
  LlamaRopeScaling scaling;
  std::string activation = "silu"; ///< see activation.h
  bool tied = false;               ///< the weight of the head is that of the embedding
  bool attentionBias = false;      ///< of queries, keys, values and, but for qwen2, the output
  bool mlpBias = false;
  LoraConfig lora;       ///< adapters; by default of queries and values
  PackingConfig packing; ///< documents of a sample, to which attention is limited

  // Attention in a window of the last keys: `sliding_window`, in every layer of mistral, and in
  // qwen2 and qwen3 if it is used, in those from `max_window_layers` on or those that `layer_types`
  // names.
  bool usesWindow = false;
  std::optional<int64_t> window;
  std::optional<int64_t> windowLayers;
  std::vector<std::string> layerTypes;

  // Descriptions of the model for other programs, without effect on the computation.
  int64_t positions = 0; ///< `max_position_embeddings`; 0: the context
  std::optional<dsl::ConfigValue> begin, end, padding; ///< ids of tokens

  /// Sets `groups` and `head` where they are 0. Throws ModelError for sizes that do not fit.
  void complete();
  bool hasOutputBias() const { return attentionBias && family != "qwen2"; }
  bool hasHeadNorms() const { return family == "qwen3"; }
  /// The maximum number of keys that a query of this layer attends to; none if it attends to all
  /// before it.
  std::optional<int64_t> windowOf(int64_t layer) const;
  /// The rotation of rows of queries and keys.
  dsl::RopeScaling ropeScaling() const;

  /// Describes config.json, or reads it while `config` reads: see ModelConfig. `context`: tokens of
  /// a sample. Complete, unless it reads. Returns the context; with `mayShorten`, it is at most the
  /// positions of a file that is read.
  int64_t describe(dsl::ModelConfig &config, int64_t context, bool mayShorten = false);
};

/// A product with a weight that is stored (out, in), with its out factors apart, and maybe a bias
/// and an adapter: (batch, positions, width) to (batch, positions, heads, head). Here and below
/// `lora` declares the adapters; the scope is then frozen (Lora::base).
struct HeadProjection {
  dsl::Parameter weight;
  std::optional<dsl::Parameter> bias;
  std::optional<LoraAdapter> adapter;

  HeadProjection(const dsl::Scope &scope, int64_t heads, int64_t head, int64_t width, bool hasBias,
                 const std::string &split = "", Lora *lora = nullptr);
  dsl::Tensor operator()(dsl::Located x) const;
};

/// Causal grouped-query attention with rotary positions; (batch, positions, width), as below.
struct LlamaAttention {
  LlamaConfig sizes;
  std::optional<int64_t> window;
  HeadProjection query, key, value;
  dsl::Parameter out;
  std::optional<dsl::Parameter> outBias, queryNorm, keyNorm;
  std::optional<LoraAdapter> outAdapter;

  LlamaAttention(const dsl::Scope &scope, const LlamaConfig &sizes, Lora *lora = nullptr,
                 int64_t layer = 0);
  /// `documents`: ids as AttentionOptions has them.
  dsl::Tensor operator()(dsl::Located x,
                         const std::optional<dsl::Tensor> &documents = std::nullopt) const;
};

/// down(activation(gate(x)) * up(x)).
struct LlamaMlp {
  std::string activation;
  dsl::Parameter gate, up, down;
  std::optional<dsl::Parameter> gateBias, upBias, downBias;
  std::optional<LoraAdapter> gateAdapter, upAdapter, downAdapter;

  LlamaMlp(const dsl::Scope &scope, const LlamaConfig &sizes, Lora *lora = nullptr);
  dsl::Tensor operator()(dsl::Located x) const;
};

/// Attention and a feed-forward part, each applied to a norm and added to the residual stream.
struct LlamaBlock {
  double eps;
  dsl::Parameter norm1, norm2;
  LlamaAttention attention;
  LlamaMlp mlp;

  LlamaBlock(const dsl::Scope &scope, const LlamaConfig &sizes, Lora *lora = nullptr,
             int64_t layer = 0);
  dsl::Tensor operator()(dsl::Tensor x,
                         const std::optional<dsl::Tensor> &documents = std::nullopt) const;
};

/// The whole model, with a unit for the embedding, for each block and for the head.
struct Llama {
  LlamaConfig sizes;
  dsl::Parameter embedding, norm, head;
  std::vector<LlamaBlock> blocks;

  /// `sizes` are complete.
  Llama(dsl::Model &model, const LlamaConfig &sizes);
  /// Tokens (batch, positions) to logits (batch, positions, vocab).
  dsl::Tensor operator()(dsl::Located tokens) const;
};

} // namespace fsdp::models

#endif // MODELS_LLAMA_H
