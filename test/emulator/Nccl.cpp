//===- Nccl.cpp - NCCL between threads of one process ------------------------------===//
//
// A collective is an operation of each rank's stream. Every rank brings its buffers when its stream comes to it;
// the last one computes for all and sets the others free. Ranks must bring the same call: kind,
// count, type, operator, in the same order.
//
//===----------------------------------------------------------------------===//

#include "nccl.h"

#include "Emulator.h"
#include "Failure.h"
#include "Memory.h"
#include "Queue.h"
#include "cuda_bf16.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <unistd.h>
#include <vector>

namespace emulator {
int currentDevice();

namespace {

thread_local std::string lastError;

ncclResult_t say(ncclResult_t code, const std::string &text) {
  lastError = text;
  return code;
}

/// One rank's part in a collective.
struct Part {
  const char *kind = nullptr;
  const void *source = nullptr;
  void *target = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclInt8;
  int option = 0; ///< operator or root
  PointRef done;
};

struct Round {
  std::vector<Part> parts;
  int arrived = 0;
};

} // namespace

/// The ranks that meet.
struct Group {
  explicit Group(int size) : size(size), devices(std::size_t(size), -1) {}
  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<int> devices;
  std::map<std::uint64_t, Round> rounds;
  struct Split {
    std::vector<std::pair<int, int>> colorAndKey;
    std::map<int, std::shared_ptr<Group>> groups;
    int arrived = 0;
  };
  std::map<std::uint64_t, Split> splits;
  int joined = 0;
};

} // namespace emulator

struct ncclComm {
  std::shared_ptr<emulator::Group> group;
  int rank, device;
  std::uint64_t next = 0, nextSplit = 0;
};

