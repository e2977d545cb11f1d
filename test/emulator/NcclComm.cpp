//===- NcclComm.cpp - communicators of the emulated NCCL --------------------------===//

#include "NcclComm.h"

#include "Emulator.h"
#include "Failure.h"
#include "Held.h"
#include "Memory.h"
#include "Recording.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <set>
#include <unistd.h>

namespace emulator {

int currentDevice();

namespace {

thread_local std::string lastError;
thread_local int groupDepth = 0;
thread_local std::vector<ncclComm_t> abortedInGroup;
thread_local std::vector<std::pair<ncclComm_t, std::function<ncclResult_t()>>> workOfGroup;

std::mutex registryMutex;
std::set<ncclComm_t> &registry() {
  static auto *one = new std::set<ncclComm_t>;
  return *one;
}
std::map<std::string, std::shared_ptr<Group>> &starting() {
  static auto *one = new std::map<std::string, std::shared_ptr<Group>>;
  return *one;
}
void misuse(const std::string &text) { recordFailure(cudaErrorLaunchFailure, text); }

ncclComm_t makeComm(std::shared_ptr<Group> group, int rank, int device,
                    const ncclConfig_t *config) {
  auto *comm = new ncclComm;
  comm->group = std::move(group);
  comm->rank = rank;
  comm->device = device;
  comm->blocking = !config || config->blocking != 0;
  comm->policy = config && config->CTAPolicy != NCCL_CONFIG_UNDEF_INT ? config->CTAPolicy : 0;
  if (config && config->maxCTAs != NCCL_CONFIG_UNDEF_INT)
    comm->blocks = config->maxCTAs;
  if (const char *said = std::getenv("NCCL_CTA_POLICY"); said && *said)
    comm->policy = std::atoi(said);
  if (const char *said = std::getenv("NCCL_COMM_BLOCKING")) // has the last word
    comm->blocking = std::atoi(said) != 0;
  const std::lock_guard<std::mutex> lock(registryMutex);
  registry().insert(comm);
  return comm;
}

/// With NCCL_DEBUG=INFO, as NCCL says it: the end of `call`, which is an "Init" or "Abort"; and
/// `more`, which NCCL does not say.
void noteComplete(const char *call, int rank, int ranks, const char *what, const char *more = "") {
  const char *level = std::getenv("NCCL_DEBUG");
  if (level && std::string(level) == "INFO")
    fprintf(stderr, "NCCL INFO %s rank %d nranks %d - %s COMPLETE%s\n", call, rank, ranks, what,
            more);
}

/// The state of a communicator; the call that made it is over unless it is ncclInProgress.
ncclResult_t settle(ncclComm_t comm) {
  const ncclResult_t state = comm->state;
  if (state != ncclInProgress && comm->job.joinable())
    comm->job.join();
  return state;
}

ncclResult_t join(ncclComm_t comm, const std::string &key, int rank, int ranks) {
  Group &group = *comm->group;
  std::unique_lock<std::mutex> lock(group.mutex);
  if (group.size != ranks || group.devices[std::size_t(rank)] >= 0)
    return say(ncclInvalidUsage,
               formatted("rank %d of %d: taken, or of another size", rank, ranks));
  group.devices[std::size_t(rank)] = comm->device;
  ++group.joined;
  if (!meet(lock, group, comm, [&] { return group.joined == ranks; }))
    return say(ncclSystemError, formatted("%d of %d ranks came", group.joined, ranks));
  for (int other = 0; other < ranks; ++other)
    if (other != rank && group.devices[std::size_t(other)] == comm->device)
      return say(ncclInvalidUsage, formatted("Duplicate GPU detected : rank %d and rank %d both "
                                             "on CUDA device %d",
                                             rank, other, comm->device));
  noteComplete("ncclCommInitRankConfig", rank, ranks, "Init");
  const std::lock_guard<std::mutex> startLock(registryMutex);
  starting().erase(key);
  return ncclSuccess;
}

ncclResult_t split(ncclComm_t comm, int color, int key, ncclComm_t *made,
                   const ncclConfig_t &config) {
  Group &group = *comm->group;
  std::unique_lock<std::mutex> lock(group.mutex);
  Group::Split &split = group.splits[comm->nextSplit++]; // a map's elements stay where they are
  split.colorAndKey.resize(std::size_t(group.size));
  split.colorAndKey[std::size_t(comm->rank)] = {color, key};
  ++split.arrived;
  if (!meet(lock, group, comm, [&] { return split.arrived == group.size; }))
    return say(ncclSystemError,
               formatted("%d of %d ranks came to a split", split.arrived, group.size));
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
  *made = makeComm(part, int(mine - members.begin()), comm->device, &config);
  (*made)->worldRank = comm->worldRank;
  noteComplete("ncclCommSplit", int(mine - members.begin()), part->size, "Init",
               (*made)->policy == NCCL_CTA_POLICY_ZERO ? ", CTA policy zero"
                                                       : ", CTA policy default");
  return ncclSuccess;
}

void release(ncclComm_t comm) {
  if (comm->job.joinable())
    comm->job.join();
  if (!comm->freed.exchange(true))
    waitForAll();
  addLibraryBytes(comm->device, -static_cast<std::ptrdiff_t>(std::exchange(comm->charged, 0)));
  const std::lock_guard<std::mutex> lock(registryMutex);
  registry().erase(comm);
}

void releaseAborted(ncclComm_t comm) {
  release(comm);
  noteComplete("ncclCommAbort", comm->rank, comm->group->size, "Abort");
}

void requireNobodyInside(ncclComm_t comm) {
  if (const char *call = comm->inside)
    misuse(
        formatted("ncclCommAbort frees a communicator while another thread is in %s of it", call));
}

/// A thread may still be in a call of a communicator after that was aborted.
void requireNobodyInsideAborted(ncclComm_t comm) {
  const std::lock_guard<std::mutex> lock(registryMutex);
  for (ncclComm_t other : registry())
    if (const char *call = other->inside; call && other->aborted && other->device == comm->device)
      misuse(formatted("ncclCommSplit is called while another thread is in %s of a communicator "
                       "that was aborted",
                       call));
}

/// Forgets the windows of an allocation; false if it was in none. They are those of its own device,
/// whose thread is here.
bool forgetWindows(const void *memory) {
  const int device = allocationOf(memory).device;
  const std::lock_guard<std::mutex> lock(registryMutex);
  std::size_t found = 0;
  for (ncclComm_t comm : registry())
    if (comm->device == device)
      found += comm->windows.erase(memory);
  return found > 0;
}

/// Freeing a communicator waits for its streams. The flags that end other waits do not end those of
/// copy engines.
void awaitCopyEngines(ncclComm_t comm) {
  if (!comm->copying || stuck() != cudaSuccess)
    return;
  fprintf(stderr, "cuda emulator: ncclCommAbort waits for a collective of copy engines, which it "
                  "does not end\n");
  while (comm->copying)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

/// Sets the variables of the file that NCCL_CONF_FILE names, but for those that are set (param.cc).
/// NCCL's other configuration files are those of the machine and of the user, not of a test.
void readConfiguration() {
  static std::once_flag once;
  std::call_once(once, [] {
    const char *path = std::getenv("NCCL_CONF_FILE");
    std::ifstream file(path ? path : "");
    for (std::string line; std::getline(file, line);)
      if (const std::size_t sign = line.find('='); sign != std::string::npos && line[0] != '#')
        setenv(line.substr(0, sign).c_str(), line.substr(sign + 1).c_str(), /*overwrite=*/0);
  });
}

/// Whether freeing `comm` would wait for kernels of another communicator, which nobody has aborted.
bool standsBehindOthers(ncclComm_t comm) {
  if (!ordersLaunches())
    return false;
  const std::lock_guard<std::mutex> lock(registryMutex);
  return std::any_of(registry().begin(), registry().end(), [&](ncclComm_t other) {
    return other != comm && other->device == comm->device && !other->aborted && other->unfinished;
  });
}

} // namespace

int communicatorsHeld() {
  const std::lock_guard<std::mutex> lock(registryMutex);
  return static_cast<int>(std::count_if(registry().begin(), registry().end(),
                                        [](ncclComm_t comm) { return !comm->freed; }));
}

ncclResult_t say(ncclResult_t code, const std::string &text) {
  lastError = text;
  return code;
}

Use::Use(ncclComm_t comm, const char *call) {
  if (!comm) {
    status = say(ncclInvalidArgument, formatted("%s: the communicator is null", call));
    return;
  }
  if (comm->freed) {
    misuse(formatted("%s uses a communicator that was freed", call));
    status = say(ncclInvalidArgument, failure());
    return;
  }
  const char *other = nullptr;
  if (!comm->inside.compare_exchange_strong(other, call)) {
    misuse(formatted("%s uses a communicator while another thread is in %s of it", call, other));
    status = say(ncclInvalidArgument, failure());
    return;
  }
  comm_ = comm;
  if (settle(comm) == ncclInProgress) {
    comm->state = ncclInvalidArgument;
    status =
        say(ncclInvalidArgument, formatted("%s: attempt to use a communicator before the previous "
                                           "operation returned ncclSuccess",
                                           call));
  }
}

Use::~Use() {
  if (comm_)
    comm_->inside = nullptr;
}

ncclResult_t perform(ncclComm_t comm, std::function<ncclResult_t()> work) {
  if (comm->blocking)
    return work();
  comm->state = ncclInProgress;
  comm->owner = std::this_thread::get_id();
  comm->job = std::thread([comm, work = std::move(work)] {
    cudaSetDevice(comm->device);
    std::this_thread::sleep_for(std::chrono::milliseconds(2)); // who does not wait is found out
    const ncclResult_t result = work();
    ncclResult_t running = ncclInProgress; // a refusal meanwhile stays
    comm->state.compare_exchange_strong(running, result);
  });
  return ncclInProgress;
}

ncclResult_t performAfterGroup(ncclComm_t comm, std::function<ncclResult_t()> work) {
  if (groupDepth == 0)
    return perform(comm, std::move(work));
  workOfGroup.emplace_back(comm, std::move(work));
  return ncclSuccess;
}

} // namespace emulator

using namespace emulator;

ncclResult_t ncclGetVersion(int *version) {
  *version = settings().nccl;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  readConfiguration();
  static std::atomic<int> made{0};
  *id = {};
  snprintf(id->internal, sizeof(id->internal), "%d.%d", int(getpid()), ++made);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank) {
  return ncclCommInitRankConfig(comm, ranks, id, rank, nullptr);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
  readConfiguration();
  *comm = nullptr;
  if (ranks < 1 || rank < 0 || rank >= ranks)
    return say(ncclInvalidArgument, formatted("rank %d of %d", rank, ranks));
  if (recordsCalls())
    return say(ncclInvalidUsage, "FSDP_EMULATOR has `calls`, with which collectives are not "
                                 "emulated: expected a program of --communicator=loopback");
  if (settings().windowFault >= ranks) {
    misuse(formatted("window=fail:%d with %d ranks: expected a rank from 0 to %d",
                     settings().windowFault, ranks, ranks - 1));
    return say(ncclInvalidUsage, failure());
  }
  const std::string key(id.internal, sizeof(id.internal));
  if (std::atoi(id.internal) != int(getpid()))
    return say(ncclSystemError, "ranks of several processes are not emulated");
  std::shared_ptr<Group> group;
  {
    const std::lock_guard<std::mutex> lock(registryMutex);
    std::shared_ptr<Group> &found = starting()[key];
    if (!found)
      found = std::make_shared<Group>(ranks);
    group = found;
  }
  ncclComm_t made = makeComm(group, rank, currentDevice(), config);
  made->worldRank = rank;
  *comm = made;
  const ncclResult_t status = perform(made, [=] { return join(made, key, rank, ranks); });
  if (made->blocking && status != ncclSuccess)
    made->freed = true; // the caller's handle is invalid
  return status;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *made,
                           ncclConfig_t *config) {
  const Use use(comm, "ncclCommSplit");
  if (use.status != ncclSuccess)
    return use.status;
  requireNobodyInsideAborted(comm);
  *made = nullptr;
  ncclConfig_t own = NCCL_CONFIG_INITIALIZER;
  if (config)
    own = *config;
  else
    own.blocking = comm->blocking;
  const ncclResult_t status = perform(comm, [=] { return split(comm, color, key, made, own); });
  return status == ncclInProgress ? ncclSuccess : status;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (!comm)
    return ncclSuccess;
  {
    const Use use(comm, "ncclCommDestroy");
    if (use.status != ncclSuccess)
      return use.status;
  }
  if (!comm->windows.empty())
    misuse("ncclCommDestroy frees a communicator that has windows: deregister them before");
  release(comm);
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (!comm)
    return ncclSuccess;
  if (comm->freed) {
    misuse("ncclCommAbort uses a communicator that was freed");
    return ncclInvalidArgument;
  }
  {
    const std::lock_guard<std::mutex> lock(comm->group->mutex); // who is about to wait sees it
    comm->aborted = true;
  }
  comm->group->changed.notify_all();
  if (groupDepth > 0) {
    abortedInGroup.push_back(comm);
    return ncclSuccess;
  }
  requireNobodyInside(comm);
  awaitCopyEngines(comm);
  if (standsBehindOthers(comm))
    misuse("ncclCommAbort waits for kernels of communicators that are not aborted: abort all of "
           "them in one group");
  if (comm->next || comm->posts)
    misuse("a communicator was aborted");
  releaseAborted(comm);
  return ncclSuccess;
}
ncclResult_t ncclGroupStart() {
  ++groupDepth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (groupDepth == 0)
    return say(ncclInvalidUsage, "ncclGroupEnd: not in a group call");
  if (--groupDepth > 0)
    return ncclSuccess;
  const std::vector<ncclComm_t> aborted = std::exchange(abortedInGroup, {});
  for (ncclComm_t comm : aborted) {
    requireNobodyInside(comm);
    awaitCopyEngines(comm);
  }
  for (ncclComm_t comm : aborted) {
    if (standsBehindOthers(comm))
      misuse("ncclCommAbort waits for kernels of communicators that are not aborted: abort all of "
             "them in one group");
    if (comm->next || comm->posts)
      misuse("a communicator was aborted");
  }
  for (ncclComm_t comm : aborted)
    releaseAborted(comm);
  // A communicator does all of its calls as one.
  std::map<ncclComm_t, std::vector<std::function<ncclResult_t()>>> works;
  std::vector<ncclComm_t> order;
  for (auto &[comm, work] : std::exchange(workOfGroup, {})) {
    std::vector<std::function<ncclResult_t()>> &ofComm = works[comm];
    if (ofComm.empty())
      order.push_back(comm);
    ofComm.push_back(std::move(work));
  }
  ncclResult_t result = ncclSuccess;
  for (ncclComm_t comm : order) {
    const ncclResult_t status = perform(comm, [all = std::move(works[comm])] {
      ncclResult_t status = ncclSuccess;
      for (const auto &work : all)
        if (status == ncclSuccess)
          status = work();
      return status;
    });
    if (status != ncclSuccess)
      result = status;
  }
  const ncclResult_t sent = flushPointToPoint();
  return result == ncclSuccess ? sent : result;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  if (!comm || comm->freed) {
    misuse("ncclCommGetAsyncError uses a communicator that was freed");
    *error = ncclInvalidArgument;
    return ncclInvalidArgument;
  }
  if (!comm->blocking && comm->job.joinable() && comm->owner != std::this_thread::get_id())
    misuse("ncclCommGetAsyncError ends and frees the call that another thread has under way on a "
           "non-blocking "
           "communicator");
  *error = comm->blocking ? comm->state.load() : settle(comm);
  if (*error == ncclSuccess && stuck() != cudaSuccess)
    *error = say(ncclUnhandledCudaError, failure());
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
                                    ncclWindow_t *window, int flags) {
  const Use use(comm, "ncclCommWindowRegister");
  if (use.status != ncclSuccess)
    return use.status;
  const std::string wrong = checkRange("buffer", buffer, bytes, MemoryKind::Device);
  if (!wrong.empty())
    return say(ncclInvalidArgument, wrong);
  if (!allocationOf(buffer).fromNccl)
    return say(ncclUnhandledCudaError, "a window of memory that ncclMemAlloc did not give");
  const ncclResult_t status = perform(comm, [=] {
    Group &group = *comm->group;
    std::unique_lock<std::mutex> lock(group.mutex);
    Group::Registration &all = group.windows[comm->nextWindow++];
    if (comm->worldRank == settings().windowFault)
      return say(ncclSystemError, "the memory of another rank cannot be mapped");
    all.differ |= all.arrived > 0 && all.bytes != bytes;
    all.bytes = bytes;
    ++all.arrived;
    if (!meet(lock, group, comm, [&] { return all.arrived == group.size; })) {
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::milliseconds(100)); // who was aborted returns late
      return say(ncclSystemError,
                 formatted("%d of %d ranks came to register a window", all.arrived, group.size));
    }
    if (all.differ) {
      misuse("ranks register windows of different sizes with one communicator");
      return say(ncclInvalidUsage, failure());
    }
    comm->windows[allocationOf(buffer).start] = flags & NCCL_WIN_COLL_SYMMETRIC;
    *window = reinterpret_cast<ncclWindow_t>(buffer);
    return ncclSuccess;
  });
  return status == ncclInProgress ? ncclSuccess : status;
}
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window) {
  const Use use(comm, "ncclCommWindowDeregister");
  if (use.status == ncclSuccess)
    comm->windows.erase(allocationOf(window).start);
  return use.status;
}

ncclResult_t ncclMemAlloc(void **pointer, std::size_t bytes) {
  if (cudaMalloc(pointer, bytes) != cudaSuccess)
    return ncclUnhandledCudaError;
  setFromNccl(*pointer, true);
  return ncclSuccess;
}
ncclResult_t ncclMemFree(void *pointer) {
  if (forgetWindows(pointer))
    misuse("ncclMemFree frees memory that is in a window: deregister it before");
  setFromNccl(pointer, false);
  return cudaFree(pointer) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

const char *ncclGetErrorString(ncclResult_t result) {
  switch (result) {
  case ncclSuccess:
    return "no error";
  case ncclUnhandledCudaError:
    return "unhandled cuda error";
  case ncclSystemError:
    return "unhandled system error";
  case ncclInternalError:
    return "internal error";
  case ncclInvalidArgument:
    return "invalid argument";
  case ncclInvalidUsage:
    return "invalid usage";
  case ncclRemoteError:
    return "remote process exited or there was a network error";
  case ncclInProgress:
    return "NCCL operation in progress";
  }
  return "unknown result code";
}

const char *ncclGetLastError(ncclComm_t) { return lastError.c_str(); }
