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
/// which the segment was entered are reached then, closed over streams, waits and events in issue
/// order. A launch follows the one before it on its stream, so the complete launches of a stream
/// are its first ones: a number for each stream instead of a bit for each launch, of which the
/// steps of a pipeline have tens of thousands.
class Reachability {
public:
  /// Indices in `segment` are in range.
  Reachability(const Role &role, const Segment &segment);

  /// Launches that wait for one another; the order is then meaningless.
  const std::vector<int> &getCircle() const { return circle; }
  /// True iff `first` is complete whenever `second` starts.
  bool before(int first, int second) const {
    return completeOn(streams[first], second) > positions[first];
  }
  /// How many launches of `stream`, its first ones, are complete whenever `launch` starts.
  int completeOn(int stream, int launch) const {
    return complete[static_cast<size_t>(launch) * numStreams + stream];
  }
  int streamOf(int launch) const { return streams[launch]; }
  /// How many launches of the segment are before `launch` on its stream.
  int positionOf(int launch) const { return positions[launch]; }
  /// True iff the launch of `token` at the segment's start is complete whenever `launch` starts.
  bool reaches(int launch, int token) const {
    return tokensOf(launch)[token / 64] >> (token % 64) & 1;
  }
  /// The tokens that `launch` reaches, as bits.
  const uint64_t *tokensOf(int launch) const {
    return reached.data() + static_cast<size_t>(launch) * tokenWords;
  }

  /// The launches, and the tokens of the start, on which `launch` depends directly.
  const std::vector<int> &getDependencies(int launch) const { return dependencies[launch]; }
  const std::vector<int> &getEntryTokens(int launch) const { return entryTokens[launch]; }
  /// The launch of `token` at the end of the segment; -1: the same as at its start.
  int getDefiner(int token) const { return definers[token]; }

private:
  void close(int launch);

  int tokenWords, numStreams;
  std::vector<std::vector<int>> dependencies, entryTokens;
  std::vector<int> definers, circle;
  std::vector<int> streams, positions; ///< of each launch
  std::vector<int> complete;           ///< of each launch: a number for each stream
  std::vector<uint64_t> reached;       ///< of each launch: the tokens
};

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_REACHABILITY_H
