//===- CudaDevice.cpp - the device of CUDA programs -----------------------===//

#include "runtime/execution/Device.h"
#include "runtime/execution/cuda/EventTrace.h"
#include "runtime/execution/cuda/SegmentGraphs.h"
#include "runtime/job/Launcher.h"
#include "runtime/kernels/cuda/Kernels.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <cublasLt.h>
#include <optional>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace fsdp::rt {

using namespace base;

namespace {

//===----------------------------------------------------------------------===//
// Available devices
//===----------------------------------------------------------------------===//

/// The number of GPUs that this process can use, or why it can use none.
struct Found {
  int devices = 0;
  cudaError_t status = cudaSuccess;
};

Found countDevices() {
  Found found;
  found.status = cudaGetDeviceCount(&found.devices);
  if (found.status != cudaSuccess)
    found.devices = 0;
  return found;
}

/// Counts in a child process, as a process that has called CUDA must not fork the ranks.
Found countDevicesApart() {
  int ends[2];
  const pid_t child = pipe(ends) == 0 ? fork() : -1;
  if (child < 0)
    throw Error(format("cannot start a process that counts the GPUs: %s", std::strerror(errno)));
  Found found;
  if (child == 0) {
    found = countDevices();
    _exit(write(ends[1], &found, sizeof found) == sizeof found ? 0 : 1);
  }
  close(ends[1]);
  const bool told = read(ends[0], &found, sizeof found) == sizeof found;
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!told)
    throw Error("the process that counts the GPUs died before it reported their number",
                kExitNoDevice);
  return found;
}

[[noreturn]] void noDevice(cudaError_t status) {
  throw Error(format("no GPU is usable: %s (%s); this program runs on NVIDIA GPUs only: check "
                     "nvidia-smi, or compile the model with --target=cpu",
                     cudaGetErrorString(status == cudaSuccess ? cudaErrorNoDevice : status),
                     cudaGetErrorName(status == cudaSuccess ? cudaErrorNoDevice : status)),
              kExitNoDevice);
}

/// Throws if this program has no kernels for the calling thread's device.
void requireKernels(int device) {
  const cudaError_t status = find_kernels();
  if (status == cudaSuccess)
    return;
  if (status != cudaErrorNoKernelImageForDevice && status != cudaErrorUnsupportedPtxVersion)
    noDevice(status);
  cudaDeviceProp properties;
  if (cudaError_t unknown = cudaGetDeviceProperties(&properties, device))
    noDevice(unknown);
  const int capability = properties.major * 10 + properties.minor;
  throw Error(format("this program has no kernels for GPU %d, '%s' of compute capability %d.%d "
                     "(%s): compile the model with --cuda-arch=%d%s, or for several GPUs as in "
                     "--cuda-arch=%d,90a",
                     device, properties.name, properties.major, properties.minor,
                     cudaGetErrorName(status), capability, capability == 90 ? "a" : "",
                     capability == 90 ? 80 : capability),
              kExitNoDevice);
}

/// The GPU of a rank. A launcher may make only its own GPU visible to each process.
int deviceOf(const Job &job, int devices) {
  if (job.options().transport == Transport::Loopback)
    return 0;
  if (devices == 1 && std::getenv("CUDA_VISIBLE_DEVICES"))
    return 0; // NCCL refuses two ranks on one device
  return job.localRank();
}

//===----------------------------------------------------------------------===//
// The device of a rank
//===----------------------------------------------------------------------===//

class CudaDevice final : public Device {
public:
  CudaDevice(const Program &program, Job &job)
      : Device(job), program(program), c(taken(job), program), graphs(SegmentGraphs::make(c)) {}

  ~CudaDevice() override {
    if (copies)
      cudaStreamDestroy(copies);
  }

  Communicator &world() override { return c.world(); }

