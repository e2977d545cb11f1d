//===- InputStaging.h - pinned memory for inputs --------------------------===//
#ifndef FSDP_RUNTIME_EXECUTION_CUDA_INPUTSTAGING_H
#define FSDP_RUNTIME_EXECUTION_CUDA_INPUTSTAGING_H

#include "runtime/device/InputSource.h"
#include "runtime/device/cuda/StreamWorkspace.h"
#include "runtime/program/Program.h"

#include <vector>

namespace fsdp::rt {

/// Pinned host memory for the batches of a plan, twice: while the device copies the batches of one
/// run, the host fetches those of the next. A plan uses the same inputs in every run. The device
/// must have copied the data before its memory is filled again; streams that are not joined may
/// still have copies enqueued. Errors are those of CUDA and of the source.
class InputStaging {
public:
  explicit InputStaging(const Program &program);
  ~InputStaging();
  InputStaging(const InputStaging &) = delete;
  InputStaging &operator=(const InputStaging &) = delete;

  /// The following actions are those of `plan`, with the batches of `source`.
  void begin(const ExecutionPlan &plan, InputSource *source);
  /// The place of the plan's batches (see HostCopies), and of those of its next run.
  int place() const { return placeOf(current_->half); }
  int nextPlace() const { return placeOf(current_->half ^ 1); }
  /// True if they were prefetched; else next() loads them.
  bool isFetched() const { return ready_; }
  /// This rank's part of the next batch of `input`; valid until the run after the next.
  const void *next(int input);
  /// Prefetches the inputs of the next run of the plan.
  void fetchAhead();

private:
  struct Batch {
    int input;
    void *memory[2];
  };
  /// The inputs of a plan, in order of use.
  struct Plan {
    std::vector<Batch> batches;
    bool fetched = false; ///< the unused half holds the batches of the next run
    int half = 0;
  };

  void load(const Batch &batch, int half);
  int placeOf(int half) const { return static_cast<int>(current_ - plans_) * 2 + half; }

  const Program &program_;
  Plan plans_[HostCopies::kPlaces / 2]; ///< of training, of evaluation, of prefill and of decode
  Plan *current_ = plans_;
  InputSource *source_ = nullptr;
  std::size_t position_ = 0;
  bool ready_ = false; ///< the current half was fetched ahead
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_EXECUTION_CUDA_INPUTSTAGING_H
