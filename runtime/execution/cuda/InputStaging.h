//===- InputStaging.h - batches on their way to the device ------------------===//
#ifndef FSDP_RUNTIME_EXECUTION_CUDA_INPUTSTAGING_H
#define FSDP_RUNTIME_EXECUTION_CUDA_INPUTSTAGING_H

#include "runtime/device/InputSource.h"
#include "runtime/program/Program.h"

#include <vector>

namespace fsdp::rt {

/// Pinned host memory for the batches of a walk, twice: while the device copies those of one run,
/// the host fetches those of the next. A walk asks for the same in every run. Before memory is
/// filled again the device must have copied what was there, which streams that are not joined may
/// still have before them. Errors are those of CUDA, and of the source.
class InputStaging {
public:
  explicit InputStaging(const Program &program);
  ~InputStaging();
  InputStaging(const InputStaging &) = delete;
  InputStaging &operator=(const InputStaging &) = delete;

  /// The actions that follow are those of `walk`, whose batches `source` gives.
  void begin(const ExecutionPlan &plan, InputSource *source);
  /// Where the walk's batches lie (see HostCopies), and where those of its next run will.
  int place() const { return placeOf(current_->half); }
  int nextPlace() const { return placeOf(current_->half ^ 1); }
  /// True where they were fetched ahead; else `next` fills their place.
  bool isFetched() const { return ready_; }
  /// Where this rank's part of the next batch of `input` lies, until the run after the next.
  const void *next(int input);
  /// Fetches what the next run of the walk will ask for.
  void fetchAhead();

private:
  struct Batch {
    int input;
    void *memory[2];
  };
  /// What a walk asks for, in order.
  struct Plan {
    std::vector<Batch> batches;
    bool fetched = false; ///< the half that is not in use holds the next run's
    int half = 0;
  };

  void load(const Batch &batch, int half);
  int placeOf(int half) const { return static_cast<int>(current_ - plans_) * 2 + half; }

  const Program &program_;
  Plan plans_[2]; ///< of training and of evaluation
  Plan *current_ = plans_;
  InputSource *source_ = nullptr;
  std::size_t position_ = 0;
  bool ready_ = false; ///< the current half was fetched ahead
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_EXECUTION_CUDA_INPUTSTAGING_H
