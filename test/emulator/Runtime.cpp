//===- Runtime.cpp - CUDA's functions: devices, streams, events, copies, launches --===//

#include "cuda_runtime.h"

#include "Capture.h"
#include "Emulator.h"
#include "Failure.h"
#include "Grid.h"
#include "Held.h"
#include "Memory.h"
#include "NcclComm.h"
#include "Queue.h"
#include "Recording.h"
#include "Symbols.h"
#include "ptx/Kernels.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace emulator {

void addGridStatistics(Statistics &statistics);

namespace {
thread_local int device = 0;
std::atomic<std::uint64_t> launchCount{0}, copyCount{0}, attributeCount{0};
std::mutex attributeMutex;

/// How much dynamic shared memory a kernel has been given leave to use.
std::map<const void *, std::size_t> &leave() {
  static auto *one = new std::map<const void *, std::size_t>;
  return *one;
}

constexpr std::size_t kSharedWithoutLeave = 48 * 1024;
constexpr const char *kNoImage = "no kernel image is available for execution on the device";

cudaError_t checkDevice(int index) {
  if (settings().devices == 0)
    return refuse(cudaErrorNoDevice, "no CUDA-capable device is detected");
  if (index < 0 || index >= settings().devices)
    return refuse(cudaErrorInvalidDevice,
                  formatted("device %d: expected less than %d", index, settings().devices));
  return result();
}
} // namespace

extern std::atomic<std::uint64_t> graphLaunchCount;
std::atomic<std::uint64_t> productCount{0}, algorithmCount{0};

int currentDevice() { return device; }

std::size_t maxSharedBytes() {
  switch (settings().compute) {
  case 80:
  case 87:
    return 163 * 1024;
  case 86:
  case 89:
  case 120:
  case 121:
    return 99 * 1024;
  default:
    return 227 * 1024;
  }
}

Statistics statistics() {
  Statistics all;
  all.launches = launchCount;
  all.copies = copyCount;
  all.attributes = attributeCount;
  all.products = productCount;
  all.algorithms = algorithmCount;
  all.graphLaunches = graphLaunchCount;
  addGridStatistics(all);
  return all;
}

void reset() {
  waitForAll();
  forgetFailure();
  forgetLaunches();
}

cudaError_t setAttribute(const void *kernel, cudaFuncAttribute attribute, int value) {
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
    const std::size_t fixed = symbolOf(kernel).sharedBytes;
    if (value < 0 || static_cast<std::size_t>(value) + fixed > maxSharedBytes())
      return refuse(cudaErrorInvalidValue, formatted("dynamic shared memory: got %d bytes beside "
                                                     "%zu of static, expected at most %zu together",
                                                     value, fixed, maxSharedBytes()));
    std::lock_guard<std::mutex> lock(attributeMutex);
    leave()[kernel] = static_cast<std::size_t>(value);
  }
  return result();
}

cudaError_t getAttributes(cudaFuncAttributes *attributes, const void *kernel) {
  ++attributeCount;
  if (cudaError_t error = checkDevice(device))
    return error;
  if (!settings().images)
    return refuse(cudaErrorNoKernelImageForDevice, kNoImage);
  *attributes = {};
  attributes->sharedSizeBytes = symbolOf(kernel).sharedBytes;
  attributes->maxThreadsPerBlock = 1024;
  std::lock_guard<std::mutex> lock(attributeMutex);
  const auto found = leave().find(kernel);
  attributes->maxDynamicSharedSizeBytes = int(
      found != leave().end() ? found->second : kSharedWithoutLeave - attributes->sharedSizeBytes);
  return result();
}

cudaError_t occupancy(int *blocks, int blockSize, std::size_t sharedBytes) {
  if (blockSize < 1 || blockSize > 1024)
    return refuse(cudaErrorInvalidValue, formatted("a block of %d threads", blockSize));
  *blocks = 2048 / ((blockSize + 31) / 32 * 32);
  if (sharedBytes)
    *blocks =
        std::min<int>(*blocks, static_cast<int>((maxSharedBytes() + 1024) / (sharedBytes + 1024)));
  return result();
}

