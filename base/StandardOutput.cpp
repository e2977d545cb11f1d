#include "base/StandardOutput.h"

#include "base/Error.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <thread>
#include <unistd.h>

namespace base {

[[noreturn]] static void endWithoutReader() {
  std::signal(SIGPIPE, SIG_DFL);
  std::raise(SIGPIPE);
  std::abort();
}

void printResult(const std::string &text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
    return;
  const int reason = errno;
  if (reason == EPIPE)
    endWithoutReader();
  throw Error(std::string("cannot write to standard output: ") + std::strerror(reason));
}

void waitWhileRead(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  pollfd output{STDOUT_FILENO, 0, 0};
  if (poll(&output, 1, static_cast<int>(time.count())) > 0 && (output.revents & POLLERR))
    endWithoutReader();
  std::this_thread::sleep_until(end); // poll() returns early on signals and closed terminals
}

} // namespace base
