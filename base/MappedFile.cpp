#include "base/MappedFile.h"

#include "base/AtomicFile.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <set>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace base {

namespace {

/// All mapped files of this process.
std::mutex mutex;
std::set<const MappedFile *> mapped;
struct sigaction before;
std::vector<LostPageHandler *> handlers; ///< the latest last

const char *kindOf(mode_t mode) {
  return S_ISFIFO(mode)   ? "FIFO"
         : S_ISDIR(mode)  ? "folder"
         : S_ISSOCK(mode) ? "socket"
         : S_ISCHR(mode)  ? "character device"
                          : "block device";
}

[[noreturn]] void cannotOpen(const std::string &name, int reason) {
  const std::string message =
      "cannot open '" + name + "': " + strerror(reason) +
      (reason == EMFILE ? "; raise the limit (ulimit -n), or join files" : "");
  if (reason == ENOENT || reason == ENOTDIR)
    throw Error(message);
  throw UnreadableFile(message);
}

} // namespace

/// The file whose mapping contains `address`, or null.
const MappedFile *mappedFileAt(const char *address) {
  std::lock_guard<std::mutex> guard(mutex);
  for (const MappedFile *file : mapped)
    if (address >= file->base && address < file->base + file->bytes)
      return file;
  return nullptr;
}

namespace {

void onBusError(int number, siginfo_t *info, void *) {
  const MappedFile *file = mappedFileAt(static_cast<const char *>(info->si_addr));
  if (!file) { // the previous handler, or the default: the instruction is tried again
    sigaction(number, &before, nullptr);
    return;
  }
  int status = kExitFailure;
  try {
    file->requireWhole();
    throw Error("'" + file->path() +
                "': the system can no longer read it: an error of the disk or of the file server");
  } catch (const Error &error) {
    status = error.status();
    if (LostPageHandler *handler = LostPageHandler::latest())
      handler->handle(error);
    else
      std::fprintf(stderr, "error: %s\n", error.what());
  }
  removeTemporaryFiles();
  _exit(status);
}

void handleBusErrors() {
  struct sigaction action{};
  action.sa_sigaction = onBusError;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, &before);
}

} // namespace

LostPageHandler::LostPageHandler(std::function<void(const Error &)> handle)
    : handle(std::move(handle)) {
  std::lock_guard<std::mutex> guard(mutex);
  handlers.push_back(this);
}

LostPageHandler::~LostPageHandler() {
  std::lock_guard<std::mutex> guard(mutex);
  handlers.erase(std::find(handlers.begin(), handlers.end(), this));
}

LostPageHandler *LostPageHandler::latest() {
  std::lock_guard<std::mutex> guard(mutex);
  return handlers.empty() ? nullptr : handlers.back();
}

MappedFile::MappedFile(std::string path) : name(std::move(path)) {
  // Without O_NONBLOCK, opening a FIFO waits for a writer, perhaps for ever.
  file = Descriptor(open(name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat status;
  if (!file || fstat(file.get(), &status) != 0)
    cannotOpen(name, errno);
  if (!S_ISREG(status.st_mode))
    throw Error("cannot read '" + name + "': got a " + kindOf(status.st_mode) +
                ", expected a regular file, because it is read at any position; write its content "
                "to a file first");
  bytes = static_cast<std::size_t>(status.st_size);
  if (bytes == 0)
    return; // nothing to map
  void *mapping = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (mapping == MAP_FAILED)
    cannotOpen(name, errno);
  base = static_cast<const char *>(mapping);
  static std::once_flag once;
  std::call_once(once, handleBusErrors);
  std::lock_guard<std::mutex> guard(mutex);
  mapped.insert(this);
}

void MappedFile::requireWhole() const {
  struct stat status;
  if (fstat(file.get(), &status) != 0)
    throw Error("cannot read '" + name + "': " + strerror(errno));
  if (static_cast<std::size_t>(status.st_size) < bytes)
    throw Error(
        "'" + name + "': got " + std::to_string(status.st_size) + " bytes, expected " +
        std::to_string(bytes) +
        ": it was truncated while it was read; do not change the files of a run before it ends");
}

void MappedFile::releasePages() const {
  if (base)
    madvise(const_cast<char *>(base), bytes, MADV_DONTNEED); // only advice: failing changes nothing
}

void MappedFile::readAhead(const char *from, std::size_t count) const {
  static const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t begin = static_cast<std::size_t>(from - base) / page * page;
  const std::size_t end = std::min(static_cast<std::size_t>(from - base) + count, bytes);
  if (begin < end) // only advice, as above
    madvise(const_cast<char *>(base) + begin, end - begin, MADV_WILLNEED);
}

MappedFile::~MappedFile() {
  if (!base)
    return;
  {
    std::lock_guard<std::mutex> guard(mutex);
    mapped.erase(this);
  }
  munmap(const_cast<char *>(base), bytes);
}

} // namespace base