  void write(const Buffer &buffer, const std::function<void(float *)> &fill) override {
    finish();
    staging.resize(buffer.count);
    fill(staging.data());
    if (buffer.dtype == DType::BF16) // in place, as element i is written after it is read
      std::copy(staging.begin(), staging.end(), reinterpret_cast<bf16 *>(staging.data()));
    c.at("write to the arena");
    FSDP_CHECK(c, cudaMemcpy(c.base() + buffer.offset, staging.data(),
                             buffer.count * sizeInBytes(buffer.dtype), cudaMemcpyHostToDevice));
    arrive();
  }
  const float *read(const Buffer &buffer) override {
    finish();
    staging.resize(buffer.count);
    c.at("read from the arena");
    FSDP_CHECK(c, cudaMemcpy(staging.data(), c.base() + buffer.offset, buffer.count * sizeof(float),
                             cudaMemcpyDeviceToHost));
    return staging.data();
  }
  std::shared_ptr<float> hostMemory(std::size_t count) override {
    void *memory = nullptr;
    c.at("pin memory of the host");
    FSDP_CHECK(c, cudaHostAlloc(&memory, std::max<std::size_t>(count, 1) * sizeof(float),
                                cudaHostAllocDefault));
    return {static_cast<float *>(memory), [](float *pinned) { cudaFreeHost(pinned); }};
  }
  void copyToHost(const Buffer &buffer, std::size_t first, std::size_t count, float *to) override {
    finish();
    c.at("copy to the host");
    if (!copies)
      FSDP_CHECK(c, cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
    FSDP_CHECK(c, cudaMemcpyAsync(to, c.base() + buffer.offset + first * sizeof(float),
                                  count * sizeof(float), cudaMemcpyDeviceToHost, copies));
  }
  void awaitCopies() override {
    if (copies)
      FSDP_CHECK(c, cudaStreamSynchronize(copies));
  }
  void setState(const StepState &state) override {
    finish();
    staging = {}; // not needed after the parameters are written
    c.at("write the step state");
    const StepBuffer start{state, {}};
    FSDP_CHECK(c, cudaMemcpy(c.base() + program.stepState.offset, &start, sizeof start,
                             cudaMemcpyHostToDevice));
    arrive();
    samplesSet = state.samples;
    limitsSet = {state.lossLimit, state.normLimit};
  }
  void setUpdates(std::vector<UpdateSetting> settings) override {
    updates = std::move(settings);
    c.updateSettings = updates.empty() ? nullptr : updates.data();
  }
  void setSamples(std::int64_t samples) override {
    if (samples == samplesSet)
      return;
    finish();
    c.at("write the number of samples");
    FSDP_CHECK(c, cudaMemcpy(c.base() + program.stepState.offset + offsetof(StepState, samples),
                             &samples, sizeof samples, cudaMemcpyHostToDevice));
    arrive();
    samplesSet = samples;
  }
  void setLimits(float loss, float norm) override {
    static_assert(offsetof(StepState, normLimit) == offsetof(StepState, lossLimit) + sizeof(float),
                  "both are written at once");
    if (limitsSet == std::array{loss, norm})
      return;
    finish();
    c.at("write the limits of loss and norm");
    limitsSet = {loss, norm};
    FSDP_CHECK(c, cudaMemcpy(c.base() + program.stepState.offset + offsetof(StepState, lossLimit),
                             limitsSet.data(), sizeof limitsSet, cudaMemcpyHostToDevice));
    arrive();
  }
  const StepState &state() override {
    finish();
    return c.stepBuffer().state;
  }
  int firstBad() override {
    finish();
    return c.stepBuffer().bad.first();
  }

  void run(const ExecutionPlan &plan, InputSource *source, bool prefetchNext) override {
    guarded([&] {
      if (trace)
        trace->begin(marked);
      if (c.ranges())
        c.ranges()->beginRun(marked);
      c.begin(plan, source);
      if (graphs)
        graphs->begin(plan);
      std::int64_t number = 0;
      forEachSegment(program, plan, [&](const Segment &segment, bool wait) {
        if (wait)
          c.synchronize();
        if (trace)
          trace->segment(segment, isOneSegment(plan) ? Mark() : Mark{segment.name, ++number});
        if (c.ranges())
          c.ranges()->beginSegment(segment.name);
        graphs ? graphs->run(segment, trace.has_value()) : segment.run(c);
        if (c.ranges())
          c.ranges()->endSegment();
      });
      if (trace)
        trace->enqueued();
      if (prefetchNext)
        c.stageAhead();
      // Traces begin with idle streams.
      underWay = !trace && !endsJoined(program, plan);
      underWay ? c.awaitOutputs() : c.synchronize();
      if (trace)
        trace->end();
      if (c.ranges())
        c.ranges()->endRun();
    });
  }
  void finish() override {
    if (underWay)
      guarded([&] { c.synchronize(); });
    underWay = false;
  }
  const float *outputs() const override { return c.outputs(); }
  const WeightedSum *sums() const override { return c.sums(); }

  void startTrace() override {
    finish();
    trace.emplace(c);
  }
  void writeTrace(const OutputPath &path) override { trace->write(path); }

  std::size_t peakBytes() const override { return c.peakBytes(); }
  std::size_t workspaceBytes() const override { return c.workspaceBytes(); }
  std::optional<std::size_t> libraryBytes() const override { return c.libraryBytes(); }
  std::string collectives() const override { return c.describeCollectives(); }
  AttentionLibrary attentionLibrary() const override { return c.attentionLibrary(); }
  ProductChoices productChoices() const override { return c.productChoices(); }
  void adoptProductChoices(const ProductChoices &stored) override { c.adoptProductChoices(stored); }

private:
  /// Performs `action`; errors are attributed to the action enqueued last.
  template <class Action> void guarded(Action action) {
    try {
      action();
    } catch (const Aborted &) {
      throw;
    } catch (const Error &error) {
      throw error.at(rank(), c.action());
    }
  }

  /// A copy from pageable memory returns when the memory has been read. This waits until the data
  /// is on the device, as other streams do not wait for the default stream.
  void arrive() { FSDP_CHECK(c, cudaStreamSynchronize(nullptr)); }

  /// Selects the GPU of this thread; returns the job.
  static Job &taken(Job &job) {
    const Found found = countDevices();
    if (found.devices == 0)
      noDevice(found.status);
    const int device = deviceOf(job, found.devices);
    const char *shown = std::getenv("CUDA_VISIBLE_DEVICES");
    if (device >= found.devices)
      throw Error(
          format("got %d GPU(s)%s for local rank %d, expected at least %d: one for each rank%s",
                 found.devices,
                 shown ? format(" by CUDA_VISIBLE_DEVICES=%s", shown).c_str() : " on this machine",
                 device, device + 1,
                 shown ? "; show each process the GPUs of all ranks of its machine, or its own one"
                       : ""),
          kExitNoDevice);
    if (cudaError_t status = cudaSetDevice(device))
      noDevice(status);
    requireKernels(device);
    return job;
  }

  const Program &program;
  cudaStream_t copies = nullptr;       ///< for copyToHost(), created by the first call
  std::vector<float> staging;          ///< host memory for writes and reads
  std::int64_t samplesSet = 0;         ///< the value in the arena's step state
  std::array<float, 2> limitsSet = {}; ///< likewise, of loss and norm
  bool underWay = false;               ///< enqueued work may still run
  std::vector<UpdateSetting> updates;  ///< read when updates are enqueued
  Context c;
  std::unique_ptr<SegmentGraphs> graphs; ///< null: segments are enqueued action by action
  std::optional<EventTrace> trace;
};

} // namespace

