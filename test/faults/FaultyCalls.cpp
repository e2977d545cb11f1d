//===- FaultyCalls.cpp - calls of the system that fail, kill or hang ------===//
//
// Preloaded into a program: the effect of a disk, a file server or a kill at one call.
// FSDP_TEST_FAULTS lists faults, with `;` between them:
//
//   PROCESS CALL N ACTION [PATH]
//
// PROCESS is `parent` for the process that was started, the number of a process that it has forked,
// from 0 (ranks in their order; then, after a failure, what writes the flight record, what looks at
// the folder of checkpoints, and the ranks of the next attempt), or `*`. CALL is one of the
// functions below, or `any`. N counts those calls of that process from 1; `N+` means that call and
// all after it. ACTION is `kill` (SIGKILL, before the call), `hang` (for ever; only SIGKILL ends
// it), `nothing` (the call returns 0 and has done nothing) or the name of an error, such as EIO.
// With PATH only calls count whose path, or whose descriptor's, contains that text.
//
// FSDP_TEST_CALLS names a file that gets a line for each call: PROCESS NUMBER CALL PATH, where
// NUMBER counts as `any`.
//
//===----------------------------------------------------------------------===//

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

namespace {

constexpr int kParent = -1, kEveryProcess = -2;

struct Fault {
  int process;
  char call[32];
  long from;
  bool andAfter;
  char action[16];
  char path[128];
  std::atomic<long> seen{0};
};

Fault faults[16];
int faultCount = 0;
char callsFile[4096];
std::atomic<int> self{kParent}, forks{0};
std::atomic<long> calls{0};

struct ErrorName {
  const char *name;
  int number;
};
constexpr ErrorName kErrors[] = {{"EACCES", EACCES}, {"EAGAIN", EAGAIN}, {"EDQUOT", EDQUOT},
                                 {"EIO", EIO},       {"ENOENT", ENOENT}, {"ENOMEM", ENOMEM},
                                 {"ENOSPC", ENOSPC}, {"ESTALE", ESTALE}};

[[noreturn]] void misuse(const char *text) {
  std::fprintf(stderr, "FSDP_TEST_FAULTS: cannot read '%s'\n", text);
  _exit(99);
}

__attribute__((constructor)) void readEnvironment() {
  if (const char *file = std::getenv("FSDP_TEST_CALLS"))
    std::snprintf(callsFile, sizeof callsFile, "%s", file);
  const char *next = std::getenv("FSDP_TEST_FAULTS");
  while (next && *next) {
    Fault &fault = faults[faultCount++];
    char process[16], count[24];
    if (faultCount == 16 || std::sscanf(next, " %15s %31s %23s %15[^; ] %127[^; ]", process,
                                        fault.call, count, fault.action, fault.path) < 4)
      misuse(next);
    fault.process = std::strcmp(process, "parent") == 0 ? kParent
                    : std::strcmp(process, "*") == 0    ? kEveryProcess
                                                        : std::atoi(process);
    fault.from = std::atol(count);
    fault.andAfter = std::strchr(count, '+') != nullptr;
    next = std::strchr(next, ';');
    next = next ? next + 1 : nullptr;
  }
}

void note(long number, const char *call, const char *path) {
  char line[4300], process[16];
  std::snprintf(process, sizeof process, "%d", self.load());
  const int length = std::snprintf(line, sizeof line, "%s %ld %s %s\n",
                                   self == kParent ? "parent" : process, number, call, path);
  const long file = syscall(SYS_openat, AT_FDCWD, callsFile, O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (file < 0)
    return;
  if (syscall(SYS_write, file, line, length) < 0)
    _exit(99);
  syscall(SYS_close, file);
}

[[noreturn]] void hang() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  for (;;)
    pause();
}

enum Verdict { Perform, Fail, Nothing };

/// The outcome of a call; errno is set if it fails.
Verdict verdictOn(const char *call, const char *path) {
  if (faultCount == 0 && !*callsFile)
    return Perform;
  const int before = errno;
  const long number = ++calls;
  if (*callsFile)
    note(number, call, path);
  for (int i = 0; i < faultCount; ++i) {
    Fault &fault = faults[i];
    if ((fault.process != kEveryProcess && fault.process != self) ||
        (*fault.path && !std::strstr(path, fault.path)) ||
        (std::strcmp(fault.call, "any") != 0 && std::strcmp(fault.call, call) != 0))
      continue;
    const long seen = ++fault.seen;
    if (seen != fault.from && !(fault.andAfter && seen > fault.from))
      continue;
    if (std::strcmp(fault.action, "kill") == 0)
      syscall(SYS_kill, getpid(), SIGKILL);
    if (std::strcmp(fault.action, "hang") == 0)
      hang();
    if (std::strcmp(fault.action, "nothing") == 0)
      return Nothing;
    for (const ErrorName &error : kErrors)
      if (std::strcmp(fault.action, error.name) == 0) {
        errno = error.number;
        return Fail;
      }
    misuse(fault.action);
  }
  errno = before;
  return Perform;
}

/// The path of a descriptor.
struct PathOf {
  explicit PathOf(int file) {
    char link[64];
    const int before = errno;
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const ssize_t length = faultCount || *callsFile ? readlink(link, text, sizeof text - 1) : 0;
    text[length < 0 ? 0 : length] = 0;
    errno = before;
  }
  char text[4096];
};

} // namespace

