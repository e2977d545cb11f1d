//===- AtomicFile.cpp -----------------------------------------------------===//

#include "runtime/AtomicFile.h"

#include "runtime/Error.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace fsdp::rt {

AtomicFile::AtomicFile(std::string path) : path(std::move(path)) {
  struct stat status;
  if (stat(this->path.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
    failed("write", EISDIR);
  temporary = this->path + ".tmp." + std::to_string(getpid());
  descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0)
    failed("create", errno);
}

AtomicFile::~AtomicFile() {
  if (descriptor >= 0) {
    close(descriptor);
    unlink(temporary.c_str());
  }
}

void AtomicFile::write(const void *data, std::size_t bytes) {
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

void AtomicFile::commit() {
  if (fsync(descriptor) != 0)
    failed("write", errno);
  if (rename(temporary.c_str(), path.c_str()) != 0)
    failed("rename", errno);
  close(std::exchange(descriptor, -1));
}

void AtomicFile::failed(const char *doing, int reason) {
  std::string message = "cannot " + std::string(doing) + " '" + path + "': " + strerror(reason);
  if (reason == ENOSPC || reason == EDQUOT)
    message += "; free some space or choose another place, what was there before is untouched";
  throw Error(message);
}

} // namespace fsdp::rt
