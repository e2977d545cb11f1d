//===- TemporaryFolder.cpp - a folder that ends with its owner ------------===//

#include "tools/output/TemporaryFolder.h"

#include "base/FileSystem.h"

#include "llvm/ADT/STLExtras.h"
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace files = std::filesystem;

namespace fsdpc {

namespace {

/// The existing folders, and the thread that removes them on a signal: a handler itself may call
/// almost no functions.
struct Standing {
  std::mutex mutex;
  std::vector<TemporaryFolder *> folders;
  int pipe[2] = {-1, -1};
  struct sigaction before[NSIG];
};

/// Never destroyed: the thread outlives main.
Standing &standing() {
  static Standing *all = new Standing;
  return *all;
}

int wakeUp = -1; // the end of the pipe that the handler writes to

void tell(int number) {
  int saved = errno;
  char byte = static_cast<char>(number);
  (void)!write(wakeUp, &byte, 1);
  errno = saved;
}

void waitForSignal() {
  Standing &all = standing();
  char byte;
  ssize_t got;
  while ((got = read(all.pipe[0], &byte, 1)) < 0 && errno == EINTR)
    ;
  if (got != 1)
    return;
  // Held until the end, so that the main thread cannot report that its compiler failed.
  all.mutex.lock();
  for (TemporaryFolder *folder : llvm::reverse(all.folders))
    folder->clear();
  int number = byte;
  sigaction(number, &all.before[number], nullptr);
  kill(getpid(), number);
}

void handleSignals() {
  Standing &all = standing();
  if (wakeUp >= 0 || pipe2(all.pipe, O_CLOEXEC) != 0)
    return;
  wakeUp = all.pipe[1];
  std::thread(waitForSignal).detach();
  for (int number : {SIGHUP, SIGINT, SIGTERM}) {
    sigaction(number, nullptr, &all.before[number]);
    if (all.before[number].sa_handler == SIG_IGN)
      continue; // as set by nohup
    struct sigaction action = {};
    action.sa_handler = tell;
    action.sa_flags = SA_RESTART;
    sigaction(number, &action, nullptr);
  }
}

constexpr const char *kMark = ".fsdpc-temporary";
constexpr const char *kDrawn = "XXXXXX"; // the suffix that mkdtemp replaces

/// Removes the folder with that mark if no process holds it. In a shared folder its name may be
/// another user's link, or be redirected at any time: the folder is opened once, and the check and
/// the removal use that descriptor.
void removeUnlessHeld(const files::path &folder) {
  const int opened = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (opened < 0)
    return;
  struct stat status;
  const int mark = fstat(opened, &status) == 0 && status.st_uid == geteuid()
                       ? openat(opened, kMark, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
                       : -1;
  if (mark >= 0 && fstat(mark, &status) == 0 && S_ISREG(status.st_mode) &&
      status.st_uid == geteuid() && flock(mark, LOCK_EX | LOCK_NB) == 0) {
    std::error_code ignored;
    for (files::directory_iterator at("/proc/self/fd/" + std::to_string(opened), ignored), end;
         !ignored && at != end; at.increment(ignored))
      if (std::error_code of; at->path().filename() != kMark)
        files::remove_all(at->path(), of);
    unlinkat(opened, kMark, 0); // last: an interrupted removal is then found again
    rmdir(folder.c_str());
  }
  if (mark >= 0)
    close(mark);
  close(opened);
}

/// The folders `prefix` + six random characters of processes that were killed.
void removeStale(const files::path &prefix) {
  const std::string begin = prefix.filename().string();
  std::error_code error;
  for (files::directory_iterator at(prefix.parent_path(), error), end; !error && at != end;
       at.increment(error))
    if (const std::string name = at->path().filename().string();
        name.size() == begin.size() + std::strlen(kDrawn) &&
        name.compare(0, begin.size(), begin) == 0)
      removeUnlessHeld(at->path());
}

} // namespace

TemporaryFolder::TemporaryFolder() {
  std::error_code error;
  files::path base = files::temp_directory_path(error);
  make(((error ? files::path("/tmp") : base) / "fsdpc-").string());
}

TemporaryFolder::TemporaryFolder(const std::string &path) {
  files::path target = path;
  files::path parent = target.has_parent_path() ? target.parent_path() : files::path(".");
  std::string pattern = base::withEnding((parent / ("." + target.filename().string())).string(),
                                         std::string(".") + kDrawn);
  make(pattern.substr(0, pattern.size() - std::strlen(kDrawn)));
}

void TemporaryFolder::make(const std::string &prefix) {
  std::lock_guard<std::mutex> guard(standing().mutex);
  handleSignals();
  removeStale(prefix);
  do {
    std::string pattern = prefix + kDrawn;
    if (!mkdtemp(pattern.data()))
      throw std::runtime_error("cannot create the temporary folder '" + pattern +
                               "': " + std::strerror(errno));
    folder = pattern;
  } while (!mark());
  standing().folders.push_back(this);
}

/// False if another process has mistaken the new folder for an abandoned one and removed it.
bool TemporaryFolder::mark() {
  // Not closed on exec: a compiler that outlives this process still works here.
  held = open((folder + "/" + kMark).c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  struct stat status;
  if (const int error = errno; held < 0 && error != ENOENT) {
    rmdir(folder.c_str());
    throw std::runtime_error("cannot write to the temporary folder '" + folder +
                             "': " + std::strerror(error));
  }
  if (held >= 0 && flock(held, LOCK_EX) == 0 && fstat(held, &status) == 0 && status.st_nlink == 0) {
    close(held);
    held = -1;
  }
  return held >= 0;
}

void TemporaryFolder::unmark() { unlink((folder + "/" + kMark).c_str()); }

TemporaryFolder::~TemporaryFolder() {
  std::lock_guard<std::mutex> lock(standing().mutex);
  clear();
  if (held >= 0)
    close(held);
  llvm::erase(standing().folders, this);
}

llvm::sys::ProcessInfo TemporaryFolder::start(llvm::ArrayRef<std::string> command,
                                              llvm::StringRef log) {
  std::vector<llvm::StringRef> words = {"env"};
  words.insert(words.end(), command.begin(), command.end());
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef("/dev/null"), log, log};
  std::lock_guard<std::mutex> lock(standing().mutex); // no signal finds one that is not listed yet
  const llvm::sys::ProcessInfo process =
      llvm::sys::ExecuteNoWait("/usr/bin/env", words, std::nullopt, redirects, /*MemoryLimit=*/0,
                               nullptr, nullptr, nullptr, /*DetachProcess=*/true);
  if (process.Pid > 0)
    processes.push_back(process.Pid);
  return process;
}

void TemporaryFolder::removeProcess(pid_t process) {
  std::lock_guard<std::mutex> lock(standing().mutex);
  llvm::erase(processes, process);
}

void TemporaryFolder::clear() {
  auto signalAll = [&](int number) {
    bool any = false;
    for (pid_t process : processes) {
      waitpid(process, nullptr, WNOHANG); // ended processes would still count
      any |= kill(-process, number) == 0;
    }
    return any;
  };
  // A compiler removes its other temporary files on SIGTERM; one that does not end is killed.
  bool running = signalAll(SIGTERM);
  for (int tenths = 0; running && tenths < 10; ++tenths) {
    usleep(100'000);
    running = signalAll(0);
  }
  if (running)
    signalAll(SIGKILL);
  std::error_code ignored;
  files::remove_all(folder, ignored);
}

} // namespace fsdpc
