#include "base/StandardOutput.h"

#include "base/Error.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace base {

void printResult(const std::string &text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
    return;
  const int reason = errno;
  if (reason == EPIPE) {
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  throw Error(std::string("cannot write to standard output: ") + std::strerror(reason));
}

} // namespace base
