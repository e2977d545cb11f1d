//===- InputStaging.h - batches on their way to the device ------------------===//
#ifndef FSDP_RUNTIME_DEVICE_CUDA_INPUTSTAGING_H
#define FSDP_RUNTIME_DEVICE_CUDA_INPUTSTAGING_H

#include "runtime/device/InputSource.h"
#include "runtime/device/cuda/StreamWorkspace.h"
#include "runtime/program/Program.h"

#include <deque>
#include <vector>

namespace fsdp::rt {

/// Pinned host memory for the batches of a walk, twice: while the device copies those of one run,
/// the host fetches those of the next. A walk asks for the same in every run. Before the host fills
/// memory again it waits until the device has copied what was there, which streams that are not joined may
/// still have before them. Errors are those of CUDA, and of the source.
class InputStaging {
public:
  /// `workspaces` are those of the streams, and tell when copies are done.
  InputStaging(const Program &program, const std::deque<StreamWorkspace> &workspaces);
  ~InputStaging();
  InputStaging(const InputStaging &) = delete;
  InputStaging &operator=(const InputStaging &) = delete;

  /// The actions that follow are those of `walk`, whose batches `source` gives. Returns the place that
  /// they copy from (see HostCopies).
  int begin(const Walk &walk, InputSource *source);
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
  void awaitCopies(int half);

  const Program &program_;
  const std::deque<StreamWorkspace> &workspaces_;
  Plan plans_[2]; ///< of training and of evaluation
  Plan *current_ = plans_;
  InputSource *source_ = nullptr;
  std::size_t position_ = 0;
  bool ready_ = false; ///< the current half was fetched ahead
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DEVICE_CUDA_INPUTSTAGING_H
