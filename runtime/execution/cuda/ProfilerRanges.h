//===- ProfilerRanges.h - names of actions for profilers --------*- C++ -*-===//
#ifndef FSDP_RUNTIME_EXECUTION_CUDA_PROFILERRANGES_H
#define FSDP_RUNTIME_EXECUTION_CUDA_PROFILERRANGES_H

#include "runtime/device/Work.h"
#include "runtime/execution/cuda/ActionObserver.h"

#include <memory>

namespace fsdp::rt {

/// Ranges of NVTX, in which a profiler shows the work that the host enqueues: one for each run of a
/// plan ("step 12"), in it one for each segment, and in that one for each action, with its name in
/// a trace. The header of NVTX calls the library of the profiler, if there is one. Of a segment
/// that is launched as a graph there are actions when it is captured only.
class ProfilerRanges final : public ActionObserver {
public:
  /// Null unless a profiler may be there: with FSDP_NVTX=1, or where NVTX_INJECTION64_PATH names
  /// the library of one and FSDP_NVTX is not 0. Error: another value than 0 or 1, or 1 in a program
  /// that was compiled without NVTX.
  static std::unique_ptr<ProfilerRanges> make();

  /// Passes actions on to `observer`; null: to nobody.
  void setNext(ActionObserver *observer) { next_ = observer; }

  void beginRun(Mark mark);
  void endRun();
  /// A segment of the run.
  void beginSegment(const char *name) { begin(name); }
  void endSegment() { end(); }

  void next(const char *name) override;
  void on(int stream) override {
    if (next_)
      next_->on(stream);
  }
  void touch(std::size_t bytes) override {
    if (next_)
      next_->touch(bytes);
  }

private:
  void begin(const char *name);
  void end();
  void endAction();

  ActionObserver *next_ = nullptr;
  int open_ = 0;          ///< ranges of a run and of a segment
  bool inAction_ = false; ///< one of an action is open too
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_EXECUTION_CUDA_PROFILERRANGES_H
