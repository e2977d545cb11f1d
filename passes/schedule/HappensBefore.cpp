//===- HappensBefore.cpp - reachability over streams and waits ------------===//

#include "passes/schedule/HappensBefore.h"

#include <algorithm>
#include <map>

using namespace mlir::fsdp::schedule;

std::vector<int> mlir::fsdp::schedule::findCycle(const std::vector<std::vector<int>> &dependencies,
                                                 std::vector<int> &order) {
  int size = static_cast<int>(dependencies.size());
  std::vector<int> missing(size);
  std::vector<std::vector<int>> dependents(size);
  for (int node = 0; node < size; ++node) {
    missing[node] = static_cast<int>(dependencies[node].size());
    for (int dependency : dependencies[node])
      dependents[dependency].push_back(node);
  }
  order.clear();
  for (int node = 0; node < size; ++node)
    if (missing[node] == 0)
      order.push_back(node);
  for (size_t i = 0; i < order.size(); ++i)
    for (int dependent : dependents[order[i]])
      if (--missing[dependent] == 0)
        order.push_back(dependent);
  if (static_cast<int>(order.size()) == size)
    return {};

  // Every remaining node depends on another remaining node, so following the dependencies finds a
  // cycle.
  int node = 0;
  while (missing[node] == 0)
    ++node;
  std::vector<int> path, position(size, -1);
  while (position[node] < 0) {
    position[node] = static_cast<int>(path.size());
    path.push_back(node);
    node = *std::find_if(dependencies[node].begin(), dependencies[node].end(),
                         [&](int dependency) { return missing[dependency] > 0; });
  }
  return {path.begin() + position[node], path.end()};
}

HappensBefore::HappensBefore(const std::vector<Launch> &launches)
    : stream(launches.size()), position(launches.size(), 0), previous(launches.size(), -1) {
  std::vector<std::vector<int>> dependencies(launches.size());
  std::map<int, int> numberOf;
  std::vector<int> last; // of each stream
  for (size_t i = 0; i < launches.size(); ++i) {
    int launch = static_cast<int>(i);
    dependencies[i] = launches[i].waits;
    auto [entry, isNew] = numberOf.try_emplace(launches[i].stream, numStreams);
    stream[i] = entry->second;
    if (isNew) {
      ++numStreams;
      last.push_back(launch);
      continue;
    }
    previous[i] = last[stream[i]];
    position[i] = position[previous[i]] + 1;
    dependencies[i].push_back(previous[i]);
    last[stream[i]] = launch;
  }
  std::vector<int> order;
  circle = findCycle(dependencies, order);
  clocks.assign(launches.size() * numStreams, 0);
  for (int launch : order) {
    int *own = clocks.data() + static_cast<size_t>(launch) * numStreams;
    for (int dependency : dependencies[launch]) {
      llvm::ArrayRef<int> clock = clockOf(dependency);
      for (int s = 0; s < numStreams; ++s)
        own[s] = std::max(own[s], clock[s]);
      own[stream[dependency]] = std::max(own[stream[dependency]], position[dependency] + 1);
    }
  }
}
