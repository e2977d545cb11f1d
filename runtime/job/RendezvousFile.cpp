#include "runtime/job/RendezvousFile.h"
#include "base/Descriptor.h"
#include "base/WaitCounter.h"

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace fsdp::rt {

using namespace base;

namespace {

constexpr std::uint64_t kMagic = 0x66736470'72740002;
/// How long a writer may take between creating the file and having written it.
constexpr double kWriting = 2;

/// Seconds after which one that was not written to its end never will be.
constexpr double kAbandoned = 60;
constexpr const char *kFolder = "/dev/shm";

/// What the paths of this user's files begin with.
std::string nameStart() { return format("%s/fsdp-%d-", kFolder, static_cast<int>(geteuid())); }

/// What the file begins with, behind a digest of all that follows; the identity's text is its end.
struct FileHeader {
  std::uint64_t magic, bytes;
  ProcessIdentity creator;
  std::int32_t descriptor;
};

[[noreturn]] void refuse(const std::string &path, const std::string &why) {
  throw Error(format("'%s', the rendezvous file of the ranks on this machine, %s: remove it, or "
                     "set FSDP_JOB_ID to another name on every rank",
                     path.c_str(), why.c_str()));
}

} // namespace

std::string RendezvousFile::pathFor(const std::string &key) {
  std::string name = nameStart();
  for (char c : key.substr(0, 100))
    name += std::isalnum(static_cast<unsigned char>(c)) ? c : '-';
  return name + "-" + digestText(contentDigest(key));
}

RendezvousFile::Found RendezvousFile::read(const std::string &path, RendezvousFile &file) {
  // A FIFO would block, a link would lead elsewhere.
  const Descriptor opened(
      open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!opened) {
    if (errno == ENOENT)
      return Absent;
    refuse(path, format("cannot be opened: %s", std::strerror(errno)));
  }
  struct stat status{};
  fstat(opened.get(), &status);
  const auto mode = static_cast<unsigned>(status.st_mode & 07777);
  if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || (mode & 0077) ||
      status.st_nlink > 1)
    refuse(path, format("is not trusted: got %s of user %d with mode %04o, expected a file of "
                        "user %d with mode 0600",
                        S_ISREG(status.st_mode) ? "a file" : "something that is not a regular file",
                        static_cast<int>(status.st_uid), mode, static_cast<int>(geteuid())));
  std::uint64_t digest = 0;
  FileHeader header{};
  std::string text(sizeof digest + sizeof header + RunIdentity::kMaxBytes, '\0');
  const ssize_t got = ::read(opened.get(), text.data(), text.size());
  if (got < static_cast<ssize_t>(sizeof digest + sizeof header))
    return Incomplete;
  text.resize(static_cast<std::size_t>(got));
  std::memcpy(&digest, text.data(), sizeof digest);
  text.erase(0, sizeof digest);
  std::memcpy(&header, text.data(), sizeof header);
  if (header.magic != kMagic || digest != contentDigest(text))
    return Incomplete;
  header.creator.boot[sizeof header.creator.boot - 1] = 0;
  file.creator = header.creator;
  file.descriptor = header.descriptor;
  file.bytes = header.bytes;
  file.identity = RunIdentity::parse(std::string_view(text).substr(sizeof header));
  return Whole;
}

/// True of a file that nobody will remove.
static bool isStale(const std::string &path) {
  try {
    RendezvousFile file;
    const RendezvousFile::Found found = RendezvousFile::read(path, file);
    if (found == RendezvousFile::Whole)
      return file.creator.liveness() == ProcessIdentity::Gone;
    struct stat status{};
    return found == RendezvousFile::Incomplete && stat(path.c_str(), &status) == 0 &&
           time(nullptr) - status.st_mtime > kAbandoned;
  } catch (const Error &) {
    return false;
  }
}

void RendezvousFile::removeStale() {
  const std::string start = nameStart();
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator(kFolder, error)) {
    const std::string path = entry.path().string();
    if (path.compare(0, start.size(), start) != 0 || !isStale(path))
      continue;
    // Another job of this name may replace it just now: what is taken away is looked at again.
    const std::string taken = path + format(".%d", static_cast<int>(getpid()));
    if (renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, taken.c_str(), RENAME_NOREPLACE) != 0)
      continue;
    if (isStale(taken))
      unlink(taken.c_str());
    else if (renameat2(AT_FDCWD, taken.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) != 0)
      unlink(taken.c_str()); // that job has written another
  }
}

void RendezvousFile::publish(const std::string &path) const {
  const double deadline = now() + kWriting;
  Descriptor made;
  while (!(made = Descriptor(
               open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)))) {
    if (errno != EEXIST)
      refuse(path, format("cannot be created: %s", std::strerror(errno)));
    RendezvousFile other;
    const Found found = read(path, other);
    if (found == Incomplete && now() < deadline) {
      usleep(10'000);
      continue;
    }
    const auto liveness = found == Whole ? other.creator.liveness() : ProcessIdentity::Gone;
    if (found != Absent && liveness != ProcessIdentity::Gone)
      refuse(path, format("belongs to another job that is starting now (its rank 0 is process "
                          "%d%s)",
                          other.creator.pid,
                          liveness == ProcessIdentity::Alive ? "" : " of another container"));
    unlink(path.c_str()); // its writer is gone
  }
  const FileHeader header{kMagic, bytes, creator, descriptor};
  std::string text(reinterpret_cast<const char *>(&header), sizeof header);
  text += identity.text();
  const std::uint64_t digest = contentDigest(text);
  const std::string whole =
      std::string(reinterpret_cast<const char *>(&digest), sizeof digest) + text;
  if (write(made.get(), whole.data(), whole.size()) != static_cast<ssize_t>(whole.size())) {
    const int reason = errno;
    unlink(path.c_str());
    refuse(path, format("cannot be written: %s", std::strerror(reason)));
  }
}

} // namespace fsdp::rt
