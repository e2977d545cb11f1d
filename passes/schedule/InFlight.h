//===- InFlight.h - what may still run when a segment starts ----*- C++ -*-===//

#ifndef PASSES_SCHEDULE_INFLIGHT_H
#define PASSES_SCHEDULE_INFLIGHT_H

#include "passes/schedule/Reachability.h"

#include <map>

namespace mlir::fsdp::schedule {

/// Bits of tokens.
using TokenSet = std::vector<uint64_t>;

/// By which tokens a launch is known to be complete: one set for each way on which it may have come
/// to be in flight, as what one path implies another may not. A launch that has reached some token
/// of each set knows that it is complete. Only sets that contain no other are kept. Combinations
/// are numbered; number 0 is no set at all: complete.
class Completions {
public:
  explicit Completions(int numStreams) : numStreams(numStreams) { intern({}); }

  int intern(std::vector<TokenSet> sets);
  int merge(int first, int second);
  const std::vector<TokenSet> &get(int number) const { return *all[number]; }

private:
  int numStreams;
  std::map<std::vector<TokenSet>, int> numbers;
  std::vector<const std::vector<TokenSet> *> all;
  std::map<std::pair<int, int>, int> merged;
};

/// The number in Completions of each launch of a role, numbered through all its segments.
using InFlight = std::vector<int>;

/// True iff a launch with completion `number` at the segment's start is complete whenever
/// `launch` starts.
bool isComplete(const Completions &completions, int number, const Reachability &order, int launch);

/// What is in flight at the end of a segment that starts with `entry` and whose launches, `size` of
/// them, are numbered from `first` on. Each of them takes the place of its run before, which, on
/// the same stream, it follows.
InFlight leave(const InFlight &entry, Completions &completions, const Tokens &tokens,
               const Reachability &order, int first, int size);

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_INFLIGHT_H
