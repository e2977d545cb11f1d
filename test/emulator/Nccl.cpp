//===- Nccl.cpp - NCCL between threads of one process ------------------------------===//
//
// A collective is an operation of each rank's stream. Every rank brings its buffers when its stream
// comes to it; the last one computes for all and sets the others free. Ranks must bring the same
// call: kind, count, type, operator, in the same order. Collectives of a group are enqueued when it
// ends: what a program enqueues inside the group comes before all of them.
//
//===----------------------------------------------------------------------===//

#include "NcclComm.h"

#include "Capture.h"
#include "Emulator.h"
#include "Failure.h"
#include "Memory.h"
#include "cuda_bf16.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace emulator {

std::size_t bytesOf(ncclDataType_t type) {
  switch (type) {
  case ncclInt8:
  case ncclUint8:
    return 1;
  case ncclFloat16:
  case ncclBfloat16:
    return 2;
  case ncclInt32:
  case ncclUint32:
  case ncclFloat32:
    return 4;
  case ncclInt64:
  case ncclUint64:
  case ncclFloat64:
    return 8;
  }
  return 0;
}

std::string copyEngineFault(int version, int ranks) {
  const std::string gather =
      formatted("an all-gather of %d ranks by copy engines of NCCL %d ", ranks, version);
  // The team for multicast is made at the first one, without a barrier after it (sym_kernels.cc,
  // ce_coll.cc).
  if (ranks == 2 && version >= 22907 && version < 23102)
    return gather + "hangs: its ranks do not wait until all have mapped the multicast memory";
  // Copies are synchronized after every eighth but the last; the flags alternate between two
  // places, so that an odd number of synchronizations leaves the last one at the place of the first
  // (ncclMemOpSync). In place there is one copy less.
  // From 2.29.2 on nothing is synchronized in between where CUDA has cudaMemcpyBatchAsync.
  const bool synchronizes = version < 22902 || settings().driver < 12080;
  for (int copies : {ranks - 1, ranks})
    if (synchronizes && version < 23003 && copies > 8 && (copies + 7) / 8 % 2 == 0)
      return gather + "races from 512 MiB on";
  return "";
}

ncclResult_t charge(ncclComm_t comm) {
  if (comm->charged)
    return ncclSuccess;
  const std::size_t bytes = settings().communicator;
  if (bytesInUse(comm->device) + bytes > settings().memory)
    return say(ncclUnhandledCudaError,
               formatted("a communicator takes %zu bytes of device %d, which has no more", bytes,
                         comm->device));
  addLibraryBytes(comm->device, static_cast<std::ptrdiff_t>(bytes));
  comm->charged = bytes;
  return ncclSuccess;
}