namespace {
/// The largest requests of a kernel's launches.
struct Asked {
  unsigned threads = 0;
  std::size_t dynamicBytes = 0;
};

void noteLaunch(const std::string &kernel, unsigned threads, std::size_t dynamicBytes) {
  static std::mutex mutex;
  static auto *asked = new std::map<std::string, Asked>;
  std::lock_guard<std::mutex> lock(mutex);
  if (asked->empty())
    std::atexit([] {
      FILE *file = fopen(launchesFile().c_str(), "a");
      for (const auto &[name, most] : *asked)
        if (file)
          fprintf(file, "%s %u %zu\n", name.c_str(), most.threads, most.dynamicBytes);
      if (!file || ferror(file) + fclose(file)) {
        fprintf(stderr, "cuda emulator: cannot write '%s'\n", launchesFile().c_str());
        fflush(nullptr);
        _Exit(1);
      }
    });
  Asked &most = (*asked)[kernel];
  most.threads = std::max(most.threads, threads);
  most.dynamicBytes = std::max(most.dynamicBytes, dynamicBytes);
}
} // namespace

cudaError_t launch(const cudaLaunchConfig_t &config, const void *kernel, const void *call,
                   const CallType &type) {
  if (cudaError_t error = checkDevice(device))
    return error;
  if (!settings().images)
    return refuse(cudaErrorNoKernelImageForDevice, kNoImage);
  const dim3 &g = config.gridDim, &b = config.blockDim;
  const auto wrong = [&](const std::string &what) {
    return refuse(cudaErrorInvalidConfiguration, "kernel " + kernelName(kernel) + ": " + what);
  };
  if (std::uint64_t(g.x) * g.y * g.z == 0 || g.x > 0x7fffffffu || g.y > 65535 || g.z > 65535)
    return wrong(formatted("a grid of (%u, %u, %u): expected 1 to (2147483647, 65535, 65535)", g.x,
                           g.y, g.z));
  if (std::uint64_t(b.x) * b.y * b.z == 0 || std::uint64_t(b.x) * b.y * b.z > 1024 || b.z > 64)
    return wrong(formatted("a block of (%u, %u, %u): expected 1 to 1024 threads, at most 64 "
                           "along z",
                           b.x, b.y, b.z));
  if (const std::string other = streamOfAnotherDevice(config.stream); !other.empty())
    return refuse(cudaErrorInvalidResourceHandle,
                  "kernel " + kernelName(kernel) + ": launched on " + other);
  // Without leave, static and dynamic memory together have 48 KiB; leave is of the dynamic part.
  const KernelSymbol symbol = symbolOf(kernel);
  const std::size_t fixed = symbol.sharedBytes;
  if (!launchesFile().empty())
    noteLaunch(symbol.name, b.x * b.y * b.z, config.dynamicSmemBytes);
  std::size_t allowed = kSharedWithoutLeave < fixed ? 0 : kSharedWithoutLeave - fixed;
  {
    std::lock_guard<std::mutex> lock(attributeMutex);
    if (auto found = leave().find(kernel); found != leave().end())
      allowed = std::max(allowed, std::min(found->second, maxSharedBytes() - fixed));
  }
  if (config.dynamicSmemBytes > allowed)
    return refuse(
        cudaErrorInvalidValue,
        "kernel " + kernelName(kernel) + ": " +
            formatted(
                "%zu bytes of dynamic shared memory beside %zu of static: expected at most %zu, or "
                "more (to %zu together) by cudaFuncAttributeMaxDynamicSharedMemorySize",
                config.dynamicSmemBytes, fixed, allowed, maxSharedBytes()));
  for (unsigned i = 0; i < config.numAttrs; ++i)
    if (config.attrs[i].id != cudaLaunchAttributeIgnore &&
        config.attrs[i].id != cudaLaunchAttributePriority)
      return refuse(cudaErrorNotSupported,
                    formatted("launch attribute %d is not emulated", int(config.attrs[i].id)));
  if (recordsCalls()) {
    const CUstream_st &stream = *streamOf(config.stream);
    recordCall(stream.device, stream.number, "a kernel",
               formatted("%s\t%zu\t%u\t%zu", symbol.name.c_str(), std::size_t(g.x) * g.y * g.z,
                         b.x * b.y * b.z, fixed + config.dynamicSmemBytes));
    return result();
  }
  auto toRun = std::make_shared<Launch>(
      Launch{g, b, config.dynamicSmemBytes, kernel, copyOf(call, type.bytes), type, ++launchCount});
  return enqueueOrCapture(
      config.stream, cudaGraphNodeTypeKernel, "a kernel", [toRun](const PointRef &) {
        const std::string &ptx = settings().ptx;
        const std::string wrong = ptx.empty() ? runGrid(*toRun) : ptx::runGrid(*toRun, ptx);
        if (!wrong.empty())
          recordFailure(cudaErrorLaunchFailure, wrong);
        return true;
      });
}

} // namespace emulator

