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

/// For each atom, what it stands behind in a sharding: the atom before it, or -1 - list at the head
/// of a list.
std::vector<int> placesOf(const AtomSharding &sharding, size_t atoms) {
  const int replicated = -1000;
  std::vector<int> before(atoms, replicated);
  auto add = [&](const std::vector<int> &list, int number) {
    for (size_t i = 0; i < list.size(); ++i)
      before[list[i]] = i ? list[i - 1] : -1 - number;
  };
  for (size_t d = 0; d < sharding.dims.size(); ++d)
    add(sharding.dims[d], static_cast<int>(d));
  for (int atom : sharding.partial) // each may be scattered elsewhere
    before[atom] = -1 - static_cast<int>(sharding.dims.size());
  return before;
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
  if (atoms.atoms.size() > static_cast<size_t>(SubAxes::kMax))
    return "the shardings name " + std::to_string(atoms.atoms.size()) +
           " independent parts of axes, expected " + std::to_string(SubAxes::kMax) + " at most";
  for (int atom : atoms.to.partial)
    if (std::find(atoms.from.partial.begin(), atoms.from.partial.end(), atom) ==
        atoms.from.partial.end())
      return "the target sharding is a partial sum over " +
             quoted(atoms.atoms[atom].parts.front()) + ", but the source sharding is not";
  return "";
}

SubAxes::SubAxes(const Problem &problem) {
  std::vector<std::vector<AxisPart>> parts = findParts(problem);
  std::map<std::pair<int, int64_t>, int> numbers; // by axis and pre
  for (const std::vector<AxisPart> &ofAxis : parts)
    for (const AxisPart &part : ofAxis)
      if (part.size > 1) {
        numbers[{part.axis, part.before}] = static_cast<int>(atoms.size());
        atoms.push_back({{part}, part.size, problem.mesh[part.axis].link});
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

  if (atoms.size() <= static_cast<size_t>(kExhaustive))
    return;

  // Join what stays together. Those that both shardings replicate have no order, and are one atom:
  // they take part where copies share the work, as when each sends half.
  std::vector<int> before = placesOf(from, atoms.size()), after = placesOf(to, atoms.size());
  std::vector<int> joined(atoms.size(), -1), whole;
  std::vector<Atom> old = std::move(atoms);
  atoms.clear();
  int replicated = -1;
  std::vector<int> order;
  // An atom after what it stands behind.
  std::vector<bool> done(old.size(), false);
  auto add = [&](auto &self, int atom) -> void {
    if (done[atom])
      return;
    done[atom] = true;
    if (before[atom] == -1000 && after[atom] == -1000) {
      if (replicated >= 0) {
        joined[atom] = replicated;
      } else {
        joined[atom] = replicated = static_cast<int>(atoms.size());
        atoms.push_back({{}, 1, old[atom].link});
      }
    } else if (before[atom] >= 0 && before[atom] == after[atom]) {
      self(self, before[atom]);
      joined[atom] = joined[before[atom]];
    } else {
      joined[atom] = static_cast<int>(atoms.size());
      atoms.push_back({{}, 1, old[atom].link});
    }
    Atom &group = atoms[joined[atom]];
    group.parts.insert(group.parts.end(), old[atom].parts.begin(), old[atom].parts.end());
    group.size *= old[atom].size;
    group.link.latency = std::max(group.link.latency, old[atom].link.latency);
    group.link.bytesPerSecond = std::min(group.link.bytesPerSecond, old[atom].link.bytesPerSecond);
  };
  for (size_t atom = 0; atom < old.size(); ++atom)
    add(add, static_cast<int>(atom));
  auto renumber = [&](std::vector<int> &list) {
    std::vector<int> result;
    for (int atom : list)
      if (result.empty() || result.back() != joined[atom])
        result.push_back(joined[atom]);
    list = result;
  };
  for (AtomSharding *sharding : {&from, &to}) {
    for (std::vector<int> &list : sharding->dims)
      renumber(list);
    renumber(sharding->partial);
  }
}
