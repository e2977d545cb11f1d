//===- AdapterFiles.h - files of PEFT's adapters ----------------*- C++ -*-===//
//
// PEFT keeps adapters as adapter_model.safetensors and adapter_config.json. transformers adds them
// to a model in the same folder, so adapters are next to the model that they were trained on, or
// alone.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_TRAIN_ADAPTERFILES_H
#define FSDP_RUNTIME_TRAIN_ADAPTERFILES_H

#include "runtime/program/Program.h"

#include <string>
#include <string_view>

namespace fsdp::rt {

constexpr const char *kAdapterWeights = "adapter_model.safetensors";
constexpr const char *kAdapterConfig = "adapter_config.json";
constexpr const char *kModelWeights = "model.safetensors";

/// Whether PEFT gives a tensor of an adapter file this name: it begins with "base_model.model.", or
/// has a part "lora_…".
bool isNameOfAdapters(std::string_view tensor);

/// Compares adapter_config.json beside the weights `path`, if it exists, with the program: rank,
/// scale and kind of the adapters, and which modules have them. Entries about other contents of the
/// file (saved modules, biases, tokens) are not compared if only `part` of it is read. Returns
/// every entry that differs, with both values; "" for a program without adapters. Errors: the file
/// cannot be read or is not JSON.
std::string adapterChange(const Program &program, const std::string &path, bool part);

/// Error: `path`, of `option`, is adapter_model.safetensors beside a model, or model.safetensors
/// beside adapters. The adapters would be added to weights that they do not belong to.
void requireOneKindOfWeights(const char *option, const std::string &path);

/// Error (bad command line): --export and --export-merged would write both kinds to one folder.
void requireTwoFolders(const std::string &exported, const std::string &merged);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_ADAPTERFILES_H
