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
  words = tokenWords + static_cast<int>((size + 63) / 64);
  dependencies.resize(size);
  entryTokens.resize(size);
  definers.assign(tokens.size(), -1);
  for (size_t l = 0; l < size; ++l) {
    const Launch &launch = segment.launches[l];
    auto dependOn = [&](int token) {
      if (definers[token] >= 0)
        dependencies[l].push_back(definers[token]);
      else
        entryTokens[l].push_back(token);
    };
    dependencies[l] = launch.waits;
    dependOn(tokens.ofStream(launch.stream));
    for (int event : launch.awaits)
      dependOn(tokens.ofEvent(event));
    definers[tokens.ofStream(launch.stream)] = static_cast<int>(l);
    for (int event : launch.records)
      definers[tokens.ofEvent(event)] = static_cast<int>(l);
  }
  bits.assign(size * words, 0);
  bool forward = false;
  for (size_t l = 0; l < size; ++l)
    for (int wait : segment.launches[l].waits)
      forward |= wait >= static_cast<int>(l);
  if (forward) {
    circle = findCircle(dependencies);
    return; // a wait for a launch that is not issued yet: there is no order
  }
  for (size_t l = 0; l < size; ++l) {
    uint64_t *own = bits.data() + l * words;
    for (int token : entryTokens[l])
      own[token / 64] |= uint64_t(1) << (token % 64);
    for (int dependency : dependencies[l]) {
      const uint64_t *other = row(dependency);
      // Launches from `dependency` on are not in its row.
      int end = tokenWords + dependency / 64 + 1;
      for (int w = 0; w < end; ++w)
        own[w] |= other[w];
      own[tokenWords + dependency / 64] |= uint64_t(1) << (dependency % 64);
    }
  }
}
