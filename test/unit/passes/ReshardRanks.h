//===- ReshardRanks.h - a plan of resharding, executed on simulated ranks -*- C++ -*-===//
//
// Each device holds, for each of its elements, which element of the tensor it is and which terms of
// the sum it has. A step has the semantics of the op of its name; only the output of the solver is
// used.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNIT_PASSES_RESHARDRANKS_H
#define TEST_UNIT_PASSES_RESHARDRANKS_H

#include "passes/reshard/Reshard.h"

#include <gtest/gtest.h>

namespace mlir::fsdp::reshard {

struct Cell {
  int64_t element = -1; ///< -1 is padding
  uint64_t terms = 0;
  int device = -1; ///< that had it before the step
};

class Ranks {
public:
  explicit Ranks(const Problem &problem) : problem(problem), order(problem.fromOrder) {
    for (const Axis &axis : problem.mesh)
      devices *= axis.size;
    held.resize(devices);
    for (int64_t position = 0; position < devices; ++position)
      held[at(position)] = expected(problem.from, position);
  }

  void perform(const Step &step);
  /// Compares with the last sharding.
  void check() const;

private:
  struct Held {
    std::vector<int64_t> shape;
    std::vector<Cell> cells;
  };

  int at(int64_t position) const {
    return order.empty() ? static_cast<int>(position) : order[position];
  }
  /// The stride of one index of a part in a position.
  int64_t weight(const AxisPart &part) const {
    int64_t weight = problem.mesh[part.axis].size / part.before / part.size;
    for (size_t axis = part.axis + 1; axis < problem.mesh.size(); ++axis)
      weight *= problem.mesh[axis].size;
    return weight;
  }
  int64_t indexIn(int64_t position, const std::vector<AxisPart> &parts) const {
    int64_t index = 0;
    for (const AxisPart &part : parts)
      index = index * part.size + position / weight(part) % part.size;
    return index;
  }
  static int64_t countOf(const std::vector<AxisPart> &parts) {
    int64_t count = 1;
    for (const AxisPart &part : parts)
      count *= part.size;
    return count;
  }
  /// The positions of the group of `position`, in rank order.
  std::vector<int64_t> groupOf(int64_t position, const std::vector<AxisPart> &parts) const {
    int64_t base = position;
    for (const AxisPart &part : parts)
      base -= position / weight(part) % part.size * weight(part);
    std::vector<int64_t> group;
    for (int64_t rank = 0; rank < countOf(parts); ++rank) {
      int64_t member = base, rest = rank;
      for (size_t i = parts.size(); i-- > 0; rest /= parts[i].size)
        member += rest % parts[i].size * weight(parts[i]);
      group.push_back(member);
    }
    return group;
  }
  static int64_t product(const std::vector<int64_t> &shape) {
    int64_t size = 1;
    for (int64_t d : shape)
      size *= d;
    return size;
  }
  /// The part of `whole` that begins at `first` of dimension `dim`, `size` long; padding behind its
  /// end.
  static Held part(const Held &whole, int dim, int64_t first, int64_t size) {
    return build(whole, dim, size,
                 [&](int64_t i) { return first + i < whole.shape[dim] ? first + i : -1; },
                 {&whole});
  }
  /// `parts` behind one another, cut at `size`.
  static Held joined(const std::vector<const Held *> &parts, int dim, int64_t size) {
    return build(*parts.front(), dim, size, [](int64_t i) { return i; }, parts);
  }
  template <class Source>
  static Held build(const Held &like, int dim, int64_t size, Source source,
                    const std::vector<const Held *> &parts) {
    Held result{like.shape, {}};
    result.shape[dim] = size;
    const int64_t part = like.shape[dim];
    int64_t inner = 1;
    for (size_t d = dim + 1; d < like.shape.size(); ++d)
      inner *= like.shape[d];
    for (int64_t cell = 0, cells = product(result.shape); cell < cells; ++cell) {
      const int64_t i = source(cell / inner % size), outer = cell / inner / size;
      if (i < 0 || !part || i / part >= static_cast<int64_t>(parts.size()))
        result.cells.push_back({});
      else
        result.cells.push_back(
            parts[i / part]->cells[(outer * part + i % part) * inner + cell % inner]);
    }
    return result;
  }
  Held summed(const std::vector<const Held *> &parts) const {
    Held result = *parts.front();
    for (size_t p = 1; p < parts.size(); ++p)
      for (size_t i = 0; i < result.cells.size(); ++i) {
        Cell &to = result.cells[i];
        const Cell &from = parts[p]->cells[i];
        EXPECT_EQ(to.element, from.element) << "different elements are added";
        EXPECT_EQ(to.terms & from.terms, 0u) << "a term is added twice";
        to.terms |= from.terms;
      }
    return result;
  }
  Held expected(const Sharding &sharding, int64_t position) const {
    Held result;
    std::vector<int64_t> first;
    for (size_t d = 0; d < problem.shape.size(); ++d) {
      const int64_t ranks = countOf(sharding.dims[d]);
      result.shape.push_back((problem.shape[d] + ranks - 1) / ranks);
      first.push_back(indexIn(position, sharding.dims[d]) * result.shape.back());
    }
    for (int64_t cell = 0, cells = product(result.shape); cell < cells; ++cell) {
      int64_t element = 0, rest = cell, weight = 1;
      for (size_t d = problem.shape.size(); d-- > 0;) {
        const int64_t i = first[d] + rest % result.shape[d];
        element = i >= problem.shape[d] || element < 0 ? -1 : element + i * weight;
        rest /= result.shape[d];
        weight *= problem.shape[d];
      }
      result.cells.push_back(
          {element, element < 0 ? 0 : uint64_t(1) << indexIn(position, sharding.partial)});
    }
    return result;
  }

