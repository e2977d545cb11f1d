//===- InputStaging.h - batches on their way to the device ------------------===//
#ifndef FSDP_RUNTIME_DEVICE_CUDA_INPUTSTAGING_H
#define FSDP_RUNTIME_DEVICE_CUDA_INPUTSTAGING_H

#include "runtime/device/InputSource.h"
#include "runtime/program/Program.h"

#include <vector>

namespace fsdp::rt {

/// Pinned host memory for the batches of a segment, twice: while the device copies those of one run,
/// the host fetches those of the next. A segment is a straight line, so what it asks for in its
/// first run is what it asks for in every one. Errors are those of CUDA, and of the source.
class InputStaging {
public:
  explicit InputStaging(const Program &program);
  ~InputStaging();
  InputStaging(const InputStaging &) = delete;
  InputStaging &operator=(const InputStaging &) = delete;

  /// The actions that follow are those of `segment`, whose batches `source` gives. What the run
  /// before the last asked for has been copied.
  void begin(const Segment &segment, InputSource *source);
  /// Where this rank's part of the next batch of `input` lies, until the run after the next.
  const void *next(int input);
  /// Fetches what the next run of the segment will ask for.
  void fetchAhead();

private:
  struct Batch {
    int input;
    void *memory[2];
  };
  /// What a segment asks for, in order.
  struct Plan {
    std::vector<Batch> batches;
    bool fetched = false; ///< the half that is not in use holds the next run's
    int half = 0;
  };

  void load(const Batch &batch, int half);

  const Program &program_;
  std::vector<Plan> plans_; ///< one for each segment
  Plan *current_ = nullptr;
  InputSource *source_ = nullptr;
  std::size_t position_ = 0;
  bool ready_ = false; ///< the current half was fetched ahead
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DEVICE_CUDA_INPUTSTAGING_H
