#include "runtime/execution/cuda/Context.h"
#include "runtime/comm/cuda/LoopbackCollectives.h"
#include "runtime/comm/cuda/Monitor.h"
#include "runtime/comm/cuda/NcclCollectives.h"
#include "runtime/device/IndexRange.h"
#include "runtime/execution/Device.h"
#include "runtime/execution/cuda/AttentionChoice.h"
#include "runtime/execution/cuda/InputStaging.h"
#include "runtime/execution/cuda/ProductTuner.h"
#include "runtime/kernels/cuda/CudnnAttention.h"
#include "runtime/kernels/cuda/Matmul.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

namespace fsdp::rt {

using namespace base;

namespace {

std::vector<cudaEvent_t *> eventsOf(HostCopies &copies) {
  std::vector<cudaEvent_t *> events{&copies.toHost};
  for (cudaEvent_t &event : copies.fromHost)
    events.push_back(&event);
  return events;
}

} // namespace

Context::Context(Job &job, const Program &program)
    : DevicePeer(job.peer(), job.mesh(), program.communicators, program.roleAxes,
                 job.communicator(static_cast<int>(program.communicators.size()))),
      job_(job), program_(program), workspaces_(program.streams.size()),
      staging_(std::make_unique<InputStaging>(program)), comms_(program.communicators.size()),
      streamOf_(program.communicators.size(), -1) {
  if (job.options().linkBandwidth > 0)
    throw Error("FSDP_LINK_BANDWIDTH limits the links of programs for CPUs only: unset it").byAll();
  ranges_ = ProfilerRanges::make();
  observer_ = ranges_.get();
  if (sharesDevice())
    collectives_ = std::make_unique<LoopbackCollectives>(*this);
  else
    collectives_ = std::make_unique<NcclCollectives>(*this);
  int device = 0;
  FSDP_CHECK(*this, cudaGetDevice(&device));
  monitor_ = std::make_unique<Monitor>(*collectives_, job.failure(), rank(), device);
  world().keepIn(job.hostFlight());
  std::size_t total = 0;
  FSDP_CHECK(*this, cudaMemGetInfo(&freeAtStart_, &total));
  at("join all ranks");
  collectives_->connect();
  makeTuner(device);
  at("allocate the arena");
  requireMemory(device);
  base_ = collectives_->allocateArena(std::max<std::size_t>(program.arenaBytes, 1));
  FSDP_CHECK(*this, cudaMemset(base_, 0, std::max<std::size_t>(program.arenaBytes, 1)));

  at("make the streams");
  // Communication has the higher priority, as computation waits for it and it is shorter.
  int least = 0, greatest = 0;
  FSDP_CHECK(*this, cudaDeviceGetStreamPriorityRange(&least, &greatest));
  for (const char *name : program.streams) {
    const bool computes = std::strcmp(name, "compute") == 0;
    streams_.emplace_back();
    FSDP_CHECK(*this, cudaStreamCreateWithPriority(&streams_.back(), cudaStreamNonBlocking,
                                                   computes ? least : greatest));
    ends_.emplace_back();
    FSDP_CHECK(*this, cudaEventCreateWithFlags(&ends_.back(), cudaEventDisableTiming));
  }
  FSDP_CHECK(*this, cudaStreamCreateWithFlags(&control_, cudaStreamNonBlocking));
  for (int event = 0; event < program.events; ++event) {
    events_.emplace_back();
    FSDP_CHECK(*this, cudaEventCreateWithFlags(&events_.back(), cudaEventDisableTiming));
  }
  const std::size_t outputs = std::max<std::size_t>(mostOutputs(program), 1);
  FSDP_CHECK(*this, cudaHostAlloc(&outputs_, outputs * sizeof(float), cudaHostAllocDefault));
  FSDP_CHECK(*this, cudaHostAlloc(&sums_, outputs * sizeof(WeightedSum), cudaHostAllocDefault));
  FSDP_CHECK(*this, cudaHostAlloc(&stepBuffer_, sizeof(StepBuffer), cudaHostAllocDefault));
  *stepBuffer_ = StepBuffer{};
  FSDP_CHECK(*this, cudaHostAlloc(&fault_, sizeof(BoundsError), cudaHostAllocDefault));
  FSDP_CHECK(*this, cudaMalloc(&faultThere_, sizeof(BoundsError)));
  FSDP_CHECK(*this, cudaMemset(faultThere_, 0, sizeof(BoundsError)));
  for (StreamWorkspace &workspace : workspaces_) {
    workspace.fault = faultThere_;
    for (cudaEvent_t *event : eventsOf(workspace.copies))
      FSDP_CHECK(*this, cudaEventCreateWithFlags(event, cudaEventDisableTiming));
  }
  at("prepare attention");
  prepareCudnn(device);
  at("connect the communicators");
  collectives_->setUp(control_);
  FSDP_CHECK(*this, cudaDeviceSynchronize());
}

Context::~Context() {
  monitor_.reset();
  // After an exception the device may wait for ranks that will not join, and freeing would wait for
  // the device, so the memory is freed with the process. Nothing is aborted before the job's
  // failure is known, or the other ranks would report the effect instead of the cause.
  if (std::uncaught_exceptions() > 0 || job_.failure().raised()) {
    static_cast<void>(staging_.release());
    static_cast<void>(collectives_.release());
    new std::deque<StreamWorkspace>(std::move(workspaces_));
    new std::shared_ptr<Blas>(std::move(blas_));
    new std::shared_ptr<CudnnAttention>(std::move(cudnn_));
    return;
  }
  cudaDeviceSynchronize();
  staging_.reset();
  collectives_.reset(); // frees the arena
  for (cudaEvent_t event : events_)
    cudaEventDestroy(event);
  for (cudaEvent_t event : ends_)
    cudaEventDestroy(event);
  for (StreamWorkspace &workspace : workspaces_)
    for (cudaEvent_t *event : eventsOf(workspace.copies))
      cudaEventDestroy(*event);
  for (cudaStream_t stream : streams_)
    cudaStreamDestroy(stream);
  cudaStreamDestroy(control_);
  cudaFreeHost(outputs_);
  cudaFreeHost(sums_);
  cudaFreeHost(stepBuffer_);
  cudaFreeHost(fault_);
  cudaFree(faultThere_);
}

Comm Context::comm(int index, int stream) {
  const auto i = static_cast<std::size_t>(index);
  if (streamOf_[i] != stream) {
    if (streamOf_[i] >= 0)
      throw Error(format("communicator '%s' got the streams '%s' and '%s', expected one",
                         program_.communicators[i].name,
                         program_.streams[static_cast<std::size_t>(streamOf_[i])],
                         program_.streams[static_cast<std::size_t>(stream)]));
    comms_[i] = &collectives_->communicator(index);
    streamOf_[i] = stream;
  }
  return Comm{comms_[i]};
}

Blas &Context::blas() {
  if (!blas_)
    blas_ = std::make_shared<Blas>(tuner_.get());
  return *blas_;
}

//===----------------------------------------------------------------------===//
// Attention by cuDNN
//===----------------------------------------------------------------------===//

/// Looks through all segments for attention, to find shapes that cuDNN does not compute, and to
/// allocate the scratch memory, before anything is enqueued.
void Context::prepareCudnn(int device) {
  if (chooseCudnn(world()) == 0)
    return;
  int major = 0, minor = 0;
  FSDP_CHECK(*this, cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  FSDP_CHECK(*this, cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  cudnn_ = std::make_shared<CudnnAttention>(device, major, minor);
  attentionBytes_.assign(streams_.size(), 0);
  isPreparing_ = true;
  for (const Segment &segment : program_.segments)
    segment.run(*this);
  isPreparing_ = false;
  std::size_t needed = 0, free = 0, total = 0;
  for (std::size_t bytes : attentionBytes_)
    needed += bytes;
  FSDP_CHECK(*this, cudaMemGetInfo(&free, &total));
  const std::size_t ranks = sharesDevice() ? static_cast<std::size_t>(worldSize()) : 1;
  if (sharesDevice())
    world().barrier(); // before another rank allocates its own
  if (ranks * needed > free)
    throw Error(
        format("cuDNN's attention needs %zu bytes of scratch memory%s, got %zu free bytes "
               "beside the arena: compile with a smaller batch or more ranks, install cuDNN "
               "9.25 or later, whose gradient needs less, or unset FSDP_ATTENTION",
               ranks * needed, ranks > 1 ? format(" for %zu ranks", ranks).c_str() : "", free))
        .byAll();
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    void *memory = nullptr;
    FSDP_CHECK(*this, workspaces_[i].reserve(attentionBytes_[i], memory));
  }
}

void Context::prepareAttention(int stream, const char *action, const AttentionShape &shape,
                               bool isGradient) {
  try {
    std::size_t &bytes = attentionBytes_[static_cast<std::size_t>(stream)];
    bytes = std::max(bytes, cudnn_->prepare(shape, isGradient));
  } catch (const Error &error) {
    throw error.at(rank(), action);
  }
}

void Context::prepareOther(const char *action, const char *kind) const {
  for (const char *own : {"attention", "attention_grad", "attention_bias_grad"})
    if (std::strcmp(kind, own) == 0)
      throw Error(
          "FSDP_ATTENTION=cudnn got attention that is not passed to cuDNN: it is in f32, of "
          "documents or with a bias; unset it to use this program's own kernels")
          .at(rank(), action);
}

AttentionLibrary Context::attentionLibrary() const {
  if (!cudnn_)
    return {};
  AttentionLibrary library{"cuDNN " + cudnn_->version(), ""};
  for (std::size_t i = 0; i < attentionBytes_.size(); ++i)
    if (attentionBytes_[i])
      library.workspace +=
          format("%s%zu bytes on stream '%s'", library.workspace.empty() ? "" : ", ",
                 attentionBytes_[i], program_.streams[i]);
  return library;
}

const void *Context::staged(int input) {
  const void *address = staging_->next(input);
  if (capture_)
    capture_->inputs.push_back({input, address});
  return address;
}

void Context::observe(ActionObserver *observer) {
  if (ranges_)
    ranges_->setNext(observer);
  else
    observer_ = observer;
}

//===----------------------------------------------------------------------===//
// Settings of the environment
//===----------------------------------------------------------------------===//

bool Context::isSetOnAll(const char *setting, bool mine) const {
  std::int32_t ways[2] = {mine, !mine};
  if (worldSize() > 1)
    world().allReduce(ways, ways, 2, ReduceOp::Max);
  if (ways[0] && ways[1])
    throw Error(
        format("%s=1 is set on some ranks and not on others: set it alike on all ranks", setting))
        .byAll();
  return mine;
}

/// Throws if the environment has FSDP_TUNE=1 and the ranks have no common choices.
void Context::makeTuner(int device) {
  if (!isSetOnAll("FSDP_TUNE", ProductTuner::isAsked()))
    return;
  if (hasRoles())
    throw Error(
        "FSDP_TUNE=1 chooses algorithms for the products that all ranks have, but the ranks "
        "of this program run different programs, the stages of a pipeline: unset it",
        kExitBadCommandLine)
        .byAll();
  cudaDeviceProp properties;
  FSDP_CHECK(*this, cudaGetDeviceProperties(&properties, device));
  const std::string machine = format("%s (%d.%d), cuBLASLt %zu", properties.name, properties.major,
                                     properties.minor, cublasLtGetVersion());
  char first[512] = {};
  machine.copy(first, sizeof first - 1);
  world().broadcast(first, sizeof first, 0);
  if (machine != first)
    throw Error(format("FSDP_TUNE=1 needs the same GPU and cuBLASLt on all ranks: got %s, and on "
                       "rank 0 %s: unset it",
                       machine.c_str(), first))
        .at(rank(), action());
  tuner_ = std::make_unique<ProductTuner>(
      ProductTuner::Setting{world().rank(), machine, ProductTuner::folderOfEnvironment(),
                            [this](int &number) { world().broadcast(&number, sizeof number, 0); }});
}

ProductChoices Context::productChoices() const {
  return tuner_ ? tuner_->choices() : ProductChoices();
}

void Context::adoptProductChoices(const ProductChoices &stored) {
  if (tuner_)
    tuner_->adopt(stored);
}

void Context::begin(const ExecutionPlan &plan, InputSource *source) {
  job_.failure().check();
  if (hasRoles())
    heldReceives().setFirstRun(begun_.insert(&plan).second);
  staging_->begin(plan, source);
  if (!staging_->isFetched())
    awaitCopiesFrom(staging_->place());
  for (StreamWorkspace &workspace : workspaces_)
    workspace.copies.place = staging_->place();
}

/// Waits until the batches of the host at `place` (see HostCopies) may be replaced.
void Context::awaitCopiesFrom(int place) {
  for (const StreamWorkspace &workspace : workspaces_)
    FSDP_CHECK(*this, cudaEventSynchronize(workspace.copies.fromHost[place]));
}

void Context::stageAhead() {
  at("stage inputs");
  awaitCopiesFrom(staging_->nextPlace());
  staging_->fetchAhead();
}

void Context::synchronize() {
  heldReceives().releaseAll();
  at("wait for the device");
  graphOutputs_.clear(); // streams come past them
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    FSDP_CHECK(*this, cudaEventRecord(ends_[i], streams_[i]));
    FSDP_CHECK(*this, cudaStreamWaitEvent(control_, ends_[i], 0));
  }
  if (program_.stepState.count)
    FSDP_CHECK(*this, cudaMemcpyAsync(stepBuffer_, base_ + program_.stepState.offset,
                                      sizeof(StepBuffer), cudaMemcpyDeviceToHost, control_));
  awaitFault();
}

void Context::awaitOutputs() {
  at("wait for the outputs");
  for (const StreamWorkspace &workspace : workspaces_)
    FSDP_CHECK(*this, cudaStreamWaitEvent(control_, workspace.copies.toHost, 0));
  for (cudaEvent_t output : std::exchange(graphOutputs_, {}))
    FSDP_CHECK(*this, cudaStreamWaitEvent(control_, output, 0));
  awaitFault();
}

/// Waits for the control stream, and checks whether a launch before that found an index out of
/// range.
void Context::awaitFault() {
  FSDP_CHECK(*this, cudaMemcpyAsync(fault_, faultThere_, sizeof(BoundsError),
                                    cudaMemcpyDeviceToHost, control_));
  FSDP_CHECK(*this, cudaStreamSynchronize(control_));
  job_.failure().check();
  if (fault_->count == 0)
    return;
  if (fault_->kind == BoundsError::Label)
    throw labelOutOfRange(fault_->place, fault_->got, fault_->limit).at(rank(), "cross_entropy");
  if (fault_->kind == BoundsError::Index)
    throw indexOutOfRange(fault_->place, fault_->got, fault_->limit).at(rank(), "shard_indices");
  throw idOutOfRange(fault_->place, fault_->got, fault_->limit).at(rank(), "embedding");
}

void Context::traceNext(const char *name) { observer_->next(name); }
void Context::traceStream(int index) const { observer_->on(index); }
void Context::traceBytes(std::size_t bytes) { observer_->touch(bytes); }

std::optional<std::size_t> Context::libraryBytes() const {
  std::size_t free = 0, total = 0;
  if (sharesDevice() || cudaMemGetInfo(&free, &total) != cudaSuccess)
    return std::nullopt;
  const std::size_t own = program_.arenaBytes + workspaceBytes() + free;
  return freeAtStart_ > own ? freeAtStart_ - own : 0;
}

/// Throws if the arenas of the ranks that share this device do not fit into its free memory.
void Context::requireMemory(int device) {
  std::size_t free = 0, total = 0;
  FSDP_CHECK(*this, cudaMemGetInfo(&free, &total));
  const std::size_t ranks = sharesDevice() ? static_cast<std::size_t>(worldSize()) : 1;
  const std::size_t bytes = ranks * program_.arenaBytes;
  if (sharesDevice())
    world().barrier(); // before another rank allocates its arena
  if (bytes <= free)
    return;
  const std::string whose =
      ranks > 1 ? format("the arenas of %zu ranks", ranks) : "the arena of a rank";
  constexpr double gib = 1 << 30;
  throw Error(format("%s, %zu bytes (%.3g GiB), %s not fit in the %zu bytes (%.3g GiB) that are "
                     "free of the %.3g GiB of GPU %d; "
                     "end other programs on the GPU (nvidia-smi lists them), or compile with more "
                     "ranks, a smaller batch or "
                     "--remat",
                     whose.c_str(), bytes, static_cast<double>(bytes) / gib,
                     ranks > 1 ? "do" : "does", free, static_cast<double>(free) / gib,
                     static_cast<double>(total) / gib, device))
      .byAll();
}

std::string Context::describeCollectives() const { return collectives_->describe(); }

std::size_t Context::workspaceBytes() const {
  std::size_t bytes = collectives_->workspaceBytes();
  for (const StreamWorkspace &workspace : workspaces_)
    bytes += workspace.bytes();
  return bytes;
}

//===----------------------------------------------------------------------===//
// Failures
//===----------------------------------------------------------------------===//

void Context::fail(cublasStatus_t status, const char *file, int line) const {
  job_.failure().check();
  const char *slash = std::strrchr(file, '/');
  throw Error(format("cuBLASLt reports %s at %s:%d", cublasLtGetStatusName(status),
                     slash ? slash + 1 : file, line),
              kExitFailure, file, line)
      .at(rank(), action());
}

} // namespace fsdp::rt
