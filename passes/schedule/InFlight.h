//===- InFlight.h - launches in flight at a segment's start -----*- C++ -*-===//

#ifndef PASSES_SCHEDULE_INFLIGHT_H
#define PASSES_SCHEDULE_INFLIGHT_H

#include "passes/schedule/Reachability.h"

#include <map>

namespace mlir::fsdp::schedule {

/// Bits of tokens.
using TokenSet = std::vector<uint64_t>;

/// The tokens that imply that a launch is complete: one set for each path on which it may be in
/// flight, because paths imply different tokens. It is complete for a launch that has reached a
/// token of each set. Only minimal sets are kept. Combinations are numbered; number 0 has no set:
/// complete.
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

/// The launches in flight at the end of a segment that starts with `entry` and whose `size`
/// launches are numbered from `first` on. Each replaces its previous run, which precedes it on the
/// same stream.
InFlight leave(const InFlight &entry, Completions &completions, const Tokens &tokens,
               const Reachability &order, int first, int size);

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_INFLIGHT_H