using namespace emulator;

cudaError_t cudaGetDeviceCount(int *count) {
  static std::once_flag first; // CUDA reads it when it starts
  std::call_once(first, [] {
    const char *connections = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    if (settings().connections)
      fprintf(stderr, "cuda emulator: %s connections\n", connections ? connections : "8");
  });
  *count = settings().devices;
  if (*count == 0)
    return refuse(cudaErrorInsufficientDriver,
                  "CUDA driver version is insufficient for CUDA runtime version");
  return result();
}

cudaError_t cudaSetDevice(int index) {
  if (cudaError_t error = checkDevice(index))
    return error;
  device = index;
  return result();
}

cudaError_t cudaGetDevice(int *index) {
  *index = device;
  return result();
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int index) {
  if (cudaError_t error = checkDevice(index))
    return error;
  *p = {};
  snprintf(p->name, sizeof(p->name), "CPU emulating CUDA");
  p->uuid.bytes[0] = static_cast<char>(index + 1);
  p->totalGlobalMem = settings().memory;
  p->sharedMemPerBlock = kSharedWithoutLeave;
  p->sharedMemPerBlockOptin = maxSharedBytes();
  p->sharedMemPerMultiprocessor = maxSharedBytes() + 1024;
  p->regsPerBlock = p->regsPerMultiprocessor = 65536;
  p->warpSize = 32;
  p->maxThreadsPerBlock = p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
  p->maxThreadsDim[2] = 64;
  p->maxGridSize[0] = 0x7fffffff;
  p->maxGridSize[1] = p->maxGridSize[2] = 65535;
  p->major = settings().compute / 10;
  p->minor = settings().compute % 10;
  p->multiProcessorCount = kMultiprocessors;
  p->pciBusID = index + 1;
  p->asyncEngineCount = 3;
  p->unifiedAddressing = p->concurrentKernels = 1;
  p->memoryBusWidth = 5120;
  p->l2CacheSize = 50 << 20;
  p->maxThreadsPerMultiProcessor = 2048;
  return result();
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int index) {
  if (cudaError_t error = checkDevice(index))
    return error;
  switch (attribute) {
  case cudaDevAttrMaxThreadsPerBlock:
    *value = 1024;
    return result();
  case cudaDevAttrMaxSharedMemoryPerBlock:
    *value = kSharedWithoutLeave;
    return result();
  case cudaDevAttrMaxSharedMemoryPerBlockOptin:
    *value = static_cast<int>(maxSharedBytes());
    return result();
  case cudaDevAttrWarpSize:
    *value = 32;
    return result();
  case cudaDevAttrMultiProcessorCount:
    *value = kMultiprocessors;
    return result();
  case cudaDevAttrComputeCapabilityMajor:
    *value = settings().compute / 10;
    return result();
  case cudaDevAttrComputeCapabilityMinor:
    *value = settings().compute % 10;
    return result();
  }
  return refuse(cudaErrorInvalidValue, formatted("device attribute %d", int(attribute)));
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int index) {
  if (cudaError_t error = checkDevice(index))
    return error;
  snprintf(id, static_cast<std::size_t>(length), "0000:%02x:00.0", index + 1);
  return result();
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  *greatest = -5;
  return result();
}

cudaError_t cudaDeviceSynchronize() {
  if (cudaError_t error =
          refuseWaitFor(static_cast<const CUstream_st *>(nullptr), "cudaDeviceSynchronize"))
    return error;
  waitForAll();
  return result();
}

cudaError_t cudaDeviceReset() {
  waitForAll();
  return result();
}

