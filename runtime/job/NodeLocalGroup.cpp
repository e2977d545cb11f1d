#include "runtime/job/NodeLocalGroup.h"

#include "base/Descriptor.h"
#include "runtime/job/RendezvousFile.h"
#include "runtime/job/SharedJob.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fsdp::rt {

using namespace base;

namespace {

/// The file by which the others find the first rank, there until they have.
class Published {
public:
  Published(std::string path, const RendezvousFile &file) : path_(std::move(path)) {
    RendezvousFile::removeStale();
    file.publish(path_);
  }
  ~Published() { unlink(path_.c_str()); }
  Published(const Published &) = delete;
  Published &operator=(const Published &) = delete;

private:
  std::string path_;
};

[[noreturn]] void failed(const char *what) {
  throw Error(format("cannot %s that the ranks of this machine share: %s (or run with "
                     "--communicator=mpi)",
                     what, std::strerror(errno)));
}

Descriptor openMemory(const RendezvousFile &file) {
  const std::string path = format("/proc/%d/fd/%d", file.creator.pid, file.descriptor);
  struct stat status{};
  Descriptor memory(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!memory || fstat(memory.get(), &status) != 0)
    failed("open the memory");
  if (status.st_size != static_cast<off_t>(file.bytes) || status.st_uid != geteuid()) {
    errno = EINVAL;
    failed("open the memory");
  }
  return memory;
}

/// How long the first rank waits for those that come late and must be told of a failure.
constexpr double kLateJoinerGrace = 5;

/// Ends the job of a first rank that this one does not belong to. The first rank says why.
[[noreturn]] void refuse(const RendezvousFile &file, int rank, const std::string &difference) {
  const Descriptor memory = openMemory(file);
  // The beginning of a segment is the same whatever its layout.
  const SharedSegment segment(Mapping::ofFile(memory.get(), file.bytes), {});
  segment.failure().raise(Error(difference));
  segment.attached().advance();
  throw Aborted("rank 0 reports the failure");
}

/// Ends the first rank of a job that another rank has refused to join: says why, and is there to be
/// found until all have come and know it, or some seconds are over.
[[noreturn]] void endRefused(SharedSegment &segment, std::uint64_t all) {
  reportOnce(segment.failure());
  segment.attached().waitFor(all, kLateJoinerGrace);
  throw Aborted("another rank was started differently");
}

// False while the first rank has not come, or only one of an earlier job, now gone, had.
bool findSegment(const std::string &path, const NodeLocalGroup &group, std::uint64_t bytes,
                 Mapping &mapping) {
  RendezvousFile file;
  if (RendezvousFile::read(path, file) != RendezvousFile::Whole ||
      file.creator.liveness() != ProcessIdentity::Alive)
    return false;
  const std::string difference = group.identity.differenceFrom(file.identity, group.rank);
  if (!difference.empty())
    refuse(file, group.rank, difference);
  if (file.bytes != bytes)
    throw Error(format("the ranks of this machine run different programs: got a segment of %zu "
                       "bytes, expected %zu",
                       std::size_t(file.bytes), std::size_t(bytes)));
  const Descriptor memory = openMemory(file);
  mapping = Mapping::ofFile(memory.get(), bytes);
  return true;
}

} // namespace

SharedSegment joinSegment(const SharedSegment::Layout &layout, const NodeLocalGroup &group,
                          double timeoutSeconds) {
  const std::string path = RendezvousFile::pathFor(group.key);
  const std::size_t bytes = SharedSegment::bytesFor(layout);
  const double limit = std::min(timeoutSeconds, 60.0), deadline = now() + limit;
  Mapping mapping;
  Descriptor memory; // stays open until all have come
  std::optional<Published> published;
  std::optional<SharedSegment> made;
  // Before others can find the segment, or the second of two with one rank might be the first here.
  const auto takePlace = [&] {
    made.emplace(std::move(mapping), layout);
    std::int32_t nobody = 0;
    if (!made->rank(group.rank).pid.compare_exchange_strong(nobody, static_cast<int>(getpid())))
      throw Error(
          format("rank %d of this job has already joined, as process %d: RANK must differ on "
                 "every process of a job, and FSDP_JOB_ID between jobs",
                 group.rank, nobody));
  };
  if (group.rank == group.first) {
    memory = Descriptor(memfd_create("fsdp-arenas", MFD_CLOEXEC));
    if (!memory || ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0)
      failed("create the memory");
    mapping = Mapping::ofFile(memory.get(), bytes);
    RendezvousFile file;
    file.creator = ProcessIdentity::ofSelf();
    file.descriptor = memory.get();
    file.bytes = bytes;
    file.identity = group.identity;
    takePlace();
    published.emplace(path, file);
  } else {
    while (!findSegment(path, group, bytes, mapping)) {
      if (now() > deadline)
        throw Error(format("timed out after %g s waiting for rank %d to share its memory with rank "
                           "%d on this machine: "
                           "start all ranks here, or run with --communicator=mpi",
                           limit, group.first, group.rank));
      usleep(2000);
    }
    takePlace();
  }
  SharedSegment segment = std::move(*made);
  segment.attached().advance();
  const auto all = static_cast<std::uint64_t>(group.count);
  const auto checkFailure = [&] {
    if (published && segment.failure().raised())
      endRefused(segment, all);
    segment.failure().check();
  };
  while (!segment.attached().waitFor(all, 0.05)) {
    checkFailure();
    if (now() > deadline)
      throw Error(
          format("timed out after %g s waiting for the ranks of this machine: %zu of %d joined",
                 limit, std::size_t(segment.attached().value()), group.count));
  }
  checkFailure();
  return segment;
}

} // namespace fsdp::rt
