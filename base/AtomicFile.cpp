#include "base/AtomicFile.h"

#include "base/Error.h"
#include "base/StandardOutput.h"

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace base {

namespace {

/// The temporary files of this process, where a signal handler can read them. A rank writes one
/// file at a time.
struct Slot {
  std::atomic<bool> taken{false}, present{false};
  char path[PATH_MAX];
};
Slot slots[8];

std::optional<TemporaryFileOwner> owner;

void remember(const std::string &path) {
  if (owner)
    return owner->added(path);
  for (Slot &slot : slots) {
    bool free = false;
    if (path.size() < sizeof(slot.path) && slot.taken.compare_exchange_strong(free, true)) {
      std::strcpy(slot.path, path.c_str());
      slot.present = true;
      return;
    }
  }
}

void forget(const std::string &path) {
  if (owner)
    return owner->removed(path);
  for (Slot &slot : slots)
    if (slot.present && path == slot.path) {
      slot.present = false;
      slot.taken = false;
      return;
    }
}

void endBy(int number) {
  removeTemporaryFiles();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

/// Keeps existing handlers, and signals that the process has ignored since its start (nohup).
void handleEndingSignals() {
  for (int number : {SIGHUP, SIGINT, SIGTERM}) {
    struct sigaction before;
    if (sigaction(number, nullptr, &before) == 0 && !(before.sa_flags & SA_SIGINFO) &&
        before.sa_handler == SIG_DFL)
      std::signal(number, endBy);
  }
}

} // namespace

void setTemporaryFileOwner(const TemporaryFileOwner &asked) { owner = asked; }

void removeTemporaryFiles() noexcept {
  for (Slot &slot : slots)
    if (slot.present)
      unlink(slot.path);
}

void removeUnfinished(const std::string &temporary) {
  const Descriptor file(open(temporary.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file && flock(file.get(), LOCK_EX | LOCK_NB) == 0)
    unlink(temporary.c_str());
}

AtomicFile::AtomicFile(const OutputPath &output, FileSystem &system, AtomicFileOptions options)
    : system(system), options(options), described(output.describe()), target(output.file()) {
  if (output.stream() < 0) {
    createTemporary();
    return;
  }
  isStandardOutput = output.identity() == identityOfDescriptor(STDOUT_FILENO);
  descriptor = fcntl(output.stream(), F_DUPFD_CLOEXEC, 3);
  if (descriptor < 0)
    failed("write", errno);
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::createTemporary() {
  if (!owner)
    handleEndingSignals();
  // Machines that share the folder may have processes with the same number.
  for (int attempt = 0; descriptor < 0; ++attempt) {
    temporary = withEnding(target, ".tmp." + std::to_string(getpid()) +
                                       (attempt ? "." + std::to_string(attempt) : ""));
    remember(temporary); // before the file exists: a signal in between would leave it behind
    const int reason = system.open(temporary, FileSystem::Open::CreateNew, descriptor);
    if (reason == 0) {
      flock(descriptor, LOCK_EX | LOCK_NB); // for removeUnfinished
      break;
    }
    descriptor = -1;
    forget(temporary);
    if (reason != EEXIST || attempt == 1000)
      failed("create", reason);
  }
  takeAttributes();
}

void AtomicFile::takeAttributes() {
  struct stat old;
  const bool replaces = stat(target.c_str(), &old) == 0;
  if (!replaces && (!options.executable || fstat(descriptor, &old) != 0))
    return;
  // Only root can change the owner. For other users the group's permissions are kept if the group
  // can be kept. The mode is set last, as a change of owner clears bits of it.
  if (replaces && fchown(descriptor, old.st_uid, old.st_gid) != 0 &&
      fchown(descriptor, static_cast<uid_t>(-1), old.st_gid) != 0)
    old.st_mode &= ~static_cast<mode_t>(S_ISUID | S_ISGID);
  const mode_t execute = options.executable ? (old.st_mode & 0444) >> 2 : 0;
  if (fchmod(descriptor, (old.st_mode & 07777) | execute) != 0) {
    const int reason = errno;
    discard();
    failed("write", reason);
  }
}

void AtomicFile::reserve(std::size_t bytes) {
  if (temporary.empty())
    return;
  if (const int reason = system.resize(descriptor, bytes))
    failed("write", reason);
}

void AtomicFile::write(const void *data, std::size_t bytes) {
  if (!temporary.empty()) {
    if (const int reason = system.write(descriptor, data, bytes, size))
      failed("write", reason);
    size += bytes;
    return;
  }
  const char *next = static_cast<const char *>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor, next, bytes);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      failed("write", errno);
    next += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

void AtomicFile::writeAtBegin(const void *data, std::size_t bytes) {
  if (const int reason = system.write(descriptor, data, bytes, 0))
    failed("write", reason);
}

void AtomicFile::commit() {
  if (!temporary.empty()) {
    if (const int reason = options.flushed ? system.sync(descriptor) : 0)
      failed("write", reason);
    if (const int reason = system.rename(temporary, target))
      failed("rename", reason);
    forget(temporary);
    temporary.clear();
    // The content is safe either way; without this the old file may be back after a power failure.
    if (const int reason = options.flushed ? system.syncFolder(folderOf(target)) : 0;
        reason && reason != EACCES)
      failed("write", reason);
  }
  if (const int reason = system.close(std::exchange(descriptor, -1)))
    failed("write", reason);
}

void AtomicFile::discard() {
  if (descriptor < 0)
    return;
  system.close(std::exchange(descriptor, -1));
  if (temporary.empty())
    return;
  system.removeFile(temporary);
  forget(temporary);
}

void AtomicFile::failed(const char *doing, int reason) {
  std::string message = "cannot " + std::string(doing) + " " + described + ": " + strerror(reason);
  if (reason == ENOSPC || reason == EDQUOT)
    message += std::string("; free some space or choose another location") +
               (temporary.empty() ? "" : "; nothing has been changed there");
  if (reason == EPIPE && isStandardOutput)
    throw NoReader(message);
  throw Error(message);
}

} // namespace base