cudaError_t cudaDriverGetVersion(int *version) {
  *version = settings().devices ? settings().driver : 0;
  return result();
}

cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = CUDART_VERSION;
  return result();
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return cudaMemcpy2DAsync(to, bytes, from, bytes, bytes, 1, kind, stream);
}

cudaError_t cudaMemcpy2DAsync(void *to, std::size_t toPitch, const void *from,
                              std::size_t fromPitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  if (cudaError_t error = result())
    return error;
  if (width == 0 || height == 0)
    return result();
  if (width > toPitch || width > fromPitch)
    return refuse(cudaErrorInvalidValue,
                  formatted("rows of %zu bytes: expected at most the pitches %zu and %zu", width,
                            toPitch, fromPitch));
  std::string wrong =
      checkCopy(to, from, (height - 1) * std::min(toPitch, fromPitch) + width, kind);
  if (wrong.empty())
    wrong = checkRange("target", to, (height - 1) * toPitch + width, allocationOf(to).kind);
  if (wrong.empty())
    wrong = checkRange("source", from, (height - 1) * fromPitch + width, allocationOf(from).kind);
  if (!wrong.empty())
    return refuse(cudaErrorInvalidValue, "copy of " + wrong);
  const bool pageable = allocationOf(from).kind == MemoryKind::Pageable ||
                        allocationOf(to).kind == MemoryKind::Pageable;
  if (pageable && isCaptured(stream))
    return refuse(cudaErrorNotSupported, "capture of copies of pageable memory is not emulated");
  ++copyCount;
  // From pageable memory CUDA copies into an internal buffer before it returns.
  std::shared_ptr<std::vector<char>> staged;
  if (allocationOf(from).kind == MemoryKind::Pageable) {
    staged = std::make_shared<std::vector<char>>((height - 1) * fromPitch + width);
    std::memcpy(staged->data(), from, staged->size());
  }
  const cudaError_t status = enqueueOrCapture(
      stream, cudaGraphNodeTypeMemcpy, "a copy",
      [=](const PointRef &) {
        const char *source = staged ? staged->data() : static_cast<const char *>(from);
        for (std::size_t row = 0; row < height; ++row)
          std::memmove(static_cast<char *>(to) + row * toPitch, source + row * fromPitch, width);
        return true;
      },
      {to, from, height == 1 ? width : 0, kind});
  // And into it CUDA returns after the copy.
  if (status == cudaSuccess && allocationOf(to).kind == MemoryKind::Pageable)
    waitFor(tailOf(stream));
  return status;
}

cudaError_t cudaMemcpy(void *to, const void *from, std::size_t bytes, cudaMemcpyKind kind) {
  if (cudaError_t error = refuseUnsafe("cudaMemcpy"))
    return error;
  if (cudaError_t error = cudaMemcpyAsync(to, from, bytes, kind, nullptr))
    return error;
  // Out of pageable memory into the device's CUDA returns when the source has been read.
  const bool early = allocationOf(from).kind == MemoryKind::Pageable &&
                     allocationOf(to).kind == MemoryKind::Device;
  if (PointRef tail = tailOf(nullptr); tail && !early)
    waitFor(tail);
  return result();
}

cudaError_t cudaMemsetAsync(void *to, int value, std::size_t bytes, cudaStream_t stream) {
  return cudaMemset2DAsync(to, bytes, value, bytes, 1, stream);
}

cudaError_t cudaMemset2DAsync(void *to, std::size_t pitch, int value, std::size_t width,
                              std::size_t height, cudaStream_t stream) {
  if (cudaError_t error = result())
    return error;
  if (width == 0 || height == 0)
    return result();
  if (width > pitch)
    return refuse(cudaErrorInvalidValue,
                  formatted("rows of %zu bytes: expected at most the pitch %zu", width, pitch));
  const Allocation a = allocationOf(to);
  const std::string wrong = checkRange("target", to, (height - 1) * pitch + width, a.kind);
  if (!wrong.empty() || !a.start)
    return refuse(cudaErrorInvalidValue,
                  "memset of " + (wrong.empty() ? "memory that is not CUDA's" : wrong));
  return enqueueOrCapture(stream, cudaGraphNodeTypeMemset, "a memset", [=](const PointRef &) {
    for (std::size_t row = 0; row < height; ++row)
      std::memset(static_cast<char *>(to) + row * pitch, value, width);
    return true;
  });
}

