//===- ReshardOracle.h - all shardings, and the fewest bytes between them --*- C++ -*-===//

#ifndef TEST_UNIT_PASSES_RESHARDORACLE_H
#define TEST_UNIT_PASSES_RESHARDORACLE_H

#include "passes/reshard/Reshard.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <tuple>

namespace mlir::fsdp::reshard {

/// Every sharding of a tensor of `rank` dimensions over `axes` axes, partial sums included.
inline std::vector<Sharding> allShardings(const std::vector<Axis> &mesh, int rank) {
  std::vector<Sharding> all;
  Sharding sharding;
  sharding.dims.resize(rank);
  std::function<void(size_t)> place = [&](size_t axis) {
    if (axis == mesh.size()) {
      all.push_back(sharding);
      return;
    }
    const AxisPart part{static_cast<int>(axis), 1, mesh[axis].size};
    place(axis + 1); // replicated
    sharding.partial.push_back(part);
    place(axis + 1);
    sharding.partial.pop_back();
    for (auto &dim : sharding.dims)
      for (size_t at = 0; at <= dim.size(); ++at) {
        dim.insert(dim.begin() + at, part);
        place(axis + 1);
        dim.erase(dim.begin() + at);
      }
  };
  place(0);
  return all;
}

inline bool mayBecome(const Sharding &from, const Sharding &to) {
  return std::all_of(to.partial.begin(), to.partial.end(), [&](const AxisPart &part) {
    return std::find(from.partial.begin(), from.partial.end(), part) != from.partial.end();
  });
}

//===----------------------------------------------------------------------===//
// The exhaustive search: every move over any axes in any order, with nothing left out
//===----------------------------------------------------------------------===//

/// A state: axes of each dimension, axes of the sum, and the size of the parts of each dimension.
struct State {
  std::vector<std::vector<int>> dims;
  std::vector<int> partial;
  std::vector<int64_t> block;

  bool operator<(const State &other) const {
    return std::tie(dims, partial, block) < std::tie(other.dims, other.partial, other.block);
  }
};

class Exhaustive {
public:
  Exhaustive(const std::vector<Axis> &mesh, const std::vector<int64_t> &shape)
      : mesh(mesh), shape(shape) {
    for (const Sharding &sharding : allShardings(mesh, static_cast<int>(shape.size())))
      states.push_back(stateOf(sharding));
  }

  State stateOf(const Sharding &sharding) const {
    State state;
    for (const auto &dim : sharding.dims) {
      state.dims.emplace_back();
      for (const AxisPart &part : dim)
        state.dims.back().push_back(part.axis);
    }
    for (const AxisPart &part : sharding.partial)
      state.partial.push_back(part.axis);
    for (size_t d = 0; d < shape.size(); ++d)
      state.block.push_back(ceil(shape[d], ranks(state.dims[d])));
    return state;
  }

  /// The fewest elements received on the way to each state.
  std::map<State, int64_t> from(const Sharding &sharding) {
    std::map<State, int64_t> best;
    std::priority_queue<std::pair<int64_t, State>, std::vector<std::pair<int64_t, State>>, Later>
        open;
    auto add = [&](const State &state, int64_t cost) {
      auto [found, isNew] = best.try_emplace(state, cost);
      if (!isNew && found->second <= cost)
        return;
      found->second = cost;
      open.push({cost, state});
    };
    add(stateOf(sharding), 0);
    while (!open.empty()) {
      auto [cost, state] = open.top();
      open.pop();
      if (best[state] == cost)
        expand(state, [&, cost = cost](const State &next, int64_t elements) {
          add(next, cost + elements);
        });
    }
    return best;
  }

private:
  struct Later {
    bool operator()(const std::pair<int64_t, State> &a, const std::pair<int64_t, State> &b) const {
      return b.first < a.first;
    }
  };
  static int64_t ceil(int64_t a, int64_t b) { return (a + b - 1) / b; }
  int64_t ranks(const std::vector<int> &axes) const {
    int64_t product = 1;
    for (int axis : axes)
      product *= mesh[axis].size;
    return product;
  }
  static int64_t count(const State &state) {
    int64_t product = 1;
    for (int64_t size : state.block)
      product *= size;
    return product;
  }
  /// All ordered lists of some of `axes`.
  static void lists(std::vector<int> axes,
                    const std::function<void(const std::vector<int> &)> &visit) {
    std::vector<int> list;
    std::function<void()> extend = [&] {
      for (int axis : axes) {
        if (std::find(list.begin(), list.end(), axis) != list.end())
          continue;
        list.push_back(axis);
        visit(list);
        extend();
        list.pop_back();
      }
    };
    extend();
  }
  bool split(State &state, size_t dim, const std::vector<int> &axes) const {
    if (!state.dims[dim].empty() && state.block[dim] % ranks(axes))
      return false;
    state.block[dim] = ceil(state.block[dim], ranks(axes));
    state.dims[dim].insert(state.dims[dim].end(), axes.begin(), axes.end());
    return true;
  }

