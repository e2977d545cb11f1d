//===- Context.h - the context of a CUDA program --------------------------===//
//
// One per rank: the arena on the device, streams, events, communicators, and the pinned host memory
// for inputs and outputs.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_EXECUTION_CUDA_CONTEXT_H
#define FSDP_RUNTIME_EXECUTION_CUDA_CONTEXT_H

#include "runtime/comm/cuda/Comm.h"
#include "runtime/comm/cuda/DevicePeer.h"
#include "runtime/device/InputSource.h"
#include "runtime/device/ProductChoices.h"
#include "runtime/device/cuda/LaunchWork.h"
#include "runtime/device/cuda/StreamWorkspace.h"
#include "runtime/execution/AttentionLibrary.h"
#include "runtime/execution/cuda/ActionObserver.h"
#include "runtime/execution/cuda/ProfilerRanges.h"
#include "runtime/execution/cuda/SegmentCapture.h"
#include "runtime/job/Job.h"
#include "runtime/program/ArenaSpan.h"
#include "runtime/program/KernelArguments.h"
#include "runtime/program/Program.h"

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace fsdp::rt {

class Blas;
class Collectives;
class CudnnAttention;
class InputStaging;
class Monitor;
class ProductTuner;

/// One rank on its device. Functions are called from the rank's host thread unless documented
/// otherwise.
class Context : public DevicePeer {
public:
  /// Allocates the arena (zeroed), streams and events on the current device. Errors: no device, no
  /// memory.
  Context(Job &job, const Program &program);
  ~Context();
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;

  Job &job() const { return job_; }
  /// Address of a slice that a launch reads or writes; counts its bytes as touched.
  std::byte *touch(ByteRange slice) {
    const std::size_t end = slice.offset + slice.bytes;
    if (slice.bytes && end > peakBytes_)
      peakBytes_ = end;
    if (__builtin_expect(observer_ != nullptr, 0))
      traceBytes(slice.bytes);
    return base_ + slice.offset;
  }

  /// The stream with its scratch memory.
  WorkStream stream(int index) const {
    if (__builtin_expect(observer_ != nullptr, 0))
      traceStream(index);
    return {streams_[index], &workspaces_[index]};
  }
  cudaEvent_t event(int index) const { return events_[index]; }
  /// Communicator `index` for `stream`: each is used by one stream. Where all ranks issue the same
  /// program, the first call creates it, together with the other ranks.
  Comm comm(int index, int stream);
  /// cuBLASLt on this device, created by the first call (Matmul.cpp).
  Blas &blas();
  /// The algorithms that were chosen by time; see ProductTuner.
  ProductChoices productChoices() const;
  void adoptProductChoices(const ProductChoices &stored);

  /// The cuDNN that computes attention in bf16; null: the program's own kernels do.
  CudnnAttention *cudnn() const { return cudnn_.get(); }
  /// Segments are only looked through for attention: their actions enqueue nothing.
  bool isPreparing() const { return isPreparing_; }
  /// Prepares the kernel of an action that is attention by cuDNN.
  void prepareAttention(int stream, const char *action, const AttentionShape &shape,
                        bool isGradient);
  /// Any other action while preparing. Error: attention in a form that is not passed to cuDNN.
  void prepareOther(const char *action, const char *kind) const;
  /// "cuDNN 9.28.0", and its scratch memory: "12345 bytes on stream 'compute'"; both empty without
  /// cuDNN.
  AttentionLibrary attentionLibrary() const;

  /// Pinned host memory for output `slot` of the plan, read after awaitOutputs().
  float *output(int slot) { return outputs_ + slot; }
  const float *outputs() const { return outputs_; }
  /// Likewise for a sum and its weight.
  double *sum(int slot) { return &sums_[slot].sum; }
  double *weight(int slot) { return &sums_[slot].weight; }
  const WeightedSum *sums() const { return sums_; }
  /// Pinned host memory with this rank's part of the next (micro)batch of input `input`.
  const void *staged(int input);

  /// Before the actions of a plan, whose inputs are read from `source`.
  void begin(const ExecutionPlan &plan, InputSource *source);
  /// Whether a segment is captured that has not recorded `event` so far. The event then denotes
  /// work that is done before the graph starts.
  bool isBeforeCapture(int event) const { return capture_ && !capture_->recorded.count(event); }
  /// The program has recorded `event`.
  void noteRecord(int event) {
    if (capture_)
      capture_->recorded.insert(event);
  }
  /// `stream` has copied an output.
  cudaError_t noteOutput(cudaStream_t stream) {
    return capture_ ? capture_->noteOutput(stream) : cudaSuccess;
  }
  /// Whether a setting of the environment, which must be the same on all ranks, is on. Every rank
  /// calls it.
  bool isSetOnAll(const char *setting, bool mine) const;
  /// Whether all ranks are on one device.
  bool sharesDevice() const { return job_.options().transport == Transport::Loopback; }
  /// Fetches the inputs for the next run of the current plan, while the device works.
  void stageAhead();

  /// Sets the current action, for errors. `name` is a literal.
  Context &at(const char *name) {
    if (__builtin_expect(observer_ != nullptr, 0))
      traceNext(name);
    action_.store(name, std::memory_order_relaxed);
    return *this;
  }
  using DevicePeer::check;
  void check(cublasStatus_t status, const char *file, int line) const {
    if (__builtin_expect(status != CUBLAS_STATUS_SUCCESS, 0))
      fail(status, file, line);
  }

  std::byte *base() const { return base_; }
  int streamCount() const { return static_cast<int>(streams_.size()); }
  /// The tables of the program.
  const Program &program() const { return program_; }
  /// Waits for every stream. Throws the error of the action that failed or hangs, or that found a
  /// label or an id out of range, and `Aborted`
  /// when the job has failed elsewhere.
  void synchronize();
  /// Waits for the copies to the host that are enqueued. Throws as synchronize(), as far as
  /// launches before those copies have failed.
  void awaitOutputs();
  /// The step state, and the data after it, as of the last synchronize().
  const StepBuffer &stepBuffer() const { return *stepBuffer_; }
  /// End of the highest range that any action so far has touched, in bytes.
  std::size_t peakBytes() const { return peakBytes_; }
  /// Bytes of device memory outside the arena: scratch memory of libraries and collectives.
  std::size_t workspaceBytes() const;
  /// Bytes of device memory that this process uses besides its arena and its scratch memory: by
  /// CUDA, NCCL, cuBLASLt. Nothing if other ranks share the device. Includes allocations of other
  /// processes since the start.
  std::optional<std::size_t> libraryBytes() const;
  /// Describes how collectives are performed; may be empty.
  std::string describeCollectives() const;
  /// Calls `observer`, which measures times, for every action from now on; null: none.
  void observe(ActionObserver *observer);
  /// Names of runs, segments and actions for a profiler; null: there is none.
  ProfilerRanges *ranges() const { return ranges_.get(); }

  /// See ShardOf. Set before the first plan.
  const UpdateSetting *updateSettings = nullptr;

private:
  friend class SegmentGraphs;
  void makeTuner(int device);
  void requireMemory(int device);
  void prepareCudnn(int device);
  void awaitFault();
  void awaitCopiesFrom(int place);
  void traceNext(const char *name);
  void traceStream(int index) const;
  void traceBytes(std::size_t bytes);
  [[noreturn]] void fail(cublasStatus_t status, const char *file, int line) const;

  Job &job_;
  const Program &program_;
  std::byte *base_ = nullptr;
  std::size_t peakBytes_ = 0, freeAtStart_ = 0;
  ActionObserver *observer_ = nullptr;
  std::unique_ptr<ProfilerRanges> ranges_;
  std::vector<cudaStream_t> streams_;
  std::vector<cudaEvent_t> events_, ends_; ///< the program's; one for the end of each stream
  cudaStream_t control_ = nullptr;         ///< for the waits of the host
  float *outputs_ = nullptr;
  WeightedSum *sums_ = nullptr;
  StepBuffer *stepBuffer_ = nullptr;
  BoundsError *faultThere_ = nullptr,
              *fault_ = nullptr;                   ///< on the device; as of the last synchronize()
  mutable std::deque<StreamWorkspace> workspaces_; ///< one for each stream
  std::unique_ptr<ProductTuner> tuner_;            ///< null: cuBLASLt's first algorithms
  std::shared_ptr<Blas> blas_;
  std::shared_ptr<CudnnAttention> cudnn_;
  bool isPreparing_ = false;
  std::vector<std::size_t> attentionBytes_; ///< scratch memory of cuDNN's attention, by stream
  std::unique_ptr<InputStaging> staging_;
  std::unique_ptr<Collectives> collectives_;
  SegmentCapture *capture_ = nullptr;      ///< the one under way, or null
  std::vector<cudaEvent_t> graphOutputs_;  ///< after outputs of graphs for which nothing waits yet
  std::vector<CollectiveBackend *> comms_; ///< those created so far
  std::vector<int> streamOf_;              ///< the stream of each communicator
  std::set<const ExecutionPlan *> begun_;  ///< plans that have run
  std::unique_ptr<Monitor> monitor_;       ///< its thread ends before the collectives that it uses
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_EXECUTION_CUDA_CONTEXT_H
