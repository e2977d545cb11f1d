//===- Memory.cpp - device and pinned memory ---------------------------------------===//
//
// An allocation ends where a page without access begins, so that a kernel that runs past it stops
// there. The handler of that signal says which kernel, block and thread it was.
//
//===----------------------------------------------------------------------===//

#include "Memory.h"

#include "Capture.h"
#include "Emulator.h"
#include "Failure.h"
#include "Grid.h"
#include "Held.h"
#include "Queue.h"
#include "Recording.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

namespace emulator {

int currentDevice();

namespace {

constexpr std::size_t kPage = 4096, kAlignment = 256;

struct Mapping {
  Allocation allocation;
  char *base;
  std::size_t mapped;
  bool hidden = false; ///< without access, see DeviceAccess

  void hide(bool to) {
    if (!base || allocation.kind != MemoryKind::Device || hidden == to)
      return;
    hidden = to;
    mprotect(base + kPage, mapped - 2 * kPage, to ? PROT_NONE : PROT_READ | PROT_WRITE);
  }
};

std::mutex mutex;
int accesses = 0; ///< how many DeviceAccess there are
std::map<int, std::ptrdiff_t> &libraryBytes() {
  static auto *one = new std::map<int, std::ptrdiff_t>;
  return *one;
}
std::map<const char *, Mapping> &table() {
  static auto *one = new std::map<const char *, Mapping>; // never freed: threads may outlive main
  return *one;
}

/// Says so if the address is one that the host may not touch; 0 if it is none. The lock may be held
/// by the thread that is here.
int describeHidden(const void *address, char *text, std::size_t size) {
  std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
  if (!lock.owns_lock())
    return 0;
  const char *at = static_cast<const char *>(address);
  auto after = table().upper_bound(at);
  if (after == table().begin() || !std::prev(after)->second.hidden)
    return 0;
  const Allocation &a = std::prev(after)->second.allocation;
  if (at >= a.start + a.bytes)
    return 0;
  return snprintf(
      text, size,
      "cuda emulator: the host touches byte %zu of an allocation of %zu bytes of device "
      "memory\n",
      static_cast<std::size_t>(at - a.start), a.bytes);
}

/// Names the kernel that touched memory it may not, then dies of the signal. Takes no lock: this
/// thread may hold one.
void onBadAccess(int signal, siginfo_t *info, void *) {
  char where[300], text[600];
  describePlace(where, sizeof(where));
  if (where[0]) {
    const bool stack = beyondStack(info->si_addr);
    const int length =
        snprintf(text, sizeof(text), "cuda emulator: %s: %s at %p\n", where,
                 stack              ? "stack overflow"
                 : signal == SIGBUS ? "misaligned access"
                 : !info->si_addr   ? "misaligned access, or an access through a wild pointer"
                                    : "access outside of any allocation",
                 info->si_addr);
    if (write(2, text, static_cast<std::size_t>(length)) < 0)
      _exit(139);
  } else if (const int length = describeHidden(info->si_addr, text, sizeof(text))) {
    if (write(2, text, static_cast<std::size_t>(length)) < 0)
      _exit(139);
  }
  std::signal(signal, SIG_DFL);
  raise(signal);
}

struct Installed {
  Installed() {
    struct sigaction action{};
    action.sa_sigaction = onBadAccess;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    struct sigaction old{};
    for (int signal : {SIGSEGV, SIGBUS})
      if (!sigaction(signal, nullptr, &old) && old.sa_handler == SIG_DFL)
        sigaction(signal, &action, nullptr);
  }
};

cudaError_t map(void **pointer, std::size_t bytes, MemoryKind kind) {
  static Installed handler;
  *pointer = nullptr;
  if (bytes == 0)
    return result();
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const std::size_t pages = (rounded + kPage - 1) / kPage * kPage;
  if (kind == MemoryKind::Device && bytesInUse(currentDevice()) + rounded > settings().memory)
    return refuse(cudaErrorMemoryAllocation,
                  formatted("out of memory: got %zu bytes in use and %zu asked for, expected at "
                            "most %zu",
                            bytesInUse(currentDevice()), bytes, settings().memory));
  void *memory = mmap(nullptr, pages + 2 * kPage, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return refuse(cudaErrorMemoryAllocation, "the machine has no more memory");
  char *base = static_cast<char *>(memory);
  mprotect(base + kPage, pages, PROT_READ | PROT_WRITE);
  char *start = base + kPage + pages - rounded;
  // Filled under the lock: a concurrent query for free memory waits and includes the allocation.
  std::lock_guard<std::mutex> lock(mutex);
  if (!recordsCalls()) // or all of it would be touched
    std::memset(start, 0xff, rounded);
  Mapping &mapping = table()[start];
  mapping = {{start, bytes, kind, currentDevice()}, base, pages + 2 * kPage, false};
  if (settings().guard && accesses == 0)
    mapping.hide(true);
  *pointer = start;
  return result();
}

/// Freed memory stays without access for a while, so that what still uses it does not find the next
/// allocation there.
void quarantine(void *base, std::size_t bytes) {
  static auto *freed = new std::deque<std::pair<void *, std::size_t>>;
  mmap(base, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  freed->emplace_back(base, bytes);
  if (freed->size() > 64) {
    munmap(freed->front().first, freed->front().second);
    freed->pop_front();
  }
}

cudaError_t unmap(void *pointer, MemoryKind kind, const char *call) {
  if (!pointer)
    return result();
  // CUDA waits for all work first, but documents it nowhere: here who frees must have waited.
  std::lock_guard<std::mutex> lock(mutex);
  auto found = table().find(static_cast<const char *>(pointer));
  if (found == table().end() || found->second.allocation.kind != kind)
    return refuse(cudaErrorInvalidValue,
                  formatted("%s of %p, which is no start of such an allocation", call, pointer));
  Mapping &mapping = found->second;
  if (mapping.base) {
    mapping.hide(false);
    const Allocation &a = mapping.allocation;
    const std::size_t rounded = (a.bytes + kAlignment - 1) / kAlignment * kAlignment;
    for (std::size_t i = a.bytes; !recordsCalls() && i < rounded; ++i)
      if (a.start[i] != char(0xff)) {
        recordFailure(
            cudaErrorIllegalAddress,
            formatted("byte %zu was written behind an allocation of %zu bytes", i, a.bytes));
        break;
      }
    quarantine(mapping.base, mapping.mapped);
  }
  table().erase(found);
  return result();
}

const char *nameOf(MemoryKind kind) {
  return kind == MemoryKind::Device   ? "device memory"
         : kind == MemoryKind::Pinned ? "pinned host memory"
                                      : "host memory";
}

} // namespace

Allocation allocationOf(const void *address) {
  const char *at = static_cast<const char *>(address);
  std::lock_guard<std::mutex> lock(mutex);
  auto after = table().upper_bound(at);
  if (after == table().begin())
    return {};
  const Allocation &candidate = std::prev(after)->second.allocation;
  return at < candidate.start + candidate.bytes ? candidate : Allocation{};
}

std::string checkRange(const char *role, const void *address, std::size_t bytes, MemoryKind kind) {
  if (bytes == 0)
    return "";
  const Allocation a = allocationOf(address);
  if ((a.kind == MemoryKind::Device) != (kind == MemoryKind::Device))
    return formatted("%s %p: got %s, expected %s", role, address, nameOf(a.kind), nameOf(kind));
  const char *at = static_cast<const char *>(address);
  if (a.start && bytes > static_cast<std::size_t>(a.start + a.bytes - at))
    return formatted("%s: got %zu bytes at %zu of an allocation, expected to end within its %zu "
                     "bytes",
                     role, bytes, static_cast<std::size_t>(at - a.start), a.bytes);
  return "";
}

std::string checkCopy(const void *to, const void *from, std::size_t bytes, cudaMemcpyKind kind) {
  const auto kindOf = [&](const void *address, bool device) {
    if (kind == cudaMemcpyDefault)
      return allocationOf(address).kind;
    return device ? MemoryKind::Device : MemoryKind::Pageable;
  };
  std::string wrong =
      checkRange("target", to, bytes,
                 kindOf(to, kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice));
  if (wrong.empty())
    wrong = checkRange(
        "source", from, bytes,
        kindOf(from, kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice));
  const char *t = static_cast<const char *>(to), *f = static_cast<const char *>(from);
  if (wrong.empty() && t < f + bytes && f < t + bytes && t != f)
    wrong = formatted("source and target overlap in %zu bytes",
                      bytes - static_cast<std::size_t>(t < f ? f - t : t - f));
  return wrong;
}

void setFromNccl(void *pointer, bool fromNccl) {
  std::lock_guard<std::mutex> lock(mutex);
  if (const auto found = table().find(static_cast<const char *>(pointer)); found != table().end())
    found->second.allocation.fromNccl = fromNccl;
}

std::size_t bytesInUse(int device) {
  std::lock_guard<std::mutex> lock(mutex);
  auto bytes = settings().used + static_cast<std::size_t>(libraryBytes()[device]);
  for (const auto &[start, mapping] : table())
    if (mapping.allocation.kind == MemoryKind::Device && mapping.allocation.device == device)
      bytes += (mapping.allocation.bytes + kAlignment - 1) / kAlignment * kAlignment;
  return bytes;
}

int allocationsHeld(MemoryKind kind) {
  std::lock_guard<std::mutex> lock(mutex);
  return static_cast<int>(std::count_if(table().begin(), table().end(), [&](const auto &entry) {
    return entry.second.allocation.kind == kind;
  }));
}

void addLibraryBytes(int device, std::ptrdiff_t change) {
  std::lock_guard<std::mutex> lock(mutex);
  libraryBytes()[device] += change;
}

DeviceAccess::DeviceAccess() {
  std::lock_guard<std::mutex> lock(mutex);
  if (accesses++ == 0)
    for (auto &[start, mapping] : table())
      mapping.hide(false);
}

DeviceAccess::~DeviceAccess() {
  std::lock_guard<std::mutex> lock(mutex);
  if (--accesses == 0 && settings().guard)
    for (auto &[start, mapping] : table())
      mapping.hide(true);
}

cudaError_t allocate(void **pointer, std::size_t bytes) {
  if (cudaError_t error = refuseUnsafe("cudaMalloc"))
    return error;
  return map(pointer, bytes, MemoryKind::Device);
}

cudaError_t allocatePinned(void **pointer, std::size_t bytes, unsigned) {
  if (cudaError_t error = refuseUnsafe("cudaHostAlloc"))
    return error;
  return map(pointer, bytes, MemoryKind::Pinned);
}

} // namespace emulator

using namespace emulator;

/// CUDA refuses memory that was mapped by cuMemMap, as ncclMemAlloc's is: nobody has freed it then.
cudaError_t cudaFree(void *pointer) {
  if (cudaError_t error = refuseUnsafe("cudaFree"))
    return error;
  if (allocationOf(pointer).fromNccl) {
    recordFailure(cudaErrorInvalidValue,
                  "cudaFree got memory of ncclMemAlloc, which ncclMemFree frees");
    return refuse(cudaErrorInvalidValue, failure());
  }
  return unmap(pointer, MemoryKind::Device, "cudaFree");
}
cudaError_t cudaFreeHost(void *pointer) {
  if (cudaError_t error = refuseUnsafe("cudaFreeHost"))
    return error;
  return unmap(pointer, MemoryKind::Pinned, "cudaFreeHost");
}

cudaError_t cudaHostRegister(void *pointer, std::size_t bytes, unsigned) {
  if (allocationOf(pointer).start)
    return refuse(cudaErrorInvalidValue, "cudaHostRegister of memory that is CUDA's already");
  std::lock_guard<std::mutex> lock(mutex);
  char *start = static_cast<char *>(pointer);
  table()[start] = {{start, bytes, MemoryKind::Pinned, currentDevice()}, nullptr, 0, false};
  return result();
}

cudaError_t cudaHostUnregister(void *pointer) {
  return unmap(pointer, MemoryKind::Pinned, "cudaHostUnregister");
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer) {
  const Allocation a = allocationOf(pointer);
  attributes->type = a.kind == MemoryKind::Device   ? cudaMemoryTypeDevice
                     : a.kind == MemoryKind::Pinned ? cudaMemoryTypeHost
                                                    : cudaMemoryTypeUnregistered;
  attributes->device = a.kind == MemoryKind::Pageable ? -2 : a.device;
  attributes->devicePointer = a.start ? const_cast<void *>(pointer) : nullptr;
  attributes->hostPointer = a.kind == MemoryKind::Pinned ? const_cast<void *>(pointer) : nullptr;
  return result();
}

cudaError_t cudaMemGetInfo(std::size_t *free, std::size_t *total) {
  // Ranks that share the device do not ask at the same time.
  static std::atomic<int> calls{0};
  if (settings().deferred)
    std::this_thread::sleep_for(std::chrono::milliseconds(50 * (calls++ % 3)));
  *total = settings().memory;
  *free = *total - bytesInUse(currentDevice());
  return result();
}
