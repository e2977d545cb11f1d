//===- HappensBefore.cpp - reachability over streams and waits ------------===//

#include "passes/schedule/HappensBefore.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>

using namespace mlir::fsdp::schedule;

/// The nodes that depend on each node, in their order.
static Dependencies reverse(const Dependencies &dependencies) {
  const int size = dependencies.size();
  std::vector<int> begins(size + 1);
  for (int node = 0; node < size; ++node)
    for (int dependency : dependencies[node])
      ++begins[dependency + 1];
  for (int node = 0; node < size; ++node)
    begins[node + 1] += begins[node];
  std::vector<int> next(begins.begin(), begins.end()), all(begins.back());
  for (int node = 0; node < size; ++node)
    for (int dependency : dependencies[node])
      all[next[dependency]++] = node;
  return {std::move(begins), std::move(all)};
}

std::vector<int> mlir::fsdp::schedule::findCycle(const Dependencies &dependencies,
                                                 std::vector<int> &order) {
  const int size = dependencies.size();
  std::vector<int> missing(size);
  const Dependencies dependents = reverse(dependencies);
  for (int node = 0; node < size; ++node)
    missing[node] = static_cast<int>(dependencies[node].size());
  order.clear();
  order.reserve(size);
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
    node =
        *llvm::find_if(dependencies[node], [&](int dependency) { return missing[dependency] > 0; });
  }
  return {path.begin() + position[node], path.end()};
}

HappensBefore::HappensBefore(const std::vector<Launch> &launches)
    : stream(launches.size()), position(launches.size(), 0), previous(launches.size(), -1) {
  Dependencies dependencies;
  std::map<int, int> numberOf;
  std::vector<int> last; // of each stream
  for (size_t i = 0; i < launches.size(); ++i) {
    int launch = static_cast<int>(i);
    for (int wait : launches[i].waits)
      dependencies.add(wait);
    auto [entry, isNew] = numberOf.try_emplace(launches[i].stream, numStreams);
    stream[i] = entry->second;
    if (isNew) {
      ++numStreams;
      last.push_back(launch);
      dependencies.close();
      continue;
    }
    previous[i] = last[stream[i]];
    position[i] = position[previous[i]] + 1;
    dependencies.add(previous[i]);
    dependencies.close();
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
