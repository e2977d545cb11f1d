//===- SubAxes.cpp ----------------------------------------------------------===//

#include "passes/reshard/SubAxes.h"

#include <algorithm>
#include <set>

using namespace mlir::fsdp::reshard;

namespace {

template <class Visit> void forEachList(const Problem &problem, Visit visit) {
  for (const Sharding *sharding : {&problem.from, &problem.to}) {
    for (const std::vector<AxisPart> &list : sharding->dims)
      visit(list);
    visit(sharding->partial);
  }
}

std::string quoted(const AxisPart &part) {
  return "axis " + std::to_string(part.axis) + (part.before == 1 ? "" : part.range());
}

std::string validateSharding(const Problem &problem, const Sharding &sharding,
                             const std::string &which) {
  if (sharding.dims.size() != problem.shape.size())
    return "the sharding " + which + " has " + std::to_string(sharding.dims.size()) +
           " dimensions, expected " + std::to_string(problem.shape.size());
  std::vector<AxisPart> all = sharding.partial;
  for (const std::vector<AxisPart> &list : sharding.dims)
    all.insert(all.end(), list.begin(), list.end());
  for (size_t i = 0; i < all.size(); ++i) {
    const AxisPart &part = all[i];
    if (part.axis < 0 || part.axis >= static_cast<int>(problem.mesh.size()))
      return "the sharding " + which + " names axis " + std::to_string(part.axis) +
             ", expected one below " + std::to_string(problem.mesh.size());
    const int64_t size = problem.mesh[part.axis].size;
    if (part.before < 1 || part.size < 1 || size % part.next())
      return "the sharding " + which + " names " + quoted(part) + " of size " +
             std::to_string(part.size) + ", expected a part of " + std::to_string(size);
    for (size_t j = 0; j < i; ++j)
      if (all[j].overlaps(part))
        return "the sharding " + which + " names " + quoted(part) +
               " twice, expected each part of an axis once";
  }
  return "";
}

/// Elements of an order are the devices, each once.
bool isOrder(const std::vector<int> &order, int64_t devices) {
  std::set<int> seen(order.begin(), order.end());
  return static_cast<int64_t>(order.size()) == devices &&
         static_cast<int64_t>(seen.size()) == devices && *seen.begin() == 0 &&
         *seen.rbegin() == devices - 1;
}

} // namespace

std::vector<std::vector<AxisPart>> mlir::fsdp::reshard::findParts(const Problem &problem) {
  std::vector<std::vector<AxisPart>> parts(problem.mesh.size());
  std::vector<std::set<int64_t>> cuts(problem.mesh.size());
  forEachList(problem, [&](const std::vector<AxisPart> &list) {
    for (const AxisPart &part : list) {
      cuts[part.axis].insert(part.before);
      cuts[part.axis].insert(part.next());
    }
  });
  for (size_t axis = 0; axis < parts.size(); ++axis) {
    cuts[axis].insert(1);
    cuts[axis].insert(problem.mesh[axis].size);
    for (auto low = cuts[axis].begin(), high = std::next(low); high != cuts[axis].end();
         ++low, ++high) {
      if (*high % *low)
        return {};
      parts[axis].push_back({static_cast<int>(axis), *low, *high / *low});
    }
  }
  return parts;
}

std::string mlir::fsdp::reshard::validate(const Problem &problem) {
  int64_t devices = 1;
  for (const Axis &axis : problem.mesh) {
    if (axis.size < 1)
      return "the mesh has an axis of size " + std::to_string(axis.size) + ", expected at least 1";
    devices *= axis.size;
  }
  if (std::string wrong = validateSharding(problem, problem.from, "before"); !wrong.empty())
    return wrong;
  if (std::string wrong = validateSharding(problem, problem.to, "after"); !wrong.empty())
    return wrong;
  for (const std::vector<int> *order : {&problem.fromOrder, &problem.toOrder})
    if (!problem.fromOrder.empty() + !problem.toOrder.empty() == 1 ||
        (!order->empty() && !isOrder(*order, devices)))
      return "expected two permutations of " + std::to_string(devices) + " devices";
  if (findParts(problem).size() < problem.mesh.size())
    return "the shardings split an axis at positions that do not nest; use sizes that divide one "
           "another";
  SubAxes atoms(problem);
  int dims = 0;
  for (size_t d = 0; d < problem.shape.size(); ++d)
    dims += !problem.from.dims[d].empty() || !problem.to.dims[d].empty();
  if (dims > SubAxes::kMaxDims)
    return "the shardings split " + std::to_string(dims) + " dimensions, expected " +
           std::to_string(SubAxes::kMaxDims) + " at most";
  for (int atom : atoms.to.partial)
    if (std::find(atoms.from.partial.begin(), atoms.from.partial.end(), atom) ==
        atoms.from.partial.end())
      return "the target sharding is a partial sum over " + quoted(atoms.atoms[atom].part) +
             ", but the source sharding is not";
  return "";
}

SubAxes::SubAxes(const Problem &problem) {
  std::vector<std::vector<AxisPart>> parts = findParts(problem);
  std::map<std::pair<int, int64_t>, int> numbers; // by axis and pre
  for (const std::vector<AxisPart> &ofAxis : parts)
    for (const AxisPart &part : ofAxis)
      if (part.size > 1) {
        numbers[{part.axis, part.before}] = static_cast<int>(atoms.size());
        atoms.push_back({part, part.size, problem.mesh[part.axis].link});
      }
  auto number = [&](const std::vector<AxisPart> &list) {
    std::vector<int> result;
    for (const AxisPart &part : list)
      for (const AxisPart &fine : parts[part.axis])
        if (fine.size > 1 && fine.before >= part.before && fine.before < part.next())
          result.push_back(numbers.at({fine.axis, fine.before}));
    return result;
  };
  for (auto [sharding, result] : {std::pair{&problem.from, &from}, std::pair{&problem.to, &to}}) {
    for (const std::vector<AxisPart> &list : sharding->dims)
      result->dims.push_back(number(list));
    result->partial = number(sharding->partial);
    std::sort(result->partial.begin(), result->partial.end());
  }
}
