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

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifdef SANITIZED
constexpr bool kHasShadowMemory = true; // terabytes of addresses
#else
constexpr bool kHasShadowMemory = false;
#endif

/// The message of a child to its parent.
struct Shared {
  int64_t at;
  int64_t counters[mutation::kMaxCounters];
  char complaint[512];
};

void limitTime(int seconds) {
  itimerval timer{{0, 0}, {seconds, 0}};
  setitimer(ITIMER_PROF, &timer, nullptr);
}

} // namespace

std::optional<mutation::Range> mutation::getRange() {
  const char *text = std::getenv("FSDP_MUTANT");
  if (!text)
    return std::nullopt;
  char *end;
  int64_t first = std::strtoll(text, &end, 10);
  return Range{first, *end == '-' ? std::strtoll(end + 1, nullptr, 10) : first};
}

mutation::Outcome mutation::runBatches(int64_t count, const Limits &limits,
                                       const std::function<std::string(int64_t, int64_t *)> &run) {
  Outcome outcome;
  if (std::optional<Range> range = getRange()) {
    for (int64_t number = range->first; number <= range->last; ++number)
      if (std::string complaint = run(number, outcome.counters); !complaint.empty())
        outcome.findings[number] = complaint;
    return outcome;
  }
  auto *shared = static_cast<Shared *>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  for (int64_t begin = 0; begin < count;) {
    int64_t end = std::min(begin + kBatch, count);
    std::fflush(nullptr);
    shared->complaint[0] = 0;
    pid_t child = fork();
    if (child == 0) {
      if (!kHasShadowMemory) {
        rlimit memory{static_cast<rlim_t>(limits.bytes), static_cast<rlim_t>(limits.bytes)};
        setrlimit(RLIMIT_AS, &memory);
      }
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
    outcome.findings[shared->at] = signal == SIGPROF ? "took too long"
                                   : signal          ? std::string("ended by ") + strsignal(signal)
                                   : shared->complaint[0] ? shared->complaint
                                                          : "ended its process";
    // What an earlier one has broken may end a later one.
    if (shared->at > begin)
      outcome.findings[shared->at] += " (FSDP_MUTANT=" + std::to_string(begin) + "-" +
                                      std::to_string(shared->at) + " repeats its process)";
    begin = shared->at + 1;
  }
  std::copy(std::begin(shared->counters), std::end(shared->counters), outcome.counters);
  munmap(shared, sizeof(Shared));
  return outcome;
}
