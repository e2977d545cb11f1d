//===- HeaviestAntichain.cpp - a flow of weights through a partial order --===//

#include "passes/schedule/HeaviestAntichain.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

using namespace mlir::fsdp::schedule;

namespace {

/// Maximum flow by augmenting along shortest paths in levels (Dinic).
class FlowNetwork {
public:
  explicit FlowNetwork(int nodes) : first(nodes, -1), last(nodes, -1) {}

  /// Adds an edge; returns its number.
  int add(int from, int to, int64_t capacity) {
    const int number = append(from, {to, -1, capacity});
    append(to, {from, -1, 0});
    return number;
  }

  /// Changes the flow through `edge`, which has the capacity for it.
  void pass(int edge, int64_t more) {
    edges[edge].capacity -= more;
    edges[edge ^ 1].capacity += more;
  }

  /// Enlarges the flow as far as possible.
  void maximize(int source, int sink) {
    while (findLevels(source, sink)) {
      next = first;
      while (push(source, sink, std::numeric_limits<int64_t>::max()) > 0) {
      }
    }
  }

  /// After `maximize`: whether `node` can still be reached, that is, is on the source's side.
  bool isBeforeCut(int node) const { return level[node] >= 0; }

private:
  struct Edge {
    int to;
    int next; ///< of the same node; -1: it is the last one
    int64_t capacity;
  };

  /// Appends `edge` to those of `node`; returns its number.
  int append(int node, Edge edge) {
    const int number = static_cast<int>(edges.size());
    edges.push_back(edge);
    (last[node] < 0 ? first[node] : edges[last[node]].next) = number;
    last[node] = number;
    return number;
  }

  bool findLevels(int source, int sink) {
    level.assign(first.size(), -1);
    level[source] = 0;
    reached.assign(1, source);
    for (size_t i = 0; i < reached.size(); ++i) {
      const int node = reached[i];
      for (int index = first[node]; index >= 0; index = edges[index].next)
        if (edges[index].capacity > 0 && level[edges[index].to] < 0) {
          level[edges[index].to] = level[node] + 1;
          reached.push_back(edges[index].to);
        }
    }
    return level[sink] >= 0;
  }

  int64_t push(int node, int sink, int64_t limit) {
    if (node == sink)
      return limit;
    for (int &index = next[node]; index >= 0; index = edges[index].next) {
      if (edges[index].capacity <= 0 || level[edges[index].to] != level[node] + 1)
        continue;
      if (int64_t pushed = push(edges[index].to, sink, std::min(limit, edges[index].capacity))) {
        pass(index, pushed);
        return pushed;
      }
    }
    return 0;
  }

  std::vector<int> first, last; ///< edges of each node
  std::vector<Edge> edges;
  std::vector<int> level, reached;
  std::vector<int> next; ///< edges of which the earlier ones let nothing pass
};

/// The weights that nodes take from earlier ones. Node x is the source side of an item,
/// `count` + x its sink side; an item may pass on the weight that it takes.
class ChainFlow {
public:
  ChainFlow(const std::vector<std::vector<int>> &successors, const std::vector<int> &order,
            const std::vector<int64_t> &weights)
      : count(static_cast<int>(weights.size())), source(2 * count), sink(source + 1), order(order),
        weights(weights), network(2 * count + 2), nodes(count) {
    constexpr int64_t infinite = std::numeric_limits<int64_t>::max() / 4;
    for (int x = 0; x < count; ++x) {
      Node &node = nodes[x];
      node.given = network.add(source, x, weights[x]);
      node.taken = network.add(count + x, sink, weights[x]);
      node.handed = network.add(count + x, x, infinite);
      for (int y : successors[x])
        nodes[y].before.push_back({x, network.add(x, count + y, infinite), 0});
    }
    std::vector<int> place(count), firstBehind(count, count);
    for (int i = 0; i < count; ++i)
      place[order[i]] = i;
    for (int x = 0; x < count; ++x)
      for (int y : successors[x])
        firstBehind[x] = std::min(firstBehind[x], place[y]);
    for (int x = 0; x < count; ++x)
      for (int y : successors[x]) {
        Node &node = nodes[x];
        node.last = std::max(node.last, place[y]);
        if (node.heir < 0 || firstBehind[y] < firstBehind[node.heir])
          node.heir = y;
      }
  }

  std::vector<int> run() {
    std::vector<std::vector<int>> ending(count); // the nodes whose last successor is there
    for (int x = 0; x < count; ++x)
      if (nodes[x].last >= 0)
        ending[nodes[x].last].push_back(x);
    for (int i = 0; i < count; ++i) {
      take(order[i]);
      for (int x : ending[i])
        bequeath(x, i);
    }
    for (int i = count; i-- > 0;)
      giveBack(order[i]);
    network.maximize(source, sink);
    std::vector<int> together;
    for (int x = 0; x < count; ++x)
      if (network.isBeforeCut(x) && !network.isBeforeCut(count + x))
        together.push_back(x);
    return together;
  }

private:
  /// From an earlier node to one directly behind it.
  struct Link {
    int from, edge;
    int64_t handed; ///< the part of the flow that is handed on
  };
  struct Node {
    int given = -1, taken = -1, handed = -1; ///< edges
    std::vector<Link> before;
    int last = -1; ///< the place of the last successor
    int heir = -1; ///< the successor that ends first: whatever comes later is behind it too
    int64_t own = 0,
            stock = 0; ///< the weight it gives, and the rest of that and of the weight handed to it
  };

  /// `x` takes its weight from those before it, and has its own to give.
  void take(int x) {
    Node &node = nodes[x];
    int64_t lacks = weights[x];
    for (Link &link : node.before) {
      const int64_t part = std::min(lacks, nodes[link.from].stock);
      if (part == 0)
        continue;
      nodes[link.from].stock -= part;
      network.pass(link.edge, part);
      lacks -= part;
    }
    network.pass(node.taken, weights[x] - lacks);
    network.pass(node.given, weights[x]);
    node.own = node.stock = weights[x];
  }

  /// Passes the remaining weight of `x` to its heir, and from there to the next one, if that heir
  /// has no successor behind place `now` either.
  void bequeath(int x, int now) {
    while (nodes[x].stock > 0 && nodes[x].heir >= 0 && nodes[x].last <= now) {
      Node &heir = nodes[nodes[x].heir];
      auto link = std::find_if(heir.before.begin(), heir.before.end(),
                               [&](const Link &link) { return link.from == x; });
      const int64_t part = std::exchange(nodes[x].stock, 0);
      network.pass(link->edge, part);
      network.pass(heir.handed, part);
      link->handed += part;
      heir.stock += part;
      x = nodes[x].heir;
    }
  }

  /// The weight that no item has taken from `x` does not flow.
  void giveBack(int x) {
    Node &node = nodes[x];
    const int64_t own = std::min(node.stock, node.own);
    network.pass(node.given, -own);
    node.stock -= own;
    for (Link &link : node.before) {
      const int64_t part = std::min(node.stock, link.handed);
      network.pass(link.edge, -part);
      network.pass(node.handed, -part);
      nodes[link.from].stock += part;
      node.stock -= part;
    }
  }

  int count, source, sink;
  const std::vector<int> &order;
  const std::vector<int64_t> &weights;
  FlowNetwork network;
  std::vector<Node> nodes;
};

} // namespace

std::vector<int>
mlir::fsdp::schedule::findHeaviestAntichain(const std::vector<std::vector<int>> &successors,
                                            const std::vector<int> &order,
                                            const std::vector<int64_t> &weights) {
  return ChainFlow(successors, order, weights).run();
}
