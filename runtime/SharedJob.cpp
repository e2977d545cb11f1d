#include "runtime/SharedJob.h"
#include "runtime/SharedMemoryCommunicator.h"
#include "runtime/Watchdog.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fsdp::rt {

SharedJob::SharedJob(const Mesh &mesh, const JobOptions &options, int rank, SharedSegment &segment)
    : Job(mesh, options, rank), segment_(segment) {
  arena_ = segment.arena(rank);
  failure_ = &segment.failure();
}

std::unique_ptr<Communicator> SharedJob::communicator(int index, int channel) {
  CommunicatorSpec spec = specOf(mesh_, options_, index);
  return std::make_unique<SharedMemoryCommunicator>(
      spec.name, *this, segment_, index * kChannels + channel, mesh_.group(rank_, spec.axes),
      options_.timeoutSeconds);
}

SharedSegment::Layout layoutOf(const Mesh &mesh, const JobOptions &options) {
  return {mesh.size(), (static_cast<int>(options.communicators.size()) + 1) * kChannels,
          options.arenaBytes};
}

CommunicatorSpec specOf(const Mesh &mesh, const JobOptions &options, int index) {
  if (index < static_cast<int>(options.communicators.size()))
    return options.communicators[index];
  CommunicatorSpec all{"all ranks", {}};
  for (int axis = 0; axis < mesh.dimensions(); ++axis)
    all.axes.axis[all.axes.count++] = axis;
  return all;
}

void reportOnce(Failure &failure) {
  if (failure.claimReport())
    report(failure.error());
}

int runRank(Job &job, SharedSegment &segment, int recordIndex, Care care,
            const std::function<int(Job &)> &body) {
  Supervision supervision;
  if (care == Care::Neighbours)
    supervision.neighbour = (recordIndex + 1) % segment.layout().ranks;
  if (care != Care::Parent)
    supervision.report = reportOnce;
  return runRank(job, segment, recordIndex, supervision, body);
}

int runRank(Job &job, SharedSegment &segment, int recordIndex, const Supervision &supervision,
            const std::function<int(Job &)> &body) {
  RankRecord &record = segment.rank(recordIndex);
  Failure &failure = job.failure();
  record.pid = static_cast<int>(getpid());
  record.heartbeat = now();
  record.state = RankRecord::Running;
  Watchdog watchdog(segment, recordIndex, supervision.neighbour, job.options().timeoutSeconds,
                    supervision.report);
  try {
    int status = body(job);
    if (status != 0)
      throw Error(format("ended with status %d", status), status);
    record.state = RankRecord::Done;
  } catch (const Aborted &error) {
    if (!failure.raised())
      failure.raise(error.at(job.rank(), ""));
  } catch (const Error &error) {
    failure.raise(error.at(job.rank(), ""));
  } catch (const std::exception &error) {
    failure.raise(Error(error.what()).at(job.rank(), ""));
  } catch (...) {
    failure.raise(Error("an exception of unknown type").at(job.rank(), ""));
  }
  if (!failure.raised())
    return kExitDone;
  if (supervision.report)
    supervision.report(failure);
  return failure.error().status();
}

//===----------------------------------------------------------------------===//
// Meeting under a launcher
//===----------------------------------------------------------------------===//

namespace {

// What the first rank leaves for the others to find: where its memory file is open. The memory
// itself has no name, so that nothing stays behind and the size of /dev/shm does not limit the
// arenas.
struct Signpost {
  std::uint64_t magic;
  std::uint64_t bytes;
  std::int32_t pid, descriptor;
};
constexpr std::uint64_t kMagic = 0x66736470'72740001;

std::string signpostName(const std::string &key) {
  std::string name = "/fsdp-" + std::to_string(getuid()) + "-";
  for (char c : key)
    name += std::isalnum(static_cast<unsigned char>(c)) ? c : '-';
  return name.substr(0, 200);
}

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0)
      close(fd);
  }
};

[[noreturn]] void failed(const char *what, const std::string &name) {
  throw Error(format("cannot %s '%s' for the ranks of this machine: %s (or run with "
                     "--communicator=mpi)",
                     what, name.c_str(), std::strerror(errno)));
}

Mapping makeSegment(const std::string &name, std::size_t bytes, Descriptor &memory) {
  memory.fd = memfd_create("fsdp-arenas", MFD_CLOEXEC);
  if (memory.fd < 0 || ftruncate(memory.fd, static_cast<off_t>(bytes)) != 0)
    failed("make the memory of", name);
  shm_unlink(name.c_str()); // of a job that was killed at this very point
  Descriptor post{shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600)};
  Signpost sign{kMagic, bytes, static_cast<int>(getpid()), memory.fd};
  if (post.fd < 0 || write(post.fd, &sign, sizeof sign) != sizeof sign)
    failed("write", name);
  return Mapping::ofFile(memory.fd, bytes);
}

// Nothing while the first rank has not come (or only one of an earlier job, now gone, had).
bool findSegment(const std::string &name, std::size_t bytes, Mapping &mapping) {
  Descriptor post{shm_open(name.c_str(), O_RDONLY, 0)};
  Signpost sign{};
  if (post.fd < 0 || read(post.fd, &sign, sizeof sign) != sizeof sign || sign.magic != kMagic ||
      (kill(sign.pid, 0) != 0 && errno == ESRCH))
    return false;
  if (sign.bytes != bytes)
    throw Error(
        format("the ranks of this machine run different programs: got a segment of %zu bytes, "
               "expected %zu",
               std::size_t(sign.bytes), bytes));
  std::string path = format("/proc/%d/fd/%d", sign.pid, sign.descriptor);
  Descriptor memory{open(path.c_str(), O_RDWR | O_CLOEXEC)};
  struct stat status;
  if (memory.fd < 0 || fstat(memory.fd, &status) != 0)
    failed("open", path);
  if (status.st_size != static_cast<off_t>(bytes))
    return false;
  mapping = Mapping::ofFile(memory.fd, bytes);
  return true;
}

} // namespace

SharedSegment joinSegment(const SharedSegment::Layout &layout, const Sharers &sharers,
                          double timeoutSeconds) {
  const std::string name = signpostName(sharers.key);
  const std::size_t bytes = SharedSegment::bytesFor(layout);
  const double limit = std::min(timeoutSeconds, 60.0), deadline = now() + limit;
  const bool first = sharers.rank == sharers.first;
  Mapping mapping;
  Descriptor memory; // stays open until all have come
  if (first) {
    mapping = makeSegment(name, bytes, memory);
  } else {
    while (!findSegment(name, bytes, mapping)) {
      if (now() > deadline)
        throw Error(
            format("waited %g s for rank %d to share its memory with rank %d on this machine: "
                   "start all ranks here, or run with --communicator=mpi",
                   limit, sharers.first, sharers.rank));
      usleep(2000);
    }
  }
  SharedSegment segment(std::move(mapping), layout);
  segment.attached().advance();
  const bool all = segment.attached().waitFor(static_cast<std::uint64_t>(sharers.count),
                                              std::max(0.0, deadline - now()));
  if (first)
    shm_unlink(name.c_str());
  if (!all)
    throw Error(format("waited %g s for the ranks of this machine: %zu of %d came", limit,
                       std::size_t(segment.attached().value()), sharers.count));
  return segment;
}

} // namespace fsdp::rt
