//===- Projection.cpp - the shardings of an op along its factors ----------===//

#include "passes/propagation/Projection.h"
#include <numeric>

namespace mlir::fsdp::propagation {

namespace {
/// The axes of a dimension that are not handed out yet.
class Remaining {
public:
  explicit Remaining(const AxisList &axes) : axes(axes) { load(); }

  bool empty() const { return index == axes.size(); }
  int64_t size() const { return current.size; }
  /// Takes the first `size` of the first axis.
  AxisPart take(int64_t size) {
    AxisPart taken = {current.axis, current.before, size};
    if (size == current.size) {
      ++index;
      load();
    } else {
      current.before *= size;
      current.size /= size;
    }
    return taken;
  }
  void takeAll(AxisList &into) {
    while (!empty())
      append(into, take(size()));
  }

private:
  void load() {
    if (!empty())
      current = axes[index];
  }

  const AxisList &axes;
  size_t index = 0;
  AxisPart current;
};
} // namespace

static void projectDim(const Op &op, const std::vector<int> &dim, const DimSharding &sharding,
                       TensorProjection &tensor) {
  Remaining remaining(sharding.axes);
  bool overflows = false;
  for (int index : dim) {
    FactorSharding &factor = tensor.factors[index];
    factor.present = true;
    factor.minorMost = index == dim.back();
    factor.closed = !sharding.open || overflows;
    if (overflows)
      continue;
    if (factor.minorMost) {
      remaining.takeAll(factor.axes);
      return;
    }
    int64_t room = op.factors[index].size;
    while (!remaining.empty()) {
      int64_t part = std::gcd(room, remaining.size());
      if (part == 1 && remaining.size() != 1)
        break;
      factor.axes.push_back(remaining.take(part));
      room /= part;
    }
    if (room > 1 && !remaining.empty()) {
      overflows = true;
      remaining.takeAll(factor.overflow);
    }
  }
}

TensorProjection project(const Op &op, const Mapping &dims, const Sharding &sharding) {
  TensorProjection tensor;
  tensor.factors.resize(op.factors.size());
  tensor.replicated = sharding.replicated;
  tensor.unreduced = sharding.unreduced;
  for (size_t dim = 0; dim < dims.size(); ++dim)
    if (!dims[dim].empty())
      projectDim(op, dims[dim], sharding.dims[dim], tensor);
    else // one element, split nevertheless: no other dimension can have these axes
      tensor.replicated.insert(tensor.replicated.end(), sharding.dims[dim].axes.begin(),
                               sharding.dims[dim].axes.end());
  for (size_t index = 0; index < op.factors.size(); ++index)
    if (tensor.has(index))
      tensor.size *= op.factors[index].size;
  return tensor;
}

std::vector<AxisList> unproject(const Op &op, const Mapping &dims, const TensorProjection &tensor) {
  std::vector<AxisList> result(dims.size());
  for (size_t dim = 0; dim < dims.size(); ++dim)
    for (int index : dims[dim]) {
      const FactorSharding &factor = tensor.factors[index];
      for (const AxisPart &axis : factor.axes)
        append(result[dim], axis);
      for (const AxisPart &axis : factor.overflow)
        append(result[dim], axis);
      if (!factor.overflow.empty() || sizeOf(factor.axes) < op.factors[index].size)
        break;
    }
  return result;
}

} // namespace mlir::fsdp::propagation