namespace target {

const char *const communicatorNames = "auto, nccl or loopback";
const bool computesOnThreads = false;

JobOptions jobOptions(const Program &program, const std::string &communicator) {
  JobOptions options;
  if (communicator == "auto" || communicator == "nccl")
    options.transport = Transport::Nccl;
  else if (communicator == "loopback")
    options.transport = Transport::Loopback;
  else
    throw Error(format("option '--communicator' got '%s', which only programs compiled with "
                       "--target=cpu have; expected %s",
                       communicator.c_str(), communicatorNames),
                kExitBadCommandLine);
  // The first launch of a kernel that is loaded then may wait for the device, which may wait for a
  // message of a rank that waits for this host.
  if (program.roleAxes.count)
    setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/0);
  options.program = program.name;
  options.communicators = program.communicators; // the arena is not in host memory
  return options;
}

void requireDevices(const JobOptions &options, int ranks) {
  // Streams that share a hardware queue wait for each other. CUDA reads this at its first call; the
  // default is 8 queues, the maximum 32.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);
  const bool apart = ranks > 1 && options.transport != Transport::Loopback && !detectLauncher();
  const Found found = apart ? countDevicesApart() : countDevices();
  if (found.devices == 0)
    noDevice(found.status);
  if (apart && found.devices < ranks)
    throw Error(format("got %d GPU(s) on this machine, expected %d: one for each rank; start on "
                       "more machines with mpirun, srun or torchrun, or run all ranks on one GPU "
                       "with --communicator=loopback",
                       found.devices, ranks),
                kExitNoDevice);
}

std::unique_ptr<Device> open(const Program &program, Job &job) {
  return std::make_unique<CudaDevice>(program, job);
}

std::string libraries() {
  int nccl = 0, cuda = 0;
  if (ncclGetVersion(&nccl) != ncclSuccess || cudaRuntimeGetVersion(&cuda) != cudaSuccess)
    return "";
  return format("CUDA %d.%d, NCCL %d.%d.%d, cuBLASLt %zu", cuda / 1000, cuda % 1000 / 10,
                nccl / 10000, nccl / 100 % 100, nccl % 100, cublasLtGetVersion());
}

} // namespace target

} // namespace fsdp::rt
