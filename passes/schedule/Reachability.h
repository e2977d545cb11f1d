//===- Reachability.h - the checker's own order of launches -----*- C++ -*-===//
// For the checker only, which must share no code with the planner and the wait elision.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_SCHEDULE_REACHABILITY_H
#define PASSES_SCHEDULE_REACHABILITY_H

#include "passes/schedule/Problem.h"

namespace mlir::fsdp::schedule {

/// A dependency of a launch on something other than a launch: the position of a stream, or an
/// event. Streams of the role come first, then its events.
class Tokens {
public:
  explicit Tokens(const Role &role)
      : streams(static_cast<int>(role.streams.size())),
        count(streams + static_cast<int>(role.events.size())) {}

  int size() const { return count; }
  int words() const { return (count + 63) / 64; }
  int ofStream(int stream) const { return stream; }
  int ofEvent(int event) const { return streams + event; }
  int numStreams() const { return streams; }

private:
  int streams, count;
};

/// The launches that `node` depends on directly, or that are part of a cycle: nodes of which each
/// depends on the next one, and the last on the first. Empty where node i of `dependencies` never
/// depends on itself.
std::vector<int> findCircle(const std::vector<std::vector<int>> &dependencies);

/// Which launches of a segment are complete when another one starts, and which of the tokens with
/// which the segment was entered are reached then: bits, closed over streams, waits and events in
/// issue order.
class Reachability {
public:
  /// Indices in `segment` are in range.
  Reachability(const Role &role, const Segment &segment);

  /// Launches that wait for one another; the order is then meaningless.
  const std::vector<int> &getCircle() const { return circle; }
  /// True iff `first` is complete whenever `second` starts.
  bool before(int first, int second) const { return test(row(second), tokenWords * 64 + first); }
  /// True iff the launch of `token` at the segment's start is complete whenever `launch` starts.
  bool reaches(int launch, int token) const { return test(row(launch), token); }
  /// The tokens that `launch` reaches, as bits.
  const uint64_t *tokensOf(int launch) const { return row(launch); }

  /// The launches, and the tokens of the start, on which `launch` depends directly.
  const std::vector<int> &getDependencies(int launch) const { return dependencies[launch]; }
  const std::vector<int> &getEntryTokens(int launch) const { return entryTokens[launch]; }
  /// The launch of `token` at the end of the segment; -1: the same as at its start.
  int getDefiner(int token) const { return definers[token]; }

private:
  const uint64_t *row(int launch) const {
    return bits.data() + static_cast<size_t>(launch) * words;
  }
  static bool test(const uint64_t *row, int bit) { return row[bit / 64] >> (bit % 64) & 1; }

  int tokenWords, words;
  std::vector<std::vector<int>> dependencies, entryTokens;
  std::vector<int> definers, circle;
  std::vector<uint64_t> bits; ///< of each launch: the tokens, then the launches
};

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_REACHABILITY_H
