#include "runtime/job/Process.h"
#include "base/Error.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

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
  // The command's name is in parentheses and may contain any character.
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

} // namespace fsdp::rt
