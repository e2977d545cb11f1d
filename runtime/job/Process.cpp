#include "runtime/job/Process.h"
#include "base/Error.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

namespace fsdp::rt {

using namespace base;

namespace {

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

} // namespace

std::string bootIdentity() {
  std::string boot = textOf("/proc/sys/kernel/random/boot_id");
  return boot.substr(0, boot.find('\n'));
}

char stateOf(int pid) {
  const std::string text = statField(pid, 3);
  return text.empty() ? 'Z' : text[0];
}

int parentOf(int pid) {
  const std::string text = statField(pid, 4);
  return text.empty() ? 0 : std::atoi(text.c_str());
}

bool startedWith(int pid, const std::string &variable) {
  const std::string text = '\0' + textOf(format("/proc/%d/environ", pid));
  return text.find('\0' + variable + "=") != text.npos;
}

std::string commandOf(int pid) {
  const std::string name = textOf(format("/proc/%d/comm", pid));
  return name.substr(0, name.find('\n'));
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

} // namespace fsdp::rt