#define NEXT(name) reinterpret_cast<decltype(&name)>(dlsym(RTLD_NEXT, #name))
/// A function that returns `failed` where it fails and sets errno.
#define FAULTY(result, name, parameters, arguments, path, failed)                                  \
  result name parameters {                                                                         \
    static const auto next = NEXT(name);                                                           \
    switch (verdictOn(#name, path)) {                                                              \
    case Fail:                                                                                     \
      return failed;                                                                               \
    case Nothing:                                                                                  \
      return 0;                                                                                    \
    default:                                                                                       \
      return next arguments;                                                                       \
    }                                                                                              \
  }
#define FAULTY_OPEN(name)                                                                          \
  int name(const char *path, int flags, ...) {                                                     \
    static const auto next = NEXT(name);                                                           \
    va_list rest;                                                                                  \
    va_start(rest, flags);                                                                         \
    const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;                                \
    va_end(rest);                                                                                  \
    return verdictOn("open", path) == Perform ? next(path, flags, mode) : -1;                      \
  }

extern "C" {

FAULTY_OPEN(open)
FAULTY_OPEN(open64)
FAULTY(FILE *, fopen, (const char *path, const char *mode), (path, mode), path, nullptr)
FAULTY(FILE *, fopen64, (const char *path, const char *mode), (path, mode), path, nullptr)
FAULTY(DIR *, opendir, (const char *path), (path), path, nullptr)
FAULTY(int, mkdir, (const char *path, mode_t mode) noexcept, (path, mode), path, -1)
FAULTY(int, unlink, (const char *path) noexcept, (path), path, -1)
FAULTY(int, rmdir, (const char *path) noexcept, (path), path, -1)
FAULTY(int, rename, (const char *from, const char *to) noexcept, (from, to), from, -1)
FAULTY(int, renameat2,
       (int at, const char *from, int to, const char *name, unsigned flags) noexcept,
       (at, from, to, name, flags), from, -1)
FAULTY(int, fsync, (int file), (file), PathOf(file).text, -1)
FAULTY(int, ftruncate, (int file, off_t bytes) noexcept, (file, bytes), PathOf(file).text, -1)
FAULTY(int, fallocate, (int file, int mode, off_t from, off_t bytes), (file, mode, from, bytes),
       PathOf(file).text, -1)
FAULTY(ssize_t, write, (int file, const void *data, size_t bytes), (file, data, bytes),
       PathOf(file).text, -1)
FAULTY(ssize_t, pwrite, (int file, const void *data, size_t bytes, off_t at),
       (file, data, bytes, at), PathOf(file).text, -1)
FAULTY(ssize_t, read, (int file, void *data, size_t bytes), (file, data, bytes), PathOf(file).text,
       -1)
// What programs call in their place that are compiled with _FORTIFY_SOURCE.
ssize_t __read_chk(int file, void *data, size_t bytes, size_t) { return read(file, data, bytes); }
int __open_2(const char *path, int flags) { return open(path, flags); }
int __open64_2(const char *path, int flags) { return open64(path, flags); }
FAULTY(int, flock, (int file, int how) noexcept, (file, how), PathOf(file).text, -1)
FAULTY(void *, mmap,
       (void *at, size_t bytes, int protection, int flags, int file, off_t from) noexcept,
       (at, bytes, protection, flags, file, from), file < 0 ? "" : PathOf(file).text,
       reinterpret_cast<void *>(-1))
FAULTY(pid_t, waitpid, (pid_t process, int *status, int how), (process, status, how), "", -1)

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                   void *argument) noexcept {
  static const auto next = NEXT(pthread_create);
  return verdictOn("pthread_create", "") == Perform ? next(thread, attributes, body, argument)
                                                    : errno;
}

pid_t fork() noexcept {
  static const auto next = NEXT(fork);
  const bool isFirst = self == kParent;
  const int number = isFirst ? forks.fetch_add(1) : self.load();
  const pid_t child = next();
  if (child == 0 && isFirst) {
    self = number;
    calls = 0;
    for (int i = 0; i < faultCount; ++i)
      faults[i].seen = 0;
  }
  return child;
}
}
