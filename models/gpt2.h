//===- gpt2.h - GPT-2: sizes, blocks ----------------------------*- C++ -*-===//
//
//   models::GPT2Config sizes;
//   models::GPT2 gpt2(model, sizes);
//   sizes.packing.addLoss(model, crossEntropy(gpt2(tokens), targets), tokens);
// Parameters have the names and shapes of `GPT2LMHeadModel` of Hugging Face. Blocks can be used
// alone.
//
//===----------------------------------------------------------------------===//

#ifndef MODELS_GPT2_H
#define MODELS_GPT2_H

#include "models/lora.h"
#include "models/packing.h"
#include <optional>
#include <string>
#include <vector>

namespace fsdp::models {

/// Sizes and constants of a model; the defaults are those of `GPT2Config()`, without dropout.
struct GPT2Config {
  int64_t layers = 12, width = 768, heads = 12, vocab = 50257;
  int64_t positions = 1024;      ///< rows of the position embedding; the context at least
  std::optional<int64_t> hidden; ///< of the feed-forward parts; 4 * width without
  double eps = 1e-5;
  std::string activation = "gelu_new"; ///< see activation.h
  bool tied = true;                    ///< the weight of the head is that of the embedding
  bool scalesByWidth = true;           ///< products of queries and keys by 1 / sqrt(head)
  bool scalesByLayer = false;          ///< and by 1 / (layer + 1)
  double drop = 0;       ///< share of elements dropped before each sum of the residual stream
  LoraConfig lora;       ///< adapters; by default of queries, keys and values
  PackingConfig packing; ///< documents of a sample, each with positions from 0 on

  std::optional<dsl::ConfigValue> begin, end, padding; ///< ids of tokens

  int64_t hiddenWidth() const { return hidden.value_or(4 * width); }
  /// Throws ModelError for sizes that do not fit.
  void check() const;
  /// Describes config.json, or reads it while `config` reads: see ModelConfig. `context`: tokens of
  /// a sample, if specified.
  void describe(dsl::ModelConfig &config, std::optional<int64_t> context);
};

/// The scale and the bias of a layer norm.
struct GPT2Norm {
  double eps;
  dsl::Parameter weight, bias;

  GPT2Norm(const dsl::Scope &scope, int64_t width, double eps);
  dsl::Tensor operator()(dsl::Located x) const;
};

/// Causal attention with one product for queries, keys and values; (batch, positions, width), as
/// below. If `lora` declares adapters, the scope is frozen (Lora::base).
struct GPT2Attention {
  double scale;
  dsl::Parameter qkv, qkvBias, out, outBias;
  std::optional<LoraAdapter> qkvAdapter, outAdapter;

  GPT2Attention(const dsl::Scope &scope, const GPT2Config &sizes, int64_t layer,
                Lora *lora = nullptr);
  /// `documents`: ids as AttentionOptions has them.
  dsl::Tensor operator()(dsl::Located x,
                         const std::optional<dsl::Tensor> &documents = std::nullopt) const;
};

/// down(activation(up(x))).
struct GPT2Mlp {
  std::string activation;
  dsl::Parameter up, upBias, down, downBias;
  std::optional<LoraAdapter> upAdapter, downAdapter;

  GPT2Mlp(const dsl::Scope &scope, const GPT2Config &sizes, Lora *lora = nullptr);
  dsl::Tensor operator()(dsl::Located x) const;
};

/// Attention and a feed-forward part, each applied to a norm and added to the residual stream.
struct GPT2Block {
  GPT2Norm norm1, norm2;
  GPT2Attention attention;
  GPT2Mlp mlp;
  double drop;

  GPT2Block(const dsl::Scope &scope, const GPT2Config &sizes, int64_t layer, Lora *lora = nullptr);
  dsl::Tensor operator()(dsl::Tensor x,
                         const std::optional<dsl::Tensor> &documents = std::nullopt) const;
};

/// The whole model, with a unit for the embeddings and the head, and one for each block.
struct GPT2 {
  GPT2Config sizes;
  dsl::Parameter tokenTable, positionTable, head;
  GPT2Norm norm;
  std::vector<GPT2Block> blocks;

  GPT2(dsl::Model &model, const GPT2Config &sizes);
  /// Tokens (batch, positions) to logits (batch, positions, vocab).
  dsl::Tensor operator()(dsl::Located tokens) const;

private:
  GPT2(dsl::Model &model, Lora lora, const dsl::Scope &scope, const GPT2Config &sizes);
};

} // namespace fsdp::models

#endif // MODELS_GPT2_H
