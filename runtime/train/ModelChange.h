//===- ModelChange.h - compares models of weights and program -------------===//

#ifndef FSDP_RUNTIME_TRAIN_MODELCHANGE_H
#define FSDP_RUNTIME_TRAIN_MODELCHANGE_H

#include "runtime/program/Program.h"
#include "runtime/train/CheckpointManifest.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace fsdp::rt {

/// A difference between the models of a program and of a checkpoint: names and shapes of parameters
/// may be equal although the models compute different functions.
struct ModelChange {
  std::string difference; ///< empty if there is none
  bool isKnown = true;    ///< false: the models could not be compared
};

/// Compares the digests of the models of a program and of a checkpoint, which must have the same
/// version ([Note: model digest]).
ModelChange modelChange(const Program &program, const CheckpointManifest &manifest,
                        const std::string &folder);

/// Compares the file that describes the model of the weights `path`, if there is one next to them,
/// with the program. Returns every entry that differs, with both values and the option that changes
/// it. Errors: the file cannot be read or is not JSON.
std::string configChange(const Program &program, const std::string &path);

/// The JSON object in `path`, which describes the model of the weights beside it. Errors: it cannot
/// be read or is not a JSON object.
nlohmann::json readConfig(const std::string &path);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_MODELCHANGE_H
