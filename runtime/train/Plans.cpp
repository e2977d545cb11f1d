#include "runtime/train/Plans.h"

#include "base/Sequences.h"
#include "runtime/job/Launcher.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <vector>

namespace fsdp::rt {

using namespace base;

namespace {

/// `axes`, a comma-separated list, without those of size 1. One that is no axis, or appears again,
/// is kept, so that no plan has it.
std::vector<std::string> splitting(const std::string &axes) {
  std::vector<std::string> kept;
  std::set<std::string> names;
  for (const std::string &axis : listElements(axes)) {
    const std::string name = axis.substr(0, axis.find('='));
    const bool isName = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
      return std::isalnum(c) || c == '_';
    });
    const bool isNew = names.insert(name).second;
    if (!isName || !isNew || axis != name + "=1")
      kept.push_back(axis);
  }
  return kept;
}

template <typename Wanted> const Program *firstOf(Plans plans, Wanted isWanted) {
  const auto found = std::find_if(plans.begin(), plans.end(),
                                  [&](const Program *plan) { return isWanted(*plan); });
  return found == plans.end() ? nullptr : *found;
}

} // namespace

std::string meshOf(const Program &plan) { return Mesh(plan.axes).describe(); }

std::string describePlans(Plans plans) {
  std::string text;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const int ranks = worldSize(*plans[i]);
    text += (i == 0                  ? ""
             : i + 1 == plans.size() ? " and "
                                     : ", ") +
            meshOf(*plans[i]) + " (" + std::to_string(ranks) + (ranks == 1 ? " rank)" : " ranks)");
  }
  return text;
}

const Program *planNamed(Plans plans, const std::string &text) {
  if (const Program *same =
          firstOf(plans, [&](const Program &plan) { return meshOf(plan) == text; }))
    return same;
  return firstOf(plans,
                 [&](const Program &plan) { return splitting(meshOf(plan)) == splitting(text); });
}

const Program *planFor(Plans plans, int ranks) {
  return firstOf(plans, [&](const Program &plan) { return worldSize(plan) == ranks; });
}

const Program *planBelow(Plans plans, int ranks) {
  int most = 0;
  for (const Program *plan : plans)
    if (worldSize(*plan) < ranks)
      most = std::max(most, worldSize(*plan));
  return planFor(plans, most);
}

const Program &pickPlan(Plans plans, const Program *asked) {
  if (asked)
    return *asked;
  const std::optional<LaunchEnvironment> launched = detectLauncher();
  if (!launched || plans.size() == 1) // with one plan, starting the ranks checks their number
    return *plans[0];
  if (const Program *plan = planFor(plans, launched->size))
    return *plan;
  throw NoPlan{Error(format("%s started %d rank%s, but this program has plans for %s: start as "
                            "many as one of them has, or "
                            "compile with one more for %d",
                            launched->by.c_str(), launched->size, launched->size == 1 ? "" : "s",
                            describePlans(plans).c_str(), launched->size)),
               launched->rank};
}

} // namespace fsdp::rt
