//===- Device.h - the interface of targets ----------------------*- C++ -*-===//
//
// The driver is the same for every target. It uses this interface for the arena and for devices; it
// is implemented by runtime/execution/CpuDevice.cpp and by runtime/execution/cuda/CudaDevice.cpp,
// one of which a program is linked with.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_EXECUTION_DEVICE_H
#define FSDP_RUNTIME_EXECUTION_DEVICE_H

#include "base/OutputPath.h"
#include "runtime/device/InputSource.h"
#include "runtime/device/ProductChoices.h"
#include "runtime/device/Work.h"
#include "runtime/execution/AttentionLibrary.h"
#include "runtime/job/Job.h"
#include "runtime/program/Program.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fsdp::rt {

/// The device of one rank: its arena, and the segments that run on it. Functions that access the
/// arena wait for all enqueued work.
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
  /// Host memory for `count` floats to which the arena can be copied directly.
  virtual std::shared_ptr<float> hostMemory(std::size_t count) = 0;
  /// Begins to copy elements [first, first + count) of a buffer of floats to memory of
  /// hostMemory().
  virtual void copyToHost(const Buffer &buffer, std::size_t first, std::size_t count,
                          float *to) = 0;
  /// Waits for these copies.
  virtual void awaitCopies() = 0;
  virtual void setState(const StepState &state) = 0;
  /// Sets the properties of updates, one entry for each parameter in the order of the tables; none:
  /// the properties in the tables. Before the first plan.
  virtual void setUpdates(std::vector<UpdateSetting> settings) = 0;
  /// Sets the number of valid samples in the next plan's global batch: the first ones.
  virtual void setSamples(std::int64_t samples) = 0;
  /// Sets the limits of the next steps: above them no update is applied (StepState).
  virtual void setLimits(float loss, float norm) = 0;
  /// The step state after the latest plan.
  virtual const StepState &state() = 0;
  /// The gradient that the latest skipped updates have recorded on this rank (BadGradients); -1:
  /// none.
  virtual int firstBad() = 0;

  /// Sets the name of the following work, for flight records and traces.
  void mark(Mark mark);
  /// Enqueues a plan, with the batches of `source`, and waits for its outputs; after a joined
  /// segment, for all work. Other work may still run while the following plans are enqueued.
  /// `prefetchNext`: the plan will be run again with the next batches of the source, so they may be
  /// fetched in the meantime.
  virtual void run(const ExecutionPlan &plan, InputSource *source, bool prefetchNext) = 0;
  /// Waits for all enqueued work.
  virtual void finish() = 0;
  /// The outputs of the latest plan, by index: numbers, or sums and weights.
  virtual const float *outputs() const = 0;
  virtual const WeightedSum *sums() const = 0;

  /// Records the times of all actions from now on. Called by all ranks together.
  virtual void startTrace() = 0;
  /// Writes the recorded times of all ranks. Called by every rank.
  virtual void writeTrace(const base::OutputPath &path) = 0;

  /// Measured high-water mark of the arena, in bytes.
  virtual std::size_t peakBytes() const = 0;
  /// Bytes of scratch memory outside the arena.
  virtual std::size_t workspaceBytes() const = 0;
  /// Bytes of device memory that libraries use in addition, or nothing if not known.
  virtual std::optional<std::size_t> libraryBytes() const { return std::nullopt; }
  /// Threads that compute in this rank; 0: it computes on a GPU.
  virtual int threads() const { return 0; }
  /// Describes how collectives are performed: "all-gathers by copy engines". May be empty.
  virtual std::string collectives() const { return ""; }
  /// The library that computes attention, if one does.
  virtual AttentionLibrary attentionLibrary() const { return {}; }
  /// The algorithms of products that were chosen by time. A checkpoint keeps them, and a run that
  /// continues from it adopts them before its first plan.
  virtual ProductChoices productChoices() const { return {}; }
  virtual void adoptProductChoices(const ProductChoices &) {}

protected:
  explicit Device(Job &job) : job_(job) {}

  Mark marked{"run"};

private:
  Job &job_;
  std::uint64_t kept_ = 0; ///< the mark's action in the job's flight record
};

/// Functions of a target, used before the ranks are started.
namespace target {

/// The names that `--communicator` accepts: "auto, shm, tcp or mpi".
extern const char *const communicatorNames;
/// Whether ranks compute on threads, whose number `--threads` sets.
extern const bool computesOnThreads;
/// Options of a job with the transport `communicator`. Error (bad command line): a name that this
/// target does not support.
JobOptions jobOptions(const Program &program, const std::string &communicator);
/// Error (no device): fewer devices than the job's ranks on this machine need.
void requireDevices(const JobOptions &options, int ranks);
/// The libraries that compute and communicate, with their versions: "oneDNN 2.6.3".
std::string libraries();
/// The device of a rank, its arena zeroed.
std::unique_ptr<Device> open(const Program &program, Job &job);

} // namespace target

/// Calls `visit(segment, wait)` for each run of a segment of `plan`, in order; `wait`: all work
/// enqueued before must be done first.
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

/// True if `plan` is one run of one segment.
inline bool isOneSegment(const ExecutionPlan &plan) {
  return plan.runs.size() == 1 && plan.runs[0].times == 1;
}

/// True if no work of `plan` can still run after it.
inline bool endsJoined(const Program &program, const ExecutionPlan &plan) {
  if (plan.runs.empty())
    return true;
  const SegmentRuns &last = plan.runs[plan.runs.size() - 1];
  return program.segments[static_cast<std::size_t>(last.segment)].joined;
}

/// The most outputs of a plan of the program.
std::size_t mostOutputs(const Program &program);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_EXECUTION_DEVICE_H
