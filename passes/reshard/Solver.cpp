//===- Solver.cpp - the cheapest path between two layouts -----------------===//

#include "passes/reshard/Layout.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

using namespace mlir::fsdp::reshard;

namespace {

struct Node {
  Layout layout;
  double seconds = 0;
  int steps = 0;
  int parent = -1;
  Move move;
};

/// An A* search: the moves from the first layout to the last one, and the layouts between, none of
/// more than `limit` bytes on a rank. Empty if there is no such path.
class Search {
public:
  Search(const LayoutTransitions &moves, int64_t limit) : moves(moves), limit(limit) {}

  std::vector<Node> run() {
    for (const Layout &layout : moves.first())
      add(layout, 0, 0, -1, {});
    while (!open.empty()) {
      const Open next = open.top();
      open.pop();
      const Node &node = nodes[next.index];
      if (std::pair(node.seconds, node.steps) < std::pair(next.seconds, next.steps))
        continue;
      if (moves.isLast(node.layout))
        return pathTo(next.index);
      const Layout layout = node.layout;
      const bool isDirect = layout.stage == Stage::direct;
      if (isDirect && direct > kMaxDirect)
        continue;
      moves.forEach(layout, [&](Move &move, const Layout &result) {
        direct += isDirect;
        add(result, next.seconds + move.seconds, next.steps + 1, next.index, move);
      });
    }
    return {};
  }

private:
  /// The maximum number of moves tried on paths without a permute; paths with one need fewer.
  static constexpr int kMaxDirect = 10000;

  struct Open {
    double atLeast; ///< seconds of any way through this layout
    int steps, index;
    double seconds; ///< up to this layout
    bool operator<(const Open &other) const {
      return atLeast != other.atLeast ? atLeast > other.atLeast
             : steps != other.steps   ? steps > other.steps
                                      : index > other.index;
    }
  };

  void add(const Layout &layout, double seconds, int steps, int parent, const Move &move) {
    if (moves.localBytes(layout) > limit)
      return;
    auto [found, isNew] = numbers.try_emplace(moves.keyOf(layout), static_cast<int>(nodes.size()));
    if (isNew)
      nodes.push_back({layout, seconds, steps, parent, move});
    Node &node = nodes[found->second];
    if (!isNew) {
      if (std::pair(node.seconds, node.steps) <= std::pair(seconds, steps))
        return;
      node = {layout, seconds, steps, parent, move};
    }
    open.push({seconds + moves.leastSeconds(layout), steps, found->second, seconds});
  }

  std::vector<Node> pathTo(int index) const {
    std::vector<Node> path;
    for (; index >= 0; index = nodes[index].parent)
      path.push_back(nodes[index]);
    std::reverse(path.begin(), path.end());
    // At this point the target positions of the permuted atoms are known.
    const Renaming names = moves.namesFrom(path.back().layout);
    for (size_t i = 0; i < path.size(); ++i) {
      if (path[i].layout.stage != Stage::after)
        continue;
      moves.rename(names, path[i].layout, path[i].move);
      if (path[i].move.kind == Kind::permute)
        moves.costPermute(path[i].move, path[i - 1].layout, path[i].layout);
    }
    return path;
  }

  const LayoutTransitions &moves;
  const int64_t limit;
  int direct = 0; ///< moves tried on ways without a permute
  std::vector<Node> nodes;
  std::unordered_map<Layout, int, LayoutHash> numbers;
  std::priority_queue<Open> open;
};

/// The steps in terms of the problem.
class Writer {
public:
  Writer(const Problem &problem, const SubAxes &atoms, const LayoutTransitions &moves)
      : problem(problem), atoms(atoms), moves(moves) {}

  Step write(const Layout &before, const Move &move, const Layout &after) const {
    Step step{move.kind, {}, -1, -1, shapeOf(before), shapeOf(after), {}, move.bytes, move.seconds};
    for (int8_t atom : move.atoms)
      base::append(step.axes, atoms.atoms[atom].part);
    if (move.dim >= 0)
      step.dim = moves.dims()[move.dim];
    if (move.split >= 0)
      step.split = moves.dims()[move.split];
    if (move.kind == Kind::permute)
      step.sources = sourcesOf(before, after);
    return step;
  }

private:
  std::vector<int64_t> shapeOf(const Layout &layout) const {
    std::vector<int64_t> shape = problem.shape;
    for (size_t d = 0; d < moves.dims().size(); ++d)
      shape[moves.dims()[d]] = layout.block[d];
    return shape;
  }

  int64_t coordinate(int64_t position, const AxisPart &part) const {
    for (size_t axis = problem.mesh.size(); axis-- > static_cast<size_t>(part.axis) + 1;)
      position /= problem.mesh[axis].size;
    const int64_t size = problem.mesh[part.axis].size;
    return position % size / (size / part.before / part.size) % part.size;
  }

  template <class List> int64_t indexIn(int64_t position, const List &list) const {
    int64_t index = 0;
    for (int atom : list) {
      const AxisPart &part = atoms.atoms[atom].part;
      index = index * part.size + coordinate(position, part);
    }
    return index;
  }

