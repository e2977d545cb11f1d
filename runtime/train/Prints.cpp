#include "runtime/train/Prints.h"

#include "base/Error.h"
#include "base/PrintableText.h"
#include "runtime/train/Log.h"

#include <string_view>

namespace fsdp::rt {

using namespace base;

/// The index of the output `name`; -1 if there is none.
static int findOutput(const ExecutionPlan &plan, const std::string &name) {
  for (std::size_t i = 0; i < plan.outputs.size(); ++i)
    if (plan.outputs[i] == name)
      return static_cast<int>(i);
  return -1;
}

/// `name` without `suffix`; nothing where it ends otherwise.
static std::optional<std::string> without(std::string_view name, std::string_view suffix) {
  if (name.size() <= suffix.size() || name.substr(name.size() - suffix.size()) != suffix)
    return std::nullopt;
  return std::string(name.substr(0, name.size() - suffix.size()));
}

Prints::Prints(const ExecutionPlan &plan) : plan(plan), owned(plan.outputs.size()) {
  for (const char *output : plan.outputs) {
    const std::optional<std::string> name = without(output, ".min");
    if (!name)
      continue;
    const Print print{*name, findOutput(plan, output), findOutput(plan, *name + ".max"),
                      findOutput(plan, *name + ".mean"), findOutput(plan, *name + ".nan")};
    if (print.max < 0 || print.mean < 0 || print.nan < 0)
      continue; // a metric
    for (int index : {print.min, print.max, print.mean, print.nan})
      owned[static_cast<std::size_t>(index)] = true;
    printed.push_back(print);
  }
  for (int check : plan.checks)
    owned[static_cast<std::size_t>(check)] = true;
}

std::optional<FailedCheck> Prints::findFailed(const std::vector<float> &values) const {
  for (int check : plan.checks) {
    const auto index = static_cast<std::size_t>(check);
    if (values[index] != 0)
      return FailedCheck{*without(plan.outputs[index], ".check"), values[index]};
  }
  return std::nullopt;
}

std::string Prints::describe(const std::vector<float> &values) const {
  std::string text;
  auto value = [&](int output) {
    return shownNumber(static_cast<double>(values[static_cast<std::size_t>(output)]));
  };
  for (const Print &print : printed)
    text += "  " + printable(print.name) +
            format(": min %.6g  max %.6g  mean %.6g  nan %.9g\n", value(print.min),
                   value(print.max), value(print.mean), value(print.nan));
  return text;
}

} // namespace fsdp::rt
