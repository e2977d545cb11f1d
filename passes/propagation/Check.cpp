//===- Check.cpp - validity of a problem and of its solution --------------===//

#include "passes/propagation/Problem.h"
#include <algorithm>

namespace mlir::fsdp::propagation {

std::string print(const Mesh &mesh, const Sharding &sharding) {
  std::string text = "[";
  for (const DimSharding &dim : sharding.dims) {
    text += text.size() == 1 ? "" : ", ";
    text += dim.open && dim.axes.empty() ? "?" : print(mesh, dim.axes);
    text += dim.open && !dim.axes.empty() ? "+?" : "";
  }
  return text + "]";
}

namespace {
class Checker {
public:
  explicit Checker(const Problem &problem) : problem(problem) {}

  std::string value(size_t index) const {
    const Value &value = problem.values[index];
    if (value.sharding.dims.empty() && value.sharding.replicated.empty())
      return "";
    return sharding(index, value.sharding);
  }

  std::string sharding(size_t index, const Sharding &sharding) const {
    std::string where = "value " + std::to_string(index);
    if (sharding.dims.size() != problem.values[index].sizes.size())
      return where + " has a sharding of " + std::to_string(sharding.dims.size()) +
             " dimensions, expected " + std::to_string(problem.values[index].sizes.size());
    AxisList used;
    for (const DimSharding &dim : sharding.dims) {
      for (size_t i = 0; i + 1 < dim.axes.size(); ++i)
        if (dim.axes[i].axis == dim.axes[i + 1].axis &&
            dim.axes[i].next() == dim.axes[i + 1].before)
          return where + " has adjacent parts of axis '" + problem.mesh.names[dim.axes[i].axis] +
                 "', expected them as one part";
      used.insert(used.end(), dim.axes.begin(), dim.axes.end());
    }
    used.insert(used.end(), sharding.replicated.begin(), sharding.replicated.end());
    used.insert(used.end(), sharding.unreduced.begin(), sharding.unreduced.end());
    for (size_t i = 0; i < used.size(); ++i) {
      const AxisPart &axis = used[i];
      if (axis.axis < 0 || axis.axis >= static_cast<int>(problem.mesh.sizes.size()) ||
          axis.before < 1 || axis.size < 1 || problem.mesh.sizes[axis.axis] % axis.next() != 0)
        return where + " names an axis or a part that the mesh does not have";
      for (size_t j = 0; j < i; ++j)
        if (used[j].overlaps(axis))
          return where + " uses axis '" + problem.mesh.names[axis.axis] + "' twice";
    }
    return "";
  }

  std::string op(size_t index) const {
    const Op &op = problem.ops[index];
    std::string where = "op " + std::to_string(index);
    if (op.operands.size() != op.operandDims.size() || op.results.size() != op.resultDims.size())
      return where + " needs one rule for each tensor";
    auto tensor = [&](int value, const Mapping &dims) -> std::string {
      if (value < 0 || value >= static_cast<int>(problem.values.size()))
        return where + " names a value that does not exist";
      const std::vector<int64_t> &sizes = problem.values[value].sizes;
      // An operand without dimensions in the rule, such as a scalar, has no axes.
      if (dims.empty())
        return "";
      if (dims.size() != sizes.size())
        return where + " has a rule whose rank differs from value " + std::to_string(value);
      for (size_t dim = 0; dim < dims.size(); ++dim) {
        int64_t size = 1;
        for (int factor : dims[dim])
          size *= op.factors.at(factor).size;
        if (size != sizes[dim])
          return where + " gives dimension " + std::to_string(dim) + " of value " +
                 std::to_string(value) + " the size " + std::to_string(size) + ", expected " +
                 std::to_string(sizes[dim]);
      }
      return "";
    };
    for (size_t i = 0; i < op.operands.size(); ++i)
      if (std::string defect = tensor(op.operands[i], op.operandDims[i]); !defect.empty())
        return defect;
    for (size_t i = 0; i < op.results.size(); ++i)
      if (std::string defect = tensor(op.results[i], op.resultDims[i]); !defect.empty())
        return defect;
    return "";
  }

  std::string solved(size_t index, const Sharding &solved) const {
    if (std::string defect = sharding(index, solved); !defect.empty())
      return defect;
    const Sharding &given = problem.values[index].sharding;
    for (size_t dim = 0; dim < given.dims.size(); ++dim) {
      const AxisList &before = given.dims[dim].axes, &after = solved.dims[dim].axes;
      std::string where = "dimension " + std::to_string(dim) + " of value " + std::to_string(index);
      if (!isPrefix(before, after))
        return where + " has lost user-specified axes";
      if (!given.dims[dim].open && before != after)
        return where + " is closed but has more axes than specified";
    }
    return "";
  }

private:
  const Problem &problem;
};
} // namespace

std::string check(const Problem &problem, const Solution *solution) {
  Checker checker(problem);
  std::string defect;
  for (size_t index = 0; index < problem.values.size() && defect.empty(); ++index)
    defect = checker.value(index);
  for (size_t index = 0; index < problem.ops.size() && defect.empty(); ++index)
    defect = checker.op(index);
  if (!solution || !defect.empty())
    return defect;
  if (solution->shardings.size() != problem.values.size())
    return "the solution has another number of values than the problem";
  for (size_t index = 0; index < problem.values.size() && defect.empty(); ++index)
    defect = checker.solved(index, solution->shardings[index]);
  return defect;
}

} // namespace mlir::fsdp::propagation
