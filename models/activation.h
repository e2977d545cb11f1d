//===- activation.h - activations by their names on Hugging Face -*- C++ -*-===//

#ifndef MODELS_ACTIVATION_H
#define MODELS_ACTIVATION_H

#include "dsl/Operations.h"
#include <string>
#include <vector>

namespace fsdp::models {

/// Names that `activate` accepts, those of transformers' `ACT2FN`; some are synonyms.
const std::vector<std::string> &activationNames();
/// The other names of the function `name`.
std::vector<std::string> sameActivations(const std::string &name);
/// The function `name` of each element. Throws ModelError for another name.
dsl::Tensor activate(const std::string &name, dsl::Located input);

} // namespace fsdp::models

#endif // MODELS_ACTIVATION_H
