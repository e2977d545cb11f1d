//===- Device.h - what the driver asks of a target --------------*- C++ -*-===//
//
// The driver is the same for every target. Where it touches the arena, or asks what there is to run
// on, it goes through this: implemented by runtime/execution/CpuDevice.cpp and by
// runtime/execution/cuda/CudaDevice.cpp, one of which a program is linked with.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_EXECUTION_DEVICE_H
#define FSDP_RUNTIME_EXECUTION_DEVICE_H

#include "base/OutputPath.h"
#include "runtime/device/InputSource.h"
#include "runtime/device/Work.h"
#include "runtime/job/Job.h"
#include "runtime/program/Program.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace fsdp::rt {

/// What one rank computes on: its arena, and the segments that run over it. Whatever looks at the
/// arena waits for all that runs.
class Device {
public:
  virtual ~Device() = default;

  Job &job() const { return job_; }
  int rank() const { return job_.rank(); }

  /// Over all ranks, for memory of the host.
  virtual Communicator &world() = 0;

  /// `fill` writes the elements of a buffer as floats; they are rounded to its type for the arena.
  virtual void write(const Buffer &buffer, const std::function<void(float *)> &fill) = 0;
  /// The elements of a buffer of floats, until the next call.
  virtual const float *read(const Buffer &buffer) = 0;
  /// Memory of the host for `count` floats, which copies from the arena reach without a detour.
  virtual std::shared_ptr<float> hostMemory(std::size_t count) = 0;
  /// Begins to copy elements [first, first + count) of a buffer of floats to memory of
  /// `hostMemory`.
  virtual void copyToHost(const Buffer &buffer, std::size_t first, std::size_t count,
                          float *to) = 0;
  /// Waits for the copies that have begun.
  virtual void awaitCopies() = 0;
  virtual void setState(const StepState &state) = 0;
  /// How many samples of the next walk's global batch count: the first ones.
  virtual void setSamples(std::int64_t samples) = 0;
  /// As the latest walk left it.
  virtual const StepState &state() = 0;
  /// What the updates of the latest walk that was skipped have noted on this rank (BadGradients);
  /// -1: nothing.
  virtual int firstBad() = 0;

  /// What the host does from now on, and what the walks that it runs belong to in a trace.
  void mark(Mark mark);
  /// Enqueues a walk, with the batches that `source` gives, and waits until its outputs are there;
  /// after a segment that is joined, until all is done. What else is enqueued goes on behind the
  /// walks that follow. `prefetchNext`: the walk will be run again from where the source then
  /// stands, so that the batches may be fetched in the meantime.
  virtual void run(const ExecutionPlan &plan, InputSource *source, bool prefetchNext) = 0;
  /// Waits for all that is enqueued.
  virtual void finish() = 0;
  /// What the latest walk's `output` launches left, by index: numbers, or sums and weights.
  virtual const float *outputs() const = 0;
  virtual const WeightedSum *sums() const = 0;

  /// Keeps when each action of the segments ran, from now on. All ranks together.
  virtual void startTrace() = 0;
  /// Writes what was kept, for all ranks: every rank calls it.
  virtual void writeTrace(const base::OutputPath &path) = 0;

  /// Measured high-water mark of the arena, in bytes.
  virtual std::size_t peakBytes() const = 0;
  /// Bytes of scratch memory beside the arena.
  virtual std::size_t workspaceBytes() const = 0;
  /// Bytes of the device that libraries take beside them, or nothing where that is not known.
  virtual std::optional<std::size_t> libraryBytes() const { return std::nullopt; }
  /// How collectives are made, for people: "all-gathers by copy engines". "" where there is nothing
  /// to say.
  virtual std::string collectives() const { return ""; }

protected:
  explicit Device(Job &job) : job_(job) {}

  Mark marked{"run"};

private:
  Job &job_;
  std::uint64_t kept_ = 0; ///< what is marked, in the job's flight record
};

/// What a program's target decides before there are ranks.
namespace target {

/// The names that `--communicator` takes: "auto, shm, tcp or mpi".
extern const char *const communicatorNames;
/// Options of a job whose ranks talk as `communicator` says. Errors (bad command line): a name that
/// this target does not take.
JobOptions jobOptions(const Program &program, const std::string &communicator);
/// Errors (no device): fewer devices than the job's ranks on this machine need.
void requireDevices(const JobOptions &options, int ranks);
/// The libraries that compute and communicate, with their versions: "oneDNN 2.6.3".
std::string libraries();
/// The device of a rank, its arena zeroed.
std::unique_ptr<Device> open(const Program &program, Job &job);

} // namespace target

/// Calls `visit(segment, wait)` for each run of a segment of `walk`, in order; `wait`: all that was
/// enqueued before has to be done first.
template <class Visit>
void forEachSegment(const Program &program, const ExecutionPlan &plan, Visit visit) {
  bool wait = false;
  for (const SegmentRuns &runs : plan.runs)
    for (std::int64_t run = 0; run < runs.times; ++run) {
      const Segment &segment = program.segments[static_cast<std::size_t>(runs.segment)];
      visit(segment, wait);
      wait = segment.joined;
    }
}

/// True where `walk` is one run of one segment.
inline bool isOneSegment(const ExecutionPlan &plan) {
  return plan.runs.size() == 1 && plan.runs[0].times == 1;
}

/// True where nothing of `walk` goes on behind what follows it.
inline bool endsJoined(const Program &program, const ExecutionPlan &plan) {
  if (plan.runs.empty())
    return true;
  const SegmentRuns &last = plan.runs[plan.runs.size() - 1];
  return program.segments[static_cast<std::size_t>(last.segment)].joined;
}

/// The most numbers that a walk of the program leaves.
std::size_t mostOutputs(const Program &program);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_EXECUTION_DEVICE_H
