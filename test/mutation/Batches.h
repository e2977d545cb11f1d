//===- Batches.h - mutants in processes of their own ------------*- C++ -*-===//

#ifndef TEST_MUTATION_BATCHES_H
#define TEST_MUTATION_BATCHES_H

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace fsdp::mutation {

/// Limits of a process: for each mutant, seconds of one core; for all of them, bytes of memory.
struct Limits {
  int seconds = 20;
  int64_t bytes = int64_t(6) << 30;
};

constexpr int kMaxCounters = 16;

/// Mutants, both ends included.
struct Range {
  int64_t first, last;
};

/// The request of FSDP_MUTANT.
std::optional<Range> getRange();

/// What became of the mutants.
struct Outcome {
  int64_t counters[kMaxCounters] = {}; ///< as `run` counted
  /// The mutants that ended their process, or that `run` complained of, and how.
  std::map<int64_t, std::string> findings;
};

/// Calls `run(number, counters)` for the numbers [0, count), many in one forked process after
/// another. `run` returns a complaint or nothing; a signal, and what passes the limits, is a
/// finding too, and the rest goes on in a new process. With the environment variable FSDP_MUTANT=N
/// only that one is run, with FSDP_MUTANT=M-N those from M to N, in this process and without
/// limits: for a debugger or for valgrind.
Outcome runBatches(int64_t count, const Limits &limits,
                   const std::function<std::string(int64_t, int64_t *)> &run);

} // namespace fsdp::mutation

#endif // TEST_MUTATION_BATCHES_H
