#include "runtime/job/JobToken.h"
#include "base/Descriptor.h"
#include "base/Error.h"
#include "runtime/comm/Socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fsdp::rt {

using namespace base;

namespace {

constexpr std::size_t kShortest = 16, kLongest = 256;

std::string fileText(const char *path) {
  const Descriptor file(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file)
    throw Error(format("cannot open '%s' of FSDP_JOB_TOKEN_FILE: %s", path, std::strerror(errno)));
  struct stat status{};
  fstat(file.get(), &status);
  std::string text(2 * kLongest, '\0');
  const ssize_t got = S_ISREG(status.st_mode) ? read(file.get(), text.data(), text.size()) : -1;
  if (got < 0)
    throw Error(format("'%s' of FSDP_JOB_TOKEN_FILE is not a readable regular file", path));
  if (status.st_uid != geteuid() || (status.st_mode & 0077))
    throw Error(
        format("'%s' of FSDP_JOB_TOKEN_FILE got user %d and mode %04o, expected user %d and "
               "mode 0600, as others could read the token",
               path, static_cast<int>(status.st_uid), static_cast<unsigned>(status.st_mode & 07777),
               static_cast<int>(geteuid())));
  text.resize(static_cast<std::size_t>(got));
  const char *const blanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(blanks);
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(blanks) + 1 - first);
}

} // namespace

std::string jobToken(const Environment &environment) {
  const char *direct = environment("FSDP_JOB_TOKEN"), *path = environment("FSDP_JOB_TOKEN_FILE");
  if (!direct && !path)
    return "";
  if (direct && path)
    throw Error("got both FSDP_JOB_TOKEN and FSDP_JOB_TOKEN_FILE, expected one of them");
  const std::string token = direct ? direct : fileText(path);
  if (token.size() < kShortest || token.size() > kLongest)
    throw Error(format("the job's token got %zu characters, expected %zu to %zu; make one with "
                       "'fsdpc --new-token'",
                       token.size(), kShortest, kLongest));
  return token;
}

void requireToken(const LaunchEnvironment &launched, const std::string &token, bool trustNetwork) {
  if (trustNetwork || !token.empty())
    return;
  std::string reason;
  for (const Address &address : resolve(launched.address, launched.port, reason))
    if (!address.isLoopback())
      throw Error(format(
          "ranks would connect over the network at '%s' (%s), where any host could join the job: "
          "set "
          "FSDP_JOB_TOKEN to the same secret on every rank, or FSDP_JOB_TOKEN_FILE to a file of "
          "mode 0600 that holds it, or pass --trust-network if no other host can reach that "
          "address",
          launched.address.c_str(), address.describe().c_str()));
}

} // namespace fsdp::rt
