//===- activation.cpp -----------------------------------------------------===//

#include "models/activation.h"

namespace fsdp::models {

namespace {

struct Activation {
  std::vector<std::string> names;
  dsl::Tensor (*function)(dsl::Located);
};

const std::vector<Activation> &activations() {
  static const std::vector<Activation> all = {
      {{"silu", "swish"}, dsl::silu},
      {{"gelu_new", "gelu_pytorch_tanh", "gelu_fast"}, dsl::gelu},
      {{"gelu"}, dsl::geluErf},
      {{"relu"}, dsl::relu},
  };
  return all;
}

const Activation *find(const std::string &name) {
  for (const Activation &activation : activations())
    for (const std::string &own : activation.names)
      if (own == name)
        return &activation;
  return nullptr;
}

} // namespace

const std::vector<std::string> &activationNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Activation &activation : activations())
      all.insert(all.end(), activation.names.begin(), activation.names.end());
    return all;
  }();
  return names;
}

std::vector<std::string> sameActivations(const std::string &name) {
  std::vector<std::string> others;
  if (const Activation *activation = find(name))
    for (const std::string &own : activation->names)
      if (own != name)
        others.push_back(own);
  return others;
}

dsl::Tensor activate(const std::string &name, dsl::Located input) {
  const Activation *activation = find(name);
  if (!activation)
    throw dsl::ModelError(input.where, "got the activation '" + name +
                                           "', expected one of models/activation.cpp");
  return activation->function(input);
}

} // namespace fsdp::models
