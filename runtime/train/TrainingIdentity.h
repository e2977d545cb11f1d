//===- TrainingIdentity.h - what makes a training run -----------------------===//

#ifndef FSDP_RUNTIME_TRAIN_TRAININGIDENTITY_H
#define FSDP_RUNTIME_TRAIN_TRAININGIDENTITY_H

#include "runtime/job/RunIdentity.h"
#include "runtime/train/CommandLine.h"
#include "runtime/train/RunContents.h"

namespace fsdp::rt {

/// The compiled program, the options, and the contents of the files, which have to be the same on
/// every rank. Paths are not compared: a machine may have its copy anywhere. Contents are digests
/// of data files and of weights tensor by tensor, sampled where they are large (sampledDigest). Of
/// `--export` and `--trace` it counts whether they are given, as all ranks take part; `--log` is
/// rank 0's alone. `resumed` says which checkpoint training continues from.
RunIdentity identityOfTraining(const Program &program, const Options &options, std::int64_t steps,
                               const RunContents &contents, const std::string &resumed);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_TRAININGIDENTITY_H
