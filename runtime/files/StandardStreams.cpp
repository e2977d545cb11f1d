#include "runtime/files/StandardStreams.h"

#include "base/Error.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace fsdp::rt {

using namespace base;

static constexpr const char *kNullDevice = "/dev/null";

void prepareStandardStreams() {
  for (int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(number, F_GETFD) < 0 && errno == EBADF)
      open(kNullDevice, O_RDWR); // the lowest free descriptor, which is this one
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

void keepOutputOutOf(const std::vector<NamedFile> &files) {
  const FileIdentity output = identityOfDescriptor(STDOUT_FILENO);
  for (const NamedFile &file : files) {
    if (file.role != NamedFile::Stream || !(file.identity == output))
      continue;
    std::fflush(stdout);
    if (!(file.identity == identityOfDescriptor(STDERR_FILENO))) {
      dup2(STDERR_FILENO, STDOUT_FILENO);
      return;
    }
    const int null = open(kNullDevice, O_WRONLY | O_CLOEXEC);
    if (null < 0)
      throw Error(std::string("cannot open '") + kNullDevice + "': " + std::strerror(errno));
    dup2(null, STDOUT_FILENO);
    close(null);
    return;
  }
}

/// The reason why a part of a result on standard output was lost.
static bool outputIsResult = false;
static int lossReason = 0;

void requireOutput(bool isResult) { outputIsResult = isResult; }

void showOutput() {
  static bool told = false;
  if (std::fflush(stdout) == 0 && !std::ferror(stdout))
    return;
  const int reason = errno;
  std::clearerr(stdout);
  if (outputIsResult) {
    lossReason = lossReason ? lossReason : reason;
    return;
  }
  if (told)
    return;
  told = true;
  std::fprintf(stderr,
               "note: cannot write to standard output: %s; progress is no longer shown, training "
               "continues\n",
               std::strerror(reason));
}

void finishOutput() {
  const bool isWhole = std::fflush(stdout) == 0 && !std::ferror(stdout);
  const int reason = lossReason ? lossReason : isWhole ? 0 : errno;
  const std::string message =
      std::string("cannot write to standard output: ") + std::strerror(reason);
  if (reason == EPIPE)
    throw NoReader(message);
  if (reason)
    throw Error(message);
}

int finishResult() {
  try {
    finishOutput();
  } catch (const NoReader &) {
    return kExitNoReader;
  } catch (const Error &error) {
    throw error.asRefusal();
  }
  return kExitDone;
}

} // namespace fsdp::rt
