#include "runtime/job/NodeLocalGroup.h"

#include "base/Descriptor.h"
#include "runtime/job/RendezvousSocket.h"
#include "runtime/job/SharedJob.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fsdp::rt {

using namespace base;

namespace {

/// Seconds for which the first rank of a failed job still answers ranks that join late.
constexpr double kLateJoinerGrace = 5;

Descriptor createMemory(std::size_t bytes) {
  Descriptor memory(memfd_create("fsdp-arenas", MFD_CLOEXEC));
  if (!memory || ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0)
    throw Error(format("cannot create the memory that the ranks of this machine share: %s (or run "
                       "with --communicator=mpi)",
                       std::strerror(errno)));
  return memory;
}

std::size_t sizeOf(const Descriptor &memory) {
  struct stat status{};
  fstat(memory.get(), &status);
  return static_cast<std::size_t>(status.st_size);
}

/// Waits until `deadline` for the first rank's memory. Error: the first rank was started
/// differently; it gets the failure and reports it.
Descriptor joinFirst(const NodeLocalGroup &group, std::size_t bytes, double limit,
                     double deadline) {
  std::optional<SharedMemory> received;
  while (!(received = receiveMemory(group.key, std::max(deadline - now(), 0.0)))) {
    if (now() > deadline)
      throw Error(format("timed out after %g s waiting for rank %d to share its memory with rank "
                         "%d on this machine: "
                         "start all ranks here, or run with --communicator=mpi",
                         limit, group.first, group.rank));
    usleep(2000);
  }
  const std::size_t got = sizeOf(received->memory);
  const std::string difference = group.identity.differenceFrom(received->identity, group.rank);
  if (!difference.empty()) {
    // The beginning of a segment is the same whatever its layout.
    const SharedSegment segment(Mapping::ofFile(received->memory.get(), got), {});
    segment.failure().raise(Error(difference));
    segment.attached().advance();
    throw Aborted("rank 0 reports the failure");
  }
  if (got != bytes)
    throw Error(format("the ranks of this machine run different programs: got a segment of %zu "
                       "bytes, expected %zu",
                       got, bytes));
  return std::move(received->memory);
}

} // namespace

SharedSegment joinSegment(const SharedSegment::Layout &layout, const NodeLocalGroup &group,
                          double timeoutSeconds) {
  const std::size_t bytes = SharedSegment::bytesFor(layout);
  const double limit = std::min(timeoutSeconds, 60.0), deadline = now() + limit;
  const bool isFirst = group.rank == group.first;
  const Descriptor memory =
      isFirst ? createMemory(bytes) : joinFirst(group, bytes, limit, deadline);
  SharedSegment segment(Mapping::ofFile(memory.get(), bytes), layout);
  // Before other processes can find the segment: otherwise the second of two processes with the
  // same rank might use it first.
  std::int32_t nobody = 0;
  if (!segment.rank(group.rank).pid.compare_exchange_strong(nobody, static_cast<int>(getpid())))
    throw Error(format("rank %d of this job has already joined, as process %d: RANK must differ on "
                       "every process of a job, and FSDP_JOB_ID between jobs",
                       group.rank, nobody));
  std::optional<RendezvousSocket> socket;
  if (isFirst)
    socket.emplace(group.key, memory, group.identity);
  segment.attached().advance();
  const auto all = static_cast<std::uint64_t>(group.count);
  /// Waits a moment for other ranks; true when all have joined.
  const auto awaitAll = [&] {
    if (socket)
      socket->serve(0.02);
    return segment.attached().waitFor(all, socket ? 0 : 0.05);
  };
  for (bool joined = false; !joined;) {
    joined = awaitAll();
    if (socket && segment.failure().raised()) {
      reportOnce(segment.failure());
      for (const double end = now() + kLateJoinerGrace; !joined && now() < end;)
        joined = awaitAll();
      throw Aborted("another rank was started differently");
    }
    segment.failure().check();
    if (!joined && now() > deadline)
      throw Error(
          format("timed out after %g s waiting for the ranks of this machine: %zu of %d joined",
                 limit, std::size_t(segment.attached().value()), group.count));
  }
  return segment;
}

} // namespace fsdp::rt
