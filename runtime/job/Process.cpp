#include "runtime/job/Process.h"
#include "base/Error.h"
#include "base/PrintableText.h"
#include "runtime/job/Launcher.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <poll.h>
#include <sstream>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace fsdp::rt {

using namespace base;

namespace {

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434 // the same on every architecture
#endif

std::string textOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Field `number` of /proc/PID/stat, counted from 1; the third and later.
std::string statField(int pid, int number) {
  const std::string text = textOf(format("/proc/%d/stat", pid));
  // The command's name stands in parentheses and may hold anything.
  const std::size_t behind = text.rfind(')');
  if (behind == text.npos)
    return "";
  std::istringstream words(text.substr(behind + 1));
  std::string word;
  for (int field = 3; words >> word; ++field)
    if (field == number)
      return word;
  return "";
}

int parentOf(int pid) {
  const std::string text = statField(pid, 4);
  return text.empty() ? 0 : std::atoi(text.c_str());
}

/// Whether a process was started with an environment variable. One that may not be looked at, such
/// as another user's, was not.
bool startedWith(int pid, const std::string &variable) {
  const std::string text = '\0' + textOf(format("/proc/%d/environ", pid));
  return text.find('\0' + variable + "=") != text.npos;
}

/// The variable by which a launcher numbers its ranks; empty for those that somebody set by hand.
std::string rankVariable(const LaunchEnvironment &launched) {
  if (launched.by == "Open MPI")
    return "OMPI_COMM_WORLD_RANK";
  if (launched.by == "PMI")
    return "PMI_RANK";
  if (launched.by == "Slurm")
    return "SLURM_PROCID";
  return std::getenv("TORCHELASTIC_RUN_ID") ? "RANK" : "";
}

} // namespace

std::string bootIdentity() {
  std::string boot = textOf("/proc/sys/kernel/random/boot_id");
  return boot.substr(0, boot.find('\n'));
}

char stateOf(int pid) {
  const std::string text = statField(pid, 3);
  return text.empty() ? 'Z' : text[0];
}

std::uint64_t startTimeOf(int pid) {
  const std::string text = statField(pid, 22);
  return text.empty() ? 0 : std::strtoull(text.c_str(), nullptr, 10);
}

ProcessIdentity ProcessIdentity::ofSelf() {
  ProcessIdentity self;
  self.pid = static_cast<int>(getpid());
  self.startTime = startTimeOf(self.pid);
  struct stat processes{};
  stat("/proc/self/ns/pid", &processes);
  self.pidNamespace = processes.st_ino;
  std::snprintf(self.boot, sizeof self.boot, "%s", bootIdentity().c_str());
  return self;
}

ProcessIdentity::Liveness ProcessIdentity::liveness() const {
  const ProcessIdentity self = ofSelf();
  if (std::strncmp(boot, self.boot, sizeof boot) != 0)
    return Gone;
  if (pidNamespace != self.pidNamespace)
    return Elsewhere;
  if (pid <= 0 || (kill(pid, 0) != 0 && errno == ESRCH))
    return Gone;
  return startTime && startTime != startTimeOf(pid) ? Gone : Alive;
}

LauncherWatch::LauncherWatch() {
  const std::optional<LaunchEnvironment> launched = detectLauncher();
  const std::string variable = launched ? rankVariable(*launched) : "";
  if (variable.empty())
    return;
  pid_ = static_cast<int>(getppid());
  while (pid_ > 0 && startedWith(pid_, variable))
    pid_ = parentOf(pid_);
  std::string name = textOf(format("/proc/%d/comm", pid_));
  description_ = format("the launcher '%s' (process %d)",
                        printable(name.substr(0, name.find('\n')), 32).c_str(), pid_);
  descriptor_ = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0))); // closed on exec
}

bool LauncherWatch::gone() const {
  if (pid_ <= 0)
    return false;
  if (!descriptor_) // Linux before 5.3
    return kill(pid_, 0) != 0 && errno == ESRCH;
  pollfd entry{descriptor_.get(), POLLIN, 0};
  return poll(&entry, 1, 0) > 0;
}

} // namespace fsdp::rt
