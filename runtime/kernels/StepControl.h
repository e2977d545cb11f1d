//===- StepControl.h - launches that carry a step to the next ---*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_STEPCONTROL_H
#define FSDP_RUNTIME_KERNELS_STEPCONTROL_H

#include "runtime/program/KernelArguments.h"
#include "runtime/program/Program.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

namespace kernels {
/// The learning rate of the step being performed (see Schedule).
float learningRate(Schedule schedule, const StepState &state);
/// TransferRuns on to the next step; a good one clears what bad ones have noted.
void advance(StepState &state, BadGradients &bad, bool ok);
/// How many samples of the microbatch being performed count.
std::int64_t microbatchSamples(Microbatches batches, const StepState &state);
} // namespace kernels

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_STEPCONTROL_H