cudaError_t cudaMemset(void *to, int value, std::size_t bytes) {
  if (cudaError_t error = refuseUnsafe("cudaMemset"))
    return error;
  return cudaMemsetAsync(to, value, bytes, nullptr);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) { return cudaStreamCreateWithFlags(stream, 0); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
  if (cudaError_t error = checkDevice(device))
    return error;
  *stream = makeStream(flags & cudaStreamNonBlocking);
  return result();
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (!stream)
    return refuse(cudaErrorInvalidResourceHandle, "destroying the default stream");
  if (cudaError_t error = refuseWaitFor(stream, "cudaStreamDestroy"))
    return error;
  destroyStream(stream);
  return result();
}

/// For calls of the host that wait for a stream or an event, or query it.
template <class What> static cudaError_t refuseWait(const What *what, const char *call) {
  if (what)
    if (cudaError_t error = refuseWaitFor(what, call))
      return error;
  return refuseUnsafe(call);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (cudaError_t error = refuseWait(stream, "cudaStreamQuery"))
    return error;
  poll();
  PointRef tail = tailOf(stream);
  return result(!tail || reached(tail) ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (cudaError_t error = refuseWait(stream, "cudaStreamSynchronize"))
    return error;
  if (PointRef tail = tailOf(stream))
    waitFor(tail);
  return result();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (!event)
    return refuse(cudaErrorInvalidResourceHandle, "waiting for a null event");
  cudaError_t status = cudaSuccess;
  if (waitCaptured(stream, event, status))
    return status;
  if (cudaError_t error = refuseLegacy(stream, "cudaStreamWaitEvent"))
    return error;
  if (event->recorded)
    waitOn(stream, event->recorded);
  return result();
}

cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, 0); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  if (cudaError_t error = checkDevice(device))
    return error;
  static std::atomic<int> made{0};
  *event = new CUevent_st{nullptr, !(flags & cudaEventDisableTiming), device, ++made};
  ++eventsHeld;
  return result();
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (!event)
    return refuse(cudaErrorInvalidResourceHandle, "destroying a null event");
  delete event;
  --eventsHeld;
  return result();
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (!event)
    return refuse(cudaErrorInvalidResourceHandle, "recording a null event");
  if (const int other = streamOf(stream)->device; event->device != other)
    return refuse(cudaErrorInvalidResourceHandle,
                  formatted("an event of device %d is recorded on a stream of device %d",
                            event->device, other));
  cudaError_t status = cudaSuccess;
  if (recordCaptured(event, stream, flags, status))
    return status;
  if (cudaError_t error = refuseLegacy(stream, "cudaEventRecord"))
    return error;
  record(event, stream);
  return result();
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, 0);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (cudaError_t error = refuseWait(event, "cudaEventQuery"))
    return error;
  poll();
  return result(!event->recorded || reached(event->recorded) ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (cudaError_t error = refuseWait(event, "cudaEventSynchronize"))
    return error;
  if (recordsCalls())
    recordCall(event->device, 0, "cudaEventSynchronize", std::to_string(event->number));
  if (event->recorded)
    waitFor(event->recorded);
  return result();
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
  for (cudaEvent_t event : {start, end})
    if (cudaError_t error = refuseWaitFor(event, "cudaEventElapsedTime"))
      return error;
  if (!start->recorded || !end->recorded || !start->timing || !end->timing)
    return refuse(cudaErrorInvalidResourceHandle, "time between events that keep none");
  if (start->device != end->device)
    return refuse(cudaErrorInvalidResourceHandle, "time between events of two devices");
  if (!reached(start->recorded) || !reached(end->recorded))
    return result(cudaErrorNotReady);
  *milliseconds =
      std::chrono::duration<float, std::milli>(end->recorded->when - start->recorded->when).count();
  return result();
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *userData) {
  return enqueueOrCapture(stream, cudaGraphNodeTypeHost, "a host function", [=](const PointRef &) {
    function(userData);
    return true;
  });
}
