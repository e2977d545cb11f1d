//===- Training.h - one rank's training run -------------------------------===//

#ifndef FSDP_RUNTIME_TRAIN_TRAINING_H
#define FSDP_RUNTIME_TRAIN_TRAINING_H

#include "runtime/train/CommandLine.h"
#include "runtime/train/RunFiles.h"
#include "runtime/train/RunStart.h"

#include <cstdint>

namespace fsdp::rt {

class Job;

/// Trains `program` for `steps` steps as the rank that `job` is; returns its exit status.
int train(const Program &program, const Options &options, const RunSources &sources,
          const RunOutputs &outputs, RunStart &runStart, std::int64_t steps, Job &job);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_TRAINING_H
