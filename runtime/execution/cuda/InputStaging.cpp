#include "runtime/execution/cuda/InputStaging.h"
#include "base/Error.h"

#include <cuda_runtime.h>

#include <utility>

namespace fsdp::rt {

using namespace base;

InputStaging::InputStaging(const Program &program) : program_(program) {}

InputStaging::~InputStaging() {
  for (Plan &plan : plans_)
    for (Batch &batch : plan.batches)
      for (void *memory : batch.memory)
        cudaFreeHost(memory);
}

void InputStaging::begin(const ExecutionPlan &plan, InputSource *source) {
  if (!source)
    return; // a plan without inputs: the prefetched batches are for a later one
  const Generation &generation = program_.generation;
  current_ = &plans_[&plan == &program_.evaluate    ? 1
                     : &plan == &generation.prefill ? 2
                     : &plan == &generation.decode  ? 3
                                                    : 0];
  current_->half ^= 1;
  source_ = source;
  position_ = 0;
  ready_ = std::exchange(current_->fetched, false);
}

void InputStaging::load(const Batch &batch, int half) {
  const Buffer &slice = program_.inputs[static_cast<std::size_t>(batch.input)].slice;
  source_->load(batch.input, batch.memory[half], slice.count * sizeInBytes(slice.dtype));
}

const void *InputStaging::next(int input) {
  if (position_ == current_->batches.size()) {
    const Buffer &slice = program_.inputs[static_cast<std::size_t>(input)].slice;
    Batch batch{input, {}};
    for (void *&memory : batch.memory)
      if (cudaError_t status =
              cudaHostAlloc(&memory, slice.count * sizeInBytes(slice.dtype), cudaHostAllocDefault))
        throw Error(format("cannot pin %zu bytes of host memory for input '%s': %s",
                           slice.count * sizeInBytes(slice.dtype),
                           program_.inputs[static_cast<std::size_t>(input)].name,
                           cudaGetErrorString(status)));
    current_->batches.push_back(batch);
    ready_ = false;
  }
  const Batch &batch = current_->batches[position_++];
  if (batch.input != input)
    throw Error(format("a plan uses input %d where it used input %d before", input, batch.input));
  if (!ready_)
    load(batch, current_->half);
  return batch.memory[current_->half];
}

void InputStaging::fetchAhead() {
  for (const Batch &batch : current_->batches)
    load(batch, current_->half ^ 1);
  current_->fetched = true;
}

} // namespace fsdp::rt
