//===- Batches.cpp --------------------------------------------------------===//

#include "test/mutation/Batches.h"

#include "test/mutation/Seeds.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace fsdp;

namespace {

constexpr int64_t kBatch = 200;

/// What a child tells its parent.
struct Shared {
  int64_t at;
  int64_t counters[mutation::kMostCounters];
  char complaint[512];
};

void limitTime(int seconds) {
  itimerval timer{{0, 0}, {seconds, 0}};
  setitimer(ITIMER_PROF, &timer, nullptr);
}

} // namespace

mutation::Outcome mutation::runBatches(int64_t count, const Limits &limits,
                                       const std::function<std::string(int64_t, int64_t *)> &run) {
  Outcome outcome;
  if (int64_t only = numberFrom("FSDP_MUTANT", -1); only >= 0) {
    if (std::string complaint = run(only, outcome.counters); !complaint.empty())
      outcome.findings[only] = complaint;
    return outcome;
  }
  auto *shared = static_cast<Shared *>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                                            MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  for (int64_t begin = 0; begin < count;) {
    int64_t end = std::min(begin + kBatch, count);
    std::fflush(nullptr);
    shared->complaint[0] = 0;
    pid_t child = fork();
    if (child == 0) {
      rlimit memory{static_cast<rlim_t>(limits.bytes), static_cast<rlim_t>(limits.bytes)};
      setrlimit(RLIMIT_AS, &memory);
      rlimit cores{0, 0};
      setrlimit(RLIMIT_CORE, &cores);
      if (std::freopen("/dev/null", "w", stderr) == nullptr)
        _exit(2);
      for (int64_t number = begin; number < end; ++number) {
        shared->at = number;
        limitTime(limits.seconds);
        std::string complaint;
        try {
          complaint = run(number, shared->counters);
        } catch (const std::bad_alloc &) {
          complaint = "out of memory";
        } catch (const std::exception &error) {
          complaint = std::string("uncaught: ") + error.what();
        }
        if (!complaint.empty()) {
          std::snprintf(shared->complaint, sizeof(shared->complaint), "%s", complaint.c_str());
          _exit(1);
        }
      }
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
      begin = end;
      continue;
    }
    int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    outcome.findings[shared->at] = signal == SIGPROF     ? "took too long"
                                   : signal              ? std::string("ended by ") + strsignal(signal)
                                   : shared->complaint[0] ? shared->complaint
                                                          : "ended its process";
    begin = shared->at + 1;
  }
  std::copy(std::begin(shared->counters), std::end(shared->counters), outcome.counters);
  munmap(shared, sizeof(Shared));
  return outcome;
}