namespace emulator {
namespace {

/// Waits until all ranks of a group have come, for as long as the deadlock setting says.
template <class Condition>
bool meet(std::unique_lock<std::mutex> &lock, Group &group, Condition condition) {
  group.changed.notify_all();
  return group.changed.wait_for(lock, std::chrono::duration<double>(settings().deadlock),
                                condition);
}

std::size_t bytesOf(ncclDataType_t type) {
  switch (type) {
  case ncclInt8:
  case ncclUint8: return 1;
  case ncclFloat16:
  case ncclBfloat16: return 2;
  case ncclInt32:
  case ncclUint32:
  case ncclFloat32: return 4;
  case ncclInt64:
  case ncclUint64:
  case ncclFloat64: return 8;
  }
  return 0;
}

/// Combined elements [from, from+count) of all sources, in rank order.
template <class T, class Sum>
void combineAs(const std::vector<Part> &parts, std::size_t from, std::size_t count, T *target) {
  std::vector<T> results(count); // the target may be one of the sources
  for (std::size_t i = 0; i < count; ++i) {
    Sum sum = Sum(static_cast<const T *>(parts[0].source)[from + i]);
    for (std::size_t r = 1; r < parts.size(); ++r) {
      const Sum x = Sum(static_cast<const T *>(parts[r].source)[from + i]);
      switch (parts[0].option) {
      case ncclProd: sum = sum * x; break;
      case ncclMax: sum = x > sum ? x : sum; break;
      case ncclMin: sum = x < sum ? x : sum; break;
      default: sum = sum + x; break;
      }
    }
    results[i] = T(sum);
  }
  std::memcpy(static_cast<void *>(target), results.data(), count * sizeof(T));
}

void combine(const std::vector<Part> &parts, std::size_t from, std::size_t count, void *target) {
  switch (parts[0].type) {
  case ncclInt8: return combineAs<signed char, int>(parts, from, count, static_cast<signed char *>(target));
  case ncclUint8: return combineAs<unsigned char, unsigned>(parts, from, count, static_cast<unsigned char *>(target));
  case ncclInt32: return combineAs<int, int>(parts, from, count, static_cast<int *>(target));
  case ncclUint32: return combineAs<unsigned, unsigned>(parts, from, count, static_cast<unsigned *>(target));
  case ncclInt64: return combineAs<long long, long long>(parts, from, count, static_cast<long long *>(target));
  case ncclUint64: return combineAs<unsigned long long, unsigned long long>(parts, from, count, static_cast<unsigned long long *>(target));
  case ncclFloat32: return combineAs<float, float>(parts, from, count, static_cast<float *>(target));
  case ncclFloat64: return combineAs<double, double>(parts, from, count, static_cast<double *>(target));
  case ncclBfloat16: return combineAs<__nv_bfloat16, float>(parts, from, count, static_cast<__nv_bfloat16 *>(target));
  case ncclFloat16: break;
  }
}

void perform(const std::vector<Part> &parts) {
  const std::string kind = parts[0].kind;
  const std::size_t count = parts[0].count, bytes = count * bytesOf(parts[0].type);
  if (kind == "ncclAllGather") {
    for (const Part &to : parts)
      for (std::size_t r = 0; r < parts.size(); ++r)
        std::memmove(static_cast<char *>(to.target) + r * bytes, parts[r].source, bytes);
  } else if (kind == "ncclBroadcast") {
    for (const Part &to : parts)
      std::memmove(to.target, parts[std::size_t(parts[0].option)].source, bytes);
  } else {
    // A target may lie in a source that others have yet to read: results go out when all are known.
    const bool scatter = kind == "ncclReduceScatter";
    std::vector<std::vector<char>> results(parts.size(), std::vector<char>(bytes));
    for (std::size_t r = 0; r < (scatter ? parts.size() : 1); ++r)
      combine(parts, scatter ? r * count : 0, count, results[r].data());
    for (std::size_t r = 0; r < parts.size(); ++r)
      std::memcpy(parts[r].target, results[scatter ? r : 0].data(), bytes);
  }
}

ncclResult_t collective(ncclComm_t comm, Part part, std::size_t sourceCount,
                        std::size_t targetCount, cudaStream_t stream) {
  if (!comm)
    return say(ncclInvalidArgument, formatted("%s: the communicator is null", part.kind));
  if (stuck() != cudaSuccess)
    return say(ncclUnhandledCudaError, failure());
  const std::size_t element = bytesOf(part.type);
  const bool reduces = std::strstr(part.kind, "Reduce");
  if (!element || (reduces && (part.type == ncclFloat16 || part.option == ncclAvg)))
    return say(ncclInvalidArgument,
               formatted("%s: type %d, operator %d: not emulated", part.kind, int(part.type),
                         part.option));
  std::string wrong =
      checkRange("source", part.source, sourceCount * element, MemoryKind::Device);
  if (wrong.empty())
    wrong = checkRange("target", part.target, targetCount * element, MemoryKind::Device);
  // In place means: the piece is its own part of the whole.
  const char *s = static_cast<const char *>(part.source), *t = static_cast<char *>(part.target);
  const std::size_t own = std::size_t(comm->rank) * part.count * element;
  const bool inPlace = sourceCount == targetCount   ? s == t
                       : sourceCount < targetCount ? s == t + own
                                                    : t == s + own;
  if (wrong.empty() && !inPlace && s < t + targetCount * element && t < s + sourceCount * element)
    wrong = "source and target overlap, but not as in-place operations may";
  if (!wrong.empty())
    return say(ncclInvalidArgument, formatted("%s: ", part.kind) + wrong);

  const std::uint64_t number = comm->next++;
  enqueue(stream, part.kind, [comm, part, number](const PointRef &done) {
    Group &group = *comm->group;
    std::vector<Part> parts;
    {
      std::lock_guard<std::mutex> lock(group.mutex);
      Round &round = group.rounds[number];
      round.parts.resize(std::size_t(group.size));
      Part &mine = round.parts[std::size_t(comm->rank)];
      mine = part;
      mine.done = done;
      if (++round.arrived < group.size)
        return false;
      parts = std::move(round.parts);
      group.rounds.erase(number);
    }
    bool agree = true;
    for (std::size_t r = 1; r < parts.size() && agree; ++r) {
      const Part &a = parts[0], &b = parts[r];
      agree = !std::strcmp(a.kind, b.kind) && a.count == b.count && a.type == b.type &&
              a.option == b.option;
      if (!agree)
        recordFailure(cudaErrorLaunchFailure,
                      formatted("collective %llu of a communicator: rank 0 calls %s of %zu "
                                "elements of type %d, rank %zu calls %s of %zu of type %d",
                                static_cast<unsigned long long>(number), a.kind, a.count,
                                int(a.type), r, b.kind, b.count, int(b.type)));
    }
    if (agree)
      perform(parts);
    for (const Part &other : parts)
      if (other.done != done)
        complete(other.done);
    return true;
  });
  return stuck() == cudaSuccess ? ncclSuccess : say(ncclUnhandledCudaError, failure());
}

std::mutex startMutex;
std::map<std::string, std::shared_ptr<Group>> &starting() {
  static auto *one = new std::map<std::string, std::shared_ptr<Group>>;
  return *one;
}

} // namespace
} // namespace emulator

using namespace emulator;