  /// The contents of the device at each position: its part of each dimension, and its term of the
  /// sum.
  std::vector<int64_t> contentAt(int64_t position, const Layout &layout) const {
    std::vector<int64_t> content;
    for (size_t d = 0; d < moves.dims().size(); ++d)
      content.push_back(indexIn(position, layout.dims[d]));
    std::vector<int> partial;
    for (size_t atom = 0; atom < atoms.atoms.size(); ++atom)
      if (layout.partial >> atom & 1)
        partial.push_back(static_cast<int>(atom));
    content.push_back(indexIn(position, partial));
    return content;
  }

  std::vector<int> sourcesOf(const Layout &before, const Layout &after) const {
    int64_t devices = 1;
    for (const Axis &axis : problem.mesh)
      devices *= axis.size;
    auto deviceAt = [&](const std::vector<int> &order, int64_t position) {
      return order.empty() ? static_cast<int>(position) : order[position];
    };
    std::map<std::vector<int64_t>, std::vector<int>> holders;
    std::vector<std::vector<int64_t>> has(devices), gets(devices);
    for (int64_t position = 0; position < devices; ++position) {
      has[deviceAt(before.stage == Stage::after ? problem.toOrder : problem.fromOrder, position)] =
          contentAt(position, before);
      gets[deviceAt(problem.toOrder, position)] = contentAt(position, after);
    }
    std::vector<int> sources(devices, -1);
    for (int64_t device = 0; device < devices; ++device) {
      if (has[device] == gets[device])
        sources[device] = static_cast<int>(device); // it keeps the elements that it already has
      else
        holders[has[device]].push_back(static_cast<int>(device));
    }
    for (int64_t device = devices; device-- > 0;)
      if (sources[device] < 0) {
        std::vector<int> &left = holders[gets[device]];
        sources[device] = left.back();
        left.pop_back();
      }
    return sources;
  }

  const Problem &problem;
  const SubAxes &atoms;
  const LayoutTransitions &moves;
};

std::vector<int64_t> keyOf(const Problem &problem) {
  std::vector<int64_t> key = {problem.elementBytes};
  auto add = [&](const auto &list, auto each) {
    key.push_back(static_cast<int64_t>(list.size()));
    for (const auto &one : list)
      each(one);
  };
  auto number = [&](int64_t value) { key.push_back(value); };
  auto part = [&](const AxisPart &p) { key.insert(key.end(), {p.axis, p.before, p.size}); };
  add(problem.mesh, [&](const Axis &axis) {
    key.push_back(axis.size);
    for (double value : {axis.link.latency, axis.link.bytesPerSecond}) {
      int64_t bits;
      static_assert(sizeof bits == sizeof value);
      std::copy_n(reinterpret_cast<const char *>(&value), sizeof bits,
                  reinterpret_cast<char *>(&bits));
      key.push_back(bits);
    }
  });
  add(problem.shape, number);
  for (const Sharding *sharding : {&problem.from, &problem.to}) {
    add(sharding->dims, [&](const std::vector<AxisPart> &list) { add(list, part); });
    add(sharding->partial, part);
  }
  add(problem.fromOrder, number);
  add(problem.toOrder, number);
  return key;
}

} // namespace

/// A permute may turn out to be the identity.
static bool movesNothing(const Step &step) {
  for (size_t device = 0; device < step.sources.size(); ++device)
    if (step.sources[device] != static_cast<int>(device))
      return false;
  return step.kind == Kind::permute;
}

Plan mlir::fsdp::reshard::solve(const Problem &problem) {
  SubAxes atoms(problem);
  LayoutTransitions moves(problem, atoms);
  std::vector<Node> path;
  for (int64_t limit = moves.mostBytes(); path.empty(); limit *= 2)
    path = Search(moves, limit).run();
  Writer writer(problem, atoms, moves);
  Plan plan;
  for (size_t i = 1; i < path.size(); ++i) {
    Step step = writer.write(path[i - 1].layout, path[i].move, path[i].layout);
    if (movesNothing(step))
      continue;
    plan.steps.push_back(std::move(step));
    plan.bytes += plan.steps.back().bytes;
    plan.seconds += plan.steps.back().seconds;
  }
  return plan;
}

const Plan &Solver::solve(const Problem &problem) {
  auto [found, isNew] = plans.try_emplace(keyOf(problem));
  if (isNew)
    found->second = reshard::solve(problem);
  return found->second;
}

std::string mlir::fsdp::reshard::describe(const Step &step) {
  static const char *const names[] = {"all-slice",  "all-gather",  "reduce-scatter", "all-reduce",
                                      "all-to-all", "repartition", "permute"};
  std::string text = names[static_cast<int>(step.kind)];
  if (step.dim >= 0)
    text += " dimension " + std::to_string(step.dim);
  if (step.split >= 0)
    text += " to " + std::to_string(step.split);
  for (size_t i = 0; i < step.axes.size(); ++i) {
    const AxisPart &part = step.axes[i];
    text += (i                      ? ", "
             : step.axes.size() > 1 ? " over axes "
                                    : " over axis ") +
            std::to_string(part.axis) + part.range();
  }
  auto shape = [](const std::vector<int64_t> &sizes) {
    std::string text;
    for (int64_t size : sizes)
      text += (text.empty() ? "" : "x") + std::to_string(size);
    return text.empty() ? std::string("scalar") : text;
  };
  return text + ": " + shape(step.before) + " -> " + shape(step.after) + ", " +
         std::to_string(step.bytes) + " bytes";
}
