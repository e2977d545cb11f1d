//===- lora.cpp - adapters of low rank ------------------------------------===//

#include "models/lora.h"

#include "base/NamePattern.h"
#include "base/Numbers.h"
#include "base/Sequences.h"
#include "dsl/ModelConfig.h"
#include <algorithm>
#include <cmath>

using namespace fsdp::dsl;

namespace fsdp::models {

/// Before the names of the base model's tensors, in files of PEFT.
static const std::string kPrefix = "base_model.model.";

/// As PEFT has it: the name, or its end after a '.'.
static bool namesProjection(const std::string &pattern, const std::string &name) {
  return base::matchesPattern(pattern, name) || base::matchesPattern("*." + pattern, name);
}

Lora::Lora(Model &model, const LoraConfig &config, const std::string &usual)
    : model(model), config(config) {
  if (config.rank == 0 && (config.alpha != 0 || !config.on.empty()))
    throw OptionError(Where::here(), std::string("got ") +
                                         (config.alpha != 0 ? "--lora-alpha" : "--lora-on") +
                                         " without --lora: give the rank of the adapters");
  patterns = base::listElements(config.on.empty() ? usual : config.on);
}

Scope Lora::base(const Scope &scope) const { return config.rank > 0 ? scope.frozen() : scope; }

static int64_t product(const Shape &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

std::optional<LoraAdapter> Lora::adapt(const Scope &scope, const Parameter &weight, const Shape &in,
                                       const Shape &out, bool isTransposed) {
  if (config.rank == 0)
    return std::nullopt;
  const std::string name = weight.name().substr(0, weight.name().rfind('.'));
  projections.push_back(name);
  if (std::none_of(patterns.begin(), patterns.end(),
                   [&](const std::string &pattern) { return namesProjection(pattern, name); }))
    return std::nullopt;
  adapted.push_back(name);
  this->isTransposed = isTransposed;
  const Scope own = scope.adapter(kPrefix);
  Shape down = in, up = out;
  down.insert(down.begin(), config.rank);
  up.push_back(config.rank);
  LoraAdapter adapter;
  adapter.scale = (config.alpha == 0 ? static_cast<double>(config.rank) : config.alpha) /
                  static_cast<double>(config.rank);
  adapter.down = own.scope("lora_A").parameter(
      "weight", down, uniform(1 / std::sqrt(static_cast<double>(product(in)))),
      {config.rank, product(in)});
  adapter.up = own.scope("lora_B").parameter("weight", up, zeros(), {product(out), config.rank});
  model.adapter(weight, adapter.down, adapter.up, adapter.scale, isTransposed);
  return adapter;
}

Tensor LoraAdapter::operator()(Located x) const {
  const auto letters = [](char first, std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i)
      text += static_cast<char>(first + i);
    return text;
  };
  const std::size_t ins = down.shape().size() - 1;
  const std::string rows = letters('a', static_cast<std::size_t>(x.tensor.rank()) - ins),
                    in = letters('i', ins), out = letters('o', up.shape().size() - 1);
  Tensor narrow = einsum(rows + in + ",z" + in + "->" + rows + "z", x, down);
  return einsum(rows + "z," + out + "z->" + rows + out, scale == 1 ? narrow : narrow * scale, up);
}

Tensor Lora::add(Located y, const std::optional<LoraAdapter> &adapter, Located x) {
  return adapter ? y + (*adapter)(x) : y.tensor;
}

void Lora::finish(Where where) {
  if (config.rank == 0)
    return;
  std::string names, list;
  for (const std::string &name : projections)
    if (const std::string last = name.substr(name.rfind('.') + 1);
        (", " + names + ",").find(", " + last + ",") == std::string::npos)
      names += (names.empty() ? "" : ", ") + last;
  for (const std::string &pattern : patterns)
    if (std::none_of(adapted.begin(), adapted.end(),
                     [&](const std::string &name) { return namesProjection(pattern, name); }))
      throw OptionError(where, "--lora-on: " +
                                   base::mismatch(pattern, "names of projections, of " + names));
  for (const std::string &name : adapted)
    list += (list.empty() ? "\n    " : ",\n    ") + ConfigValue(name).text();
  const double alpha = config.alpha == 0 ? static_cast<double>(config.rank) : config.alpha;
  const bool isWhole = alpha == std::floor(alpha) && alpha < 1e15;
  model.adapterFile(
      "adapter_config.json",
      "{\n  \"base_model_name_or_path\": null,\n  \"bias\": \"none\",\n  \"fan_in_fan_out\": " +
          ConfigValue(isTransposed).text() + ",\n  \"inference_mode\": true,\n  \"lora_alpha\": " +
          (isWhole ? ConfigValue(static_cast<int64_t>(alpha)) : ConfigValue(alpha)).text() +
          ",\n  \"lora_dropout\": 0.0,\n  \"peft_type\": \"LORA\",\n  \"r\": " +
          ConfigValue(config.rank).text() + ",\n  \"target_modules\": [" + list +
          "\n  ],\n  \"task_type\": \"CAUSAL_LM\"\n}\n",
      where);
}

} // namespace fsdp::models
