#include "runtime/program/Roles.h"

#include <algorithm>

namespace fsdp::rt {

namespace {

bool contains(const AxisList &list, int axis) {
  return std::find(list.begin(), list.end(), axis) != list.end();
}

/// Of a tensor whose parts differ along the axes that `splits` selects, on ranks of `roles`.
template <class Splits>
std::optional<Replica> replicaOf(const Program &program, const Table<int> &roles,
                                 const RankPosition &position, Splits splits) {
  AxisList others;
  for (int axis = 0; axis < static_cast<int>(program.axes.size()); ++axis)
    if (!splits(axis) && (roles.empty() || !contains(program.roleAxes, axis)))
      others.axis[others.count++] = axis;
  Replica replica{static_cast<std::size_t>(position.along(others)),
                  static_cast<std::size_t>(ranksOver(program, others))};
  if (roles.empty())
    return replica;
  const int *role = std::find(roles.begin(), roles.end(), position.along(program.roleAxes));
  if (role == roles.end())
    return std::nullopt;
  replica.index += static_cast<std::size_t>(role - roles.begin()) * replica.count;
  replica.count *= roles.size();
  return replica;
}

} // namespace

std::optional<Replica> replicaAt(const Program &program, const Storage &storage,
                                 const RankPosition &position) {
  return replicaOf(program, storage.roles, position, [&](int axis) {
    return contains(storage.axes, axis) || contains(storage.splitAxes, axis);
  });
}

std::optional<Replica> replicaAt(const Program &program, const Input &input,
                                 const RankPosition &position) {
  return replicaOf(program, input.roles, position,
                   [&](int axis) { return contains(input.axes, axis); });
}

const Program &programAt(const Program &plan, const RankPosition &position) {
  const int role = position.along(plan.roleAxes);
  const auto found =
      std::find_if(plan.programs.begin(), plan.programs.end(), [&](const Program *program) {
        return std::find(program->roles.begin(), program->roles.end(), role) !=
               program->roles.end();
      });
  return found == plan.programs.end() ? plan : **found;
}

std::size_t arenaBytesOf(const Program &plan) {
  std::size_t most = plan.arenaBytes;
  for (const Program *program : plan.programs)
    most = std::max(most, program->arenaBytes);
  return most;
}

std::uint64_t digestOf(const Program &plan) {
  if (plan.programs.empty())
    return plan.digest;
  std::uint64_t digest = 0;
  for (const Program *program : plan.programs)
    digest = digest * 3 + program->digest;
  return digest;
}

} // namespace fsdp::rt