  const Problem &problem;
  std::vector<int> order;
  int64_t devices = 1;
  std::vector<Held> held; ///< by device
};

inline void Ranks::perform(const Step &step) {
  std::vector<Held> results(devices);
  for (int device = 0; device < devices; ++device) {
    EXPECT_EQ(held[device].shape, step.before);
    for (Cell &cell : held[device].cells)
      cell.device = device;
  }
  if (step.kind == Kind::permute) {
    std::vector<bool> seen(devices);
    for (int device = 0; device < devices; ++device) {
      EXPECT_FALSE(seen[step.sources[device]]) << "a device sends twice";
      seen[step.sources[device]] = true;
      results[device] = held[step.sources[device]];
    }
    order = problem.toOrder;
  } else {
    for (int64_t position = 0; position < devices; ++position) {
      const std::vector<int64_t> group = groupOf(position, step.axes);
      const int64_t rank = indexIn(position, step.axes), ranks = static_cast<int64_t>(group.size());
      std::vector<const Held *> parts;
      for (int64_t member : group)
        parts.push_back(&held[at(member)]);
      const Held &mine = held[at(position)];
      Held &result = results[at(position)];
      const int dim = step.dim;
      switch (step.kind) {
      case Kind::slice:
        EXPECT_EQ(step.after[dim], (step.before[dim] + ranks - 1) / ranks);
        result = part(mine, dim, rank * step.after[dim], step.after[dim]);
        break;
      case Kind::gather:
        EXPECT_EQ(step.before[dim], (step.after[dim] + ranks - 1) / ranks);
        result = joined(parts, dim, step.after[dim]);
        break;
      case Kind::allReduce:
        result = summed(parts);
        break;
      case Kind::reduceScatter:
        EXPECT_EQ(step.after[dim], (step.before[dim] + ranks - 1) / ranks);
        result = part(summed(parts), dim, rank * step.after[dim], step.after[dim]);
        break;
      case Kind::allToAll:
        EXPECT_EQ(step.before[dim], (step.after[dim] + ranks - 1) / ranks);
        EXPECT_EQ(step.after[step.split], (step.before[step.split] + ranks - 1) / ranks);
        result = part(joined(parts, dim, step.after[dim]), step.split,
                      rank * step.after[step.split], step.after[step.split]);
        break;
      default:
        result = part(joined(parts, dim, ranks * step.before[dim]), dim, rank * step.after[dim],
                      step.after[dim]);
      }
    }
  }
  // Elements from other ranks, without the terms that are summed on the way.
  int64_t most = 0;
  for (int device = 0; device < devices; ++device) {
    EXPECT_EQ(results[device].shape, step.after);
    int64_t received = 0;
    for (const Cell &cell : results[device].cells)
      received += cell.device >= 0 && cell.device != device;
    most = std::max(most, received);
  }
  if (step.kind != Kind::allReduce && step.kind != Kind::reduceScatter) {
    EXPECT_LE(most * problem.elementBytes, step.bytes) << describe(step);
  }
  held = std::move(results);
}

inline void Ranks::check() const {
  EXPECT_EQ(order, problem.toOrder);
  const uint64_t terms = countOf(problem.from.partial) == 64
                             ? ~uint64_t(0)
                             : (uint64_t(1) << countOf(problem.from.partial)) - 1;
  for (int64_t position = 0; position < devices; ++position) {
    const Held wanted = expected(problem.to, position), &got = held[at(position)];
    ASSERT_EQ(got.shape, wanted.shape);
    // A sum that is still to be formed is formed here.
    std::vector<const Held *> parts;
    for (int64_t member : groupOf(position, problem.to.partial))
      parts.push_back(&held[at(member)]);
    const Held sum = summed(parts);
    for (size_t i = 0; i < wanted.cells.size(); ++i) {
      ASSERT_EQ(got.cells[i].element, wanted.cells[i].element)
          << "position " << position << ", element " << i;
      ASSERT_EQ(sum.cells[i].terms, wanted.cells[i].element < 0 ? 0 : terms)
          << "position " << position << ", element " << i;
    }
  }
}

} // namespace mlir::fsdp::reshard

#endif // TEST_UNIT_PASSES_RESHARDRANKS_H
