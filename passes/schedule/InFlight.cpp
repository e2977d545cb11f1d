//===- InFlight.cpp -------------------------------------------------------===//

#include "passes/schedule/InFlight.h"

#include <algorithm>
#include <limits>

using namespace mlir::fsdp::schedule;

static bool has(const TokenSet &set, int token) { return set[token / 64] >> (token % 64) & 1; }

static void insert(TokenSet &set, int token) { set[token / 64] |= uint64_t(1) << (token % 64); }

static bool isSubset(const TokenSet &small, const TokenSet &large) {
  for (size_t w = 0; w < small.size(); ++w)
    if (small[w] & ~large[w])
      return false;
  return true;
}

static bool intersects(const TokenSet &set, const uint64_t *tokens) {
  for (size_t w = 0; w < set.size(); ++w)
    if (set[w] & tokens[w])
      return true;
  return false;
}

int Completions::intern(std::vector<TokenSet> sets) {
  // Where every stream implies it, no launch that follows can start before: it is complete.
  auto isKnown = [&](const TokenSet &set) {
    for (int s = 0; s < numStreams; ++s)
      if (!has(set, s))
        return false;
    return true;
  };
  sets.erase(std::remove_if(sets.begin(), sets.end(), isKnown), sets.end());
  std::sort(sets.begin(), sets.end());
  sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
  // To reach a token of a set is to reach one of each superset.
  std::vector<TokenSet> kept;
  for (const TokenSet &set : sets)
    if (std::none_of(sets.begin(), sets.end(),
                     [&](const TokenSet &other) { return &other != &set && isSubset(other, set); }))
      kept.push_back(set);
  auto [entry, added] = numbers.try_emplace(std::move(kept), static_cast<int>(all.size()));
  if (added)
    all.push_back(&entry->first);
  return entry->second;
}

int Completions::merge(int first, int second) {
  if (first == second || second == 0)
    return first;
  if (first == 0)
    return second;
  auto [entry, added] = merged.try_emplace(std::minmax(first, second), 0);
  if (added) {
    std::vector<TokenSet> both = get(first);
    both.insert(both.end(), get(second).begin(), get(second).end());
    entry->second = intern(std::move(both));
  }
  return entry->second;
}

bool mlir::fsdp::schedule::isComplete(const Completions &completions, int number,
                                      const Reachability &order, int launch) {
  const std::vector<TokenSet> &sets = completions.get(number);
  return std::all_of(sets.begin(), sets.end(),
                     [&](const TokenSet &set) { return intersects(set, order.tokensOf(launch)); });
}

namespace {

/// The completions that the launches of a segment have at its end.
class OwnCompletions {
public:
  OwnCompletions(Completions &completions, const Tokens &tokens, const Reachability &order)
      : completions(completions), tokens(tokens), order(order), latest(tokens.numStreams()) {}

  /// The number of `launch`; to be called with each launch of a stream in order. The tokens that
  /// imply its completion are the same for all launches up to the next one that some of these do
  /// not imply.
  int numberOf(int launch) {
    const int stream = order.streamOf(launch), position = order.positionOf(launch);
    auto &[number, until] = latest[stream];
    if (position < until)
      return number;
    until = std::numeric_limits<int>::max();
    TokenSet set(tokens.words(), 0);
    for (int token = 0; token < tokens.size(); ++token)
      if (const int implied = impliedOn(stream, token); position < implied) {
        insert(set, token);
        until = std::min(until, implied);
      }
    number = completions.intern({set});
    return number;
  }

private:
  /// How many launches of `stream`, its first ones, `token` implies.
  int impliedOn(int stream, int token) const {
    const int definer = order.getDefiner(token);
    if (definer < 0)
      return 0;
    return order.streamOf(definer) == stream ? order.positionOf(definer) + 1
                                             : order.completeOn(stream, definer);
  }

  Completions &completions;
  const Tokens &tokens;
  const Reachability &order;
  /// Of each stream the latest number, and the position of the first launch that may have another.
  std::vector<std::pair<int, int>> latest;
};

} // namespace

InFlight mlir::fsdp::schedule::leave(const InFlight &entry, Completions &completions,
                                     const Tokens &tokens, const Reachability &order, int first,
                                     int size) {
  std::map<int, int> renamed{{0, 0}};
  OwnCompletions own(completions, tokens, order);
  InFlight result(entry.size(), 0);
  for (int g = 0; g < static_cast<int>(entry.size()); ++g) {
    if (first <= g && g < first + size) {
      result[g] = own.numberOf(g - first);
      continue;
    }
    auto [known, added] = renamed.try_emplace(entry[g], 0);
    if (added) {
      std::vector<TokenSet> sets;
      for (const TokenSet &before : completions.get(entry[g])) {
        TokenSet after(tokens.words(), 0);
        for (int token = 0; token < tokens.size(); ++token) {
          int definer = order.getDefiner(token);
          if (definer < 0 ? has(before, token) : intersects(before, order.tokensOf(definer)))
            insert(after, token);
        }
        sets.push_back(std::move(after));
      }
      known->second = completions.intern(std::move(sets));
    }
    result[g] = known->second;
  }
  return result;
}