  template <class Add> void expand(const State &state, Add add) const {
    std::vector<int> replicated;
    for (int axis = 0; axis < static_cast<int>(mesh.size()); ++axis) {
      bool used = std::count(state.partial.begin(), state.partial.end(), axis);
      for (const auto &dim : state.dims)
        used |= std::count(dim.begin(), dim.end(), axis) > 0;
      if (!used)
        replicated.push_back(axis);
    }
    for (size_t d = 0; d < shape.size(); ++d) {
      lists(replicated, [&](const std::vector<int> &axes) {
        State next = state;
        if (split(next, d, axes))
          add(next, 0);
      });
      lists(state.partial, [&](const std::vector<int> &axes) {
        State next = state;
        next.partial.erase(
            std::remove_if(next.partial.begin(), next.partial.end(),
                           [&](int axis) { return std::count(axes.begin(), axes.end(), axis); }),
            next.partial.end());
        const int64_t n = ranks(axes);
        State reduced = next;
        if (split(next, d, axes))
          add(next, count(next) * (n - 1));
        add(reduced, 2 * (n - 1) * ceil(count(reduced), n));
      });
      for (size_t keep = 0; keep < state.dims[d].size(); ++keep) {
        const std::vector<int> axes(state.dims[d].begin() + keep, state.dims[d].end());
        const int64_t n = ranks(axes);
        if (!keep && state.block[d] != ceil(shape[d], n))
          continue;
        State next = state;
        next.dims[d].resize(keep);
        next.block[d] = keep ? state.block[d] * n : shape[d];
        add(next, count(state) * (n - 1));
        for (size_t other = 0; other < shape.size(); ++other) {
          State exchanged = next;
          if (other == d || !split(exchanged, other, axes))
            continue;
          const int64_t joined = exchanged.block[d];
          add(exchanged,
              joined ? count(exchanged) / joined * std::min(joined, (n - 1) * state.block[d]) : 0);
        }
      }
      // Parts of any size between those of the sharding and twice that.
      if (const int64_t n = ranks(state.dims[d]); n > 1 && shape[d])
        for (int64_t block = ceil(shape[d], n); block <= 2 * ceil(shape[d], n); ++block) {
          if (block == state.block[d])
            continue;
          int64_t most = 0;
          for (int64_t rank = 0; rank < n; ++rank) {
            int64_t received = 0;
            for (int64_t i = rank * block; i < std::min((rank + 1) * block, n * state.block[d]);
                 ++i)
              received += i / state.block[d] != rank;
            most = std::max(most, received);
          }
          State next = state;
          next.block[d] = block;
          add(next, count(next) / block * most);
        }
    }
    for (const State &other : states) {
      bool same = ranks(other.partial) == ranks(state.partial);
      for (size_t d = 0; d < shape.size(); ++d)
        same &= ranks(other.dims[d]) == ranks(state.dims[d]);
      if (!same)
        continue;
      State next = other;
      next.block = state.block;
      add(next, count(next));
    }
  }

  const std::vector<Axis> &mesh;
  std::vector<int64_t> shape;
  std::vector<State> states;
};

} // namespace mlir::fsdp::reshard

#endif // TEST_UNIT_PASSES_RESHARDORACLE_H
