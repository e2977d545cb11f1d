//===- PlanCosts.cpp ------------------------------------------------------===//

#include "tools/fsdpc/PlanCosts.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <vector>

namespace fsdpc {

bool isBetter(const PlanCosts &one, const PlanCosts &other, int64_t limit) {
  const bool fits = one.arena <= limit, otherFits = other.arena <= limit;
  if (fits != otherFits)
    return fits;
  return fits ? one.step < other.step * (1 - 1e-9) : one.arena < other.arena;
}

std::string milliseconds(double seconds) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3g ms", seconds * 1e3);
  return text;
}

std::string explainTimes(const PlanCosts &plan, const PlanCosts &best) {
  std::vector<std::string> parts;
  auto idle = [](const PlanCosts &costs) { return costs.step - costs.computing - costs.exposed; };
  for (auto [more, what] : {std::pair(plan.exposed - best.exposed, " more exposed"),
                            {plan.computing - best.computing, " more computing"},
                            {idle(plan) - idle(best), " more idle"}})
    if (more > 1e-3 * best.step)
      parts.push_back(milliseconds(more) + what);
  return llvm::join(parts, ", ");
}

} // namespace fsdpc
