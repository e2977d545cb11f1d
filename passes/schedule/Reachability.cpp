//===- Reachability.cpp ---------------------------------------------------===//

#include "passes/schedule/Reachability.h"

#include <algorithm>

using namespace mlir::fsdp::schedule;

std::vector<int>
mlir::fsdp::schedule::findCircle(const std::vector<std::vector<int>> &dependencies) {
  enum Color : char { unseen, open, closed };
  std::vector<Color> colors(dependencies.size(), unseen);
  std::vector<std::pair<int, size_t>> path; // node, next dependency
  for (size_t start = 0; start < dependencies.size(); ++start) {
    if (colors[start] != unseen)
      continue;
    path.push_back({static_cast<int>(start), 0});
    colors[start] = open;
    while (!path.empty()) {
      auto &[node, next] = path.back();
      if (next == dependencies[node].size()) {
        colors[node] = closed;
        path.pop_back();
        continue;
      }
      int other = dependencies[node][next++];
      if (colors[other] == unseen) {
        colors[other] = open;
        path.push_back({other, 0});
      } else if (colors[other] == open) {
        std::vector<int> circle;
        for (size_t i = 0; i < path.size(); ++i)
          if (!circle.empty() || path[i].first == other)
            circle.push_back(path[i].first);
        std::rotate(circle.begin(), std::min_element(circle.begin(), circle.end()), circle.end());
        return circle;
      }
    }
  }
  return {};
}

Reachability::Reachability(const Role &role, const Segment &segment) {
  Tokens tokens(role);
  size_t size = segment.launches.size();
  tokenWords = tokens.words();
  numStreams = tokens.numStreams();
  dependencies.resize(size);
  entryTokens.resize(size);
  definers.assign(tokens.size(), -1);
  bool forward = false;
  for (size_t l = 0; l < size; ++l) {
    const Launch &launch = segment.launches[l];
    auto dependOn = [&](int token) {
      if (definers[token] >= 0)
        dependencies[l].push_back(definers[token]);
      else
        entryTokens[l].push_back(token);
    };
    dependencies[l] = launch.waits;
    for (int wait : launch.waits)
      forward |= wait >= static_cast<int>(l);
    const int before = definers[tokens.ofStream(launch.stream)];
    streams.push_back(launch.stream);
    positions.push_back(before < 0 ? 0 : positions[before] + 1);
    dependOn(tokens.ofStream(launch.stream));
    for (int event : launch.awaits)
      dependOn(tokens.ofEvent(event));
    definers[tokens.ofStream(launch.stream)] = static_cast<int>(l);
    for (int event : launch.records)
      definers[tokens.ofEvent(event)] = static_cast<int>(l);
  }
  complete.assign(size * numStreams, 0);
  reached.assign(size * tokenWords, 0);
  if (forward) {
    circle = findCircle(dependencies);
    return; // a wait for a launch that is not issued yet: there is no order
  }
  for (size_t l = 0; l < size; ++l)
    close(static_cast<int>(l));
}

/// Everything that `launch` depends on is closed before.
void Reachability::close(int launch) {
  int *counts = complete.data() + static_cast<size_t>(launch) * numStreams;
  uint64_t *bits = reached.data() + static_cast<size_t>(launch) * tokenWords;
  for (int token : entryTokens[launch])
    bits[token / 64] |= uint64_t(1) << (token % 64);
  for (int dependency : dependencies[launch]) {
    for (int s = 0; s < numStreams; ++s)
      counts[s] = std::max(counts[s], completeOn(s, dependency));
    int &own = counts[streams[dependency]];
    own = std::max(own, positions[dependency] + 1);
    const uint64_t *others = tokensOf(dependency);
    for (int w = 0; w < tokenWords; ++w)
      bits[w] |= others[w];
  }
}