namespace {

/// Combined elements [from, from+count) of all sources, in rank order.
template <class T, class Sum>
void combineAs(const std::vector<Part> &parts, std::size_t from, std::size_t count, T *target) {
  std::vector<T> results(count); // the target may be one of the sources
  for (std::size_t i = 0; i < count; ++i) {
    Sum sum = Sum(static_cast<const T *>(parts[0].source)[from + i]);
    for (std::size_t r = 1; r < parts.size(); ++r) {
      const Sum x = Sum(static_cast<const T *>(parts[r].source)[from + i]);
      switch (parts[0].option) {
      case ncclProd:
        sum = sum * x;
        break;
      case ncclMax:
        sum = x > sum ? x : sum;
        break;
      case ncclMin:
        sum = x < sum ? x : sum;
        break;
      default:
        sum = sum + x;
        break;
      }
    }
    results[i] = T(sum);
  }
  std::memcpy(static_cast<void *>(target), results.data(), count * sizeof(T));
}

void combine(const std::vector<Part> &parts, std::size_t from, std::size_t count, void *target) {
  switch (parts[0].type) {
  case ncclInt8:
    return combineAs<signed char, int>(parts, from, count, static_cast<signed char *>(target));
  case ncclUint8:
    return combineAs<unsigned char, unsigned>(parts, from, count,
                                              static_cast<unsigned char *>(target));
  case ncclInt32:
    return combineAs<int, int>(parts, from, count, static_cast<int *>(target));
  case ncclUint32:
    return combineAs<unsigned, unsigned>(parts, from, count, static_cast<unsigned *>(target));
  case ncclInt64:
    return combineAs<long long, long long>(parts, from, count, static_cast<long long *>(target));
  case ncclUint64:
    return combineAs<unsigned long long, unsigned long long>(
        parts, from, count, static_cast<unsigned long long *>(target));
  case ncclFloat32:
    return combineAs<float, float>(parts, from, count, static_cast<float *>(target));
  case ncclFloat64:
    return combineAs<double, double>(parts, from, count, static_cast<double *>(target));
  case ncclBfloat16:
    return combineAs<__nv_bfloat16, float>(parts, from, count,
                                           static_cast<__nv_bfloat16 *>(target));
  case ncclFloat16:
    break;
  }
}

void compute(const std::vector<Part> &parts) {
  const std::string kind = parts[0].kind;
  const std::size_t count = parts[0].count, bytes = count * bytesOf(parts[0].type);
  if (bytes == 0) // the buffers may be null then, which memcpy does not take
    return;
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

/// More elements than this are gathered by copy engines whatever the CTA policy is.
std::uint64_t symmetricThreshold() {
  const char *said = std::getenv("NCCL_SYM_CE_THRESHOLD");
  return said && *said ? static_cast<std::uint64_t>(std::strtoll(said, nullptr, 0))
                       : std::uint64_t(8) << 20;
}

/// Whether copy engines make a collective: in 2.28 both buffers lie in windows, later the target
/// does.
bool usesCopyEngines(ncclComm_t comm, const Part &part) {
  const int version = settings().nccl;
  if (std::strcmp(part.kind, "ncclAllGather") || comm->group->size == 1 || version < 22800)
    return false;
  const auto isWindow = [&](const void *address) {
    const auto window = comm->windows.find(allocationOf(address).start);
    return window != comm->windows.end() && window->second;
  };
  if (version < 22900)
    return comm->policy == NCCL_CTA_POLICY_ZERO && isWindow(part.source) && isWindow(part.target);
  return ((comm->policy & NCCL_CTA_POLICY_ZERO) ||
          (settings().compute >= 100 && part.count > symmetricThreshold())) &&
         isWindow(part.target);
}

/// Enqueues a collective whose call has been accepted.
ncclResult_t enqueueCollective(ncclComm_t comm, Part part, cudaStream_t stream);

ncclResult_t collective(ncclComm_t comm, Part part, std::size_t sourceCount,
                        std::size_t targetCount, cudaStream_t stream) {
  const Use use(comm, part.kind);
  if (use.status != ncclSuccess)
    return use.status;
  std::this_thread::sleep_for(std::chrono::duration<double>(settings().call));
  if (stuck() != cudaSuccess)
    return say(ncclUnhandledCudaError, failure());
  const std::size_t element = bytesOf(part.type);
  const bool reduces = std::strstr(part.kind, "Reduce");
  if (!element || (reduces && (part.type == ncclFloat16 || part.option == ncclAvg)))
    return say(ncclInvalidArgument, formatted("%s: type %d, operator %d: not emulated", part.kind,
                                              int(part.type), part.option));
  std::string wrong = checkRange("source", part.source, sourceCount * element, MemoryKind::Device);
  if (wrong.empty())
    wrong = checkRange("target", part.target, targetCount * element, MemoryKind::Device);
  // In place means: the piece is its own part of the whole.
  const char *s = static_cast<const char *>(part.source), *t = static_cast<char *>(part.target);
  const std::size_t own = std::size_t(comm->rank) * part.count * element;
  const bool inPlace = sourceCount == targetCount  ? s == t
                       : sourceCount < targetCount ? s == t + own
                                                   : t == s + own;
  if (wrong.empty() && !inPlace && s < t + targetCount * element && t < s + sourceCount * element)
    wrong = "source and target overlap, but not as in-place operations may";
  if (!wrong.empty())
    return say(ncclInvalidArgument, formatted("%s: ", part.kind) + wrong);

  if (const ncclResult_t status = charge(comm))
    return status;
  part.copies = usesCopyEngines(comm, part);
  if (part.copies)
    if (const std::string fault = copyEngineFault(settings().nccl, comm->group->size);
        !fault.empty())
      recordFailure(cudaErrorLaunchTimeout, fault);
  if (isCaptured(stream))
    return performAfterGroup(comm, [=] {
      const Issue issue = [=](cudaStream_t lane) { enqueueCollective(comm, part, lane); };
      return addNode(stream, cudaGraphNodeTypeKernel, issue) == cudaSuccess
                 ? ncclSuccess
                 : say(ncclUnhandledCudaError, "the capture of the stream has ended");
    });
  return enqueueCollective(comm, part, stream);
}

ncclResult_t enqueueCollective(ncclComm_t comm, Part part, cudaStream_t stream) {
  const std::uint64_t number = comm->next++;
  part.comm = comm;
  ++comm->unfinished;
  comm->copying += part.copies;
  return performAfterGroup(comm, [=] {
    const LaunchOrder order(comm);
    if (!part.copies)
      order.require();
    order.enqueue(
        stream, part.kind,
        [comm, part, number](const PointRef &done) {
          Group &group = *comm->group;
          std::vector<Part> parts;
          {
            std::lock_guard<std::mutex> lock(group.mutex);
            Group::Round &round = group.rounds[number];
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
            else if (a.copies != b.copies)
              recordFailure(cudaErrorLaunchTimeout,
                            formatted("collective %llu of a communicator: rank 0 gathers by %s, "
                                      "rank %zu by %s",
                                      static_cast<unsigned long long>(number),
                                      a.copies ? "copy engines" : "kernels", r,
                                      b.copies ? "copy engines" : "kernels"));
          }
          if (agree)
            compute(parts);
          for (const Part &other : parts) {
            --other.comm->unfinished;
            other.comm->copying -= other.copies;
            if (other.done != done)
              complete(other.done);
          }
          return true;
        },
        part.copies);
    return stuck() == cudaSuccess ? ncclSuccess : say(ncclUnhandledCudaError, failure());
  });
}

} // namespace
} // namespace emulator

using namespace emulator;

ncclResult_t ncclAllGather(const void *piece, void *whole, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  const std::size_t ranks = comm ? std::size_t(comm->group->size) : 0;
  return collective(comm, {"ncclAllGather", piece, whole, count, type, 0}, count, count * ranks,
                    stream);
}
ncclResult_t ncclReduceScatter(const void *whole, void *piece, std::size_t count,
                               ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream) {
  const std::size_t ranks = comm ? std::size_t(comm->group->size) : 0;
  return collective(comm, {"ncclReduceScatter", whole, piece, count, type, op}, count * ranks,
                    count, stream);
}
ncclResult_t ncclAllReduce(const void *source, void *target, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return collective(comm, {"ncclAllReduce", source, target, count, type, op}, count, count, stream);
}
ncclResult_t ncclBroadcast(const void *source, void *target, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  return collective(comm, {"ncclBroadcast", source, target, count, type, root}, count, count,
                    stream);
}