ncclResult_t ncclGetVersion(int *version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  static std::atomic<int> made{0};
  *id = {};
  snprintf(id->internal, sizeof(id->internal), "%d.%d", int(getpid()), ++made);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank) {
  return ncclCommInitRankConfig(comm, ranks, id, rank, nullptr);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *) {
  *comm = nullptr;
  if (ranks < 1 || rank < 0 || rank >= ranks)
    return say(ncclInvalidArgument, formatted("rank %d of %d", rank, ranks));
  const std::string key(id.internal, sizeof(id.internal));
  std::shared_ptr<Group> group;
  {
    std::lock_guard<std::mutex> lock(startMutex);
    std::shared_ptr<Group> &found = starting()[key];
    if (!found)
      found = std::make_shared<Group>(ranks);
    group = found;
  }
  std::unique_lock<std::mutex> lock(group->mutex);
  const int device = currentDevice();
  if (group->size != ranks || group->devices[std::size_t(rank)] >= 0)
    return say(ncclInvalidUsage, formatted("rank %d of %d: taken, or of another size", rank, ranks));
  group->devices[std::size_t(rank)] = device;
  ++group->joined;
  if (!meet(lock, *group, [&] { return group->joined == ranks; }))
    return say(ncclSystemError, formatted("%d of %d ranks came", group->joined, ranks));
  for (int other = 0; other < ranks; ++other)
    if (other != rank && group->devices[std::size_t(other)] == device)
      return say(ncclInvalidUsage, formatted("Duplicate GPU detected : rank %d and rank %d both "
                                             "on CUDA device %d",
                                             rank, other, device));
  *comm = new ncclComm{group, rank, device};
  std::lock_guard<std::mutex> startLock(startMutex);
  starting().erase(key);
  return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *made,
                           ncclConfig_t *) {
  *made = nullptr;
  Group &group = *comm->group;
  std::unique_lock<std::mutex> lock(group.mutex);
  Group::Split &split = group.splits[comm->nextSplit++]; // a map's elements stay where they are
  split.colorAndKey.resize(std::size_t(group.size));
  split.colorAndKey[std::size_t(comm->rank)] = {color, key};
  ++split.arrived;
  if (!meet(lock, group, [&] { return split.arrived == group.size; }))
    return say(ncclSystemError, formatted("%d of %d ranks came to a split", split.arrived, group.size));
  if (color == NCCL_SPLIT_NOCOLOR)
    return ncclSuccess;
  std::vector<std::pair<int, int>> members; // key, rank
  for (int r = 0; r < group.size; ++r)
    if (split.colorAndKey[std::size_t(r)].first == color)
      members.emplace_back(split.colorAndKey[std::size_t(r)].second, r);
  std::sort(members.begin(), members.end());
  std::shared_ptr<Group> &part = split.groups[color];
  if (!part)
    part = std::make_shared<Group>(int(members.size()));
  const auto mine = std::find(members.begin(), members.end(), std::make_pair(key, comm->rank));
  *made = new ncclComm{part, int(mine - members.begin()), comm->device};
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  waitForAll();
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (comm->next)
    recordFailure(cudaErrorLaunchFailure, "a communicator was aborted");
  return ncclCommDestroy(comm);
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t *error) {
  *error = stuck() == cudaSuccess ? ncclSuccess : say(ncclUnhandledCudaError, failure());
  return ncclSuccess;
}
ncclResult_t ncclCommCount(const ncclComm_t comm, int *count) {
  *count = comm->group->size;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank) {
  *rank = comm->rank;
  return ncclSuccess;
}
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device) {
  *device = comm->device;
  return ncclSuccess;
}

ncclResult_t ncclCommRegister(const ncclComm_t, void *buffer, std::size_t bytes, void **handle) {
  const std::string wrong = checkRange("buffer", buffer, bytes, MemoryKind::Device);
  if (!wrong.empty())
    return say(ncclInvalidArgument, wrong);
  *handle = buffer;
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(const ncclComm_t, void *) { return ncclSuccess; }
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buffer, std::size_t bytes,
                                    ncclWindow_t *window, int) {
  return ncclCommRegister(comm, buffer, bytes, reinterpret_cast<void **>(window));
}
ncclResult_t ncclCommWindowDeregister(ncclComm_t, ncclWindow_t) { return ncclSuccess; }

ncclResult_t ncclMemAlloc(void **pointer, std::size_t bytes) {
  return cudaMalloc(pointer, bytes) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t ncclMemFree(void *pointer) {
  return cudaFree(pointer) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclAllGather(const void *piece, void *whole, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  const std::size_t ranks = comm ? std::size_t(comm->group->size) : 0;
  return collective(comm, {"ncclAllGather", piece, whole, count, type, 0, nullptr}, count,
                    count * ranks, stream);
}
ncclResult_t ncclReduceScatter(const void *whole, void *piece, std::size_t count,
                               ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream) {
  const std::size_t ranks = comm ? std::size_t(comm->group->size) : 0;
  return collective(comm, {"ncclReduceScatter", whole, piece, count, type, op, nullptr},
                    count * ranks, count, stream);
}
ncclResult_t ncclAllReduce(const void *source, void *target, std::size_t count,
                           ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
  return collective(comm, {"ncclAllReduce", source, target, count, type, op, nullptr}, count,
                    count, stream);
}
ncclResult_t ncclBroadcast(const void *source, void *target, std::size_t count,
                           ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream) {
  return collective(comm, {"ncclBroadcast", source, target, count, type, root, nullptr}, count,
                    count, stream);
}

ncclResult_t ncclGroupStart() { return ncclSuccess; }
ncclResult_t ncclGroupEnd() { return ncclSuccess; }

const char *ncclGetErrorString(ncclResult_t result) {
  switch (result) {
  case ncclSuccess: return "no error";
  case ncclUnhandledCudaError: return "unhandled cuda error";
  case ncclSystemError: return "unhandled system error";
  case ncclInternalError: return "internal error";
  case ncclInvalidArgument: return "invalid argument";
  case ncclInvalidUsage: return "invalid usage";
  case ncclRemoteError: return "remote process exited or there was a network error";
  case ncclInProgress: return "NCCL operation in progress";
  }
  return "unknown result code";
}

const char *ncclGetLastError(ncclComm_t) { return lastError.c_str(); }
