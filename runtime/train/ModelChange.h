//===- ModelChange.h - whether weights are of the model of this program ---===//

#ifndef FSDP_RUNTIME_TRAIN_MODELCHANGE_H
#define FSDP_RUNTIME_TRAIN_MODELCHANGE_H

#include "runtime/program/Program.h"
#include "runtime/train/CheckpointManifest.h"

#include <string>

namespace fsdp::rt {

/// What speaks against going on from the checkpoint in `folder`: names and shapes of parameters may
/// be the same where the model computes something else with them.
struct ModelChange {
  std::string difference; ///< empty: nothing
  bool isKnown = true;    ///< false: the two could not be compared
};

/// Compares the digests of the models of a program and of a checkpoint, which must have the same
/// version ([Note: model digest]).
ModelChange modelChange(const Program &program, const CheckpointManifest &manifest,
                        const std::string &folder);

/// Compares the file that describes the model beside the weights `path`, if it is there, with what
/// the program computes with: every entry that differs, with both values and the option that
/// changes it. Errors: the file cannot be read or is not JSON.
std::string configChange(const Program &program, const std::string &path);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_MODELCHANGE_H
