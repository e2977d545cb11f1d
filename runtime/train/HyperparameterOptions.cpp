//===- HyperparameterOptions.cpp - options of rate and update rule --------===//

#include "base/Error.h"
#include "base/GroupOptions.h"
#include "base/Options.h"
#include "base/UpdateConstants.h"
#include "runtime/train/CommandLineParts.h"
#include "runtime/train/Hyperparameters.h"
#include "runtime/train/Log.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace fsdp::rt {

using namespace base;

static const UpdateConstant *findConstant(const Program &program, const std::string &name) {
  for (const UpdateConstant &constant : program.updateConstants)
    if (constant.name == name)
      return &constant;
  return nullptr;
}

static CLI::Option *addConstant(CLI::App &app, Options &options, const std::string &name,
                                const std::string &description, bool isFraction) {
  const NumberRange range = isFraction ? NumberRange{0, false, 1} : NumberRange{};
  return base::addOption(app, constantOption(name), "X", description,
                         [&options, name, range](const std::string &text) {
                           double value = 0;
                           std::string wrong = parseNumber(text, range, value);
                           if (wrong.empty())
                             options.constants[name] = value;
                           return wrong;
                         });
}

void declareHyperparameters(CLI::App &app, const Program &program, Options &options) {
  const ScheduleOptions &schedule = program.schedule;
  base::addNumber(
      app, "--lr", "X", options.learningRate,
      "learning rate; without it, as without the options of the schedule, the update rule and "
      "clipping, that of the checkpoint, else the compiled one",
      {})
      ->default_str(shortest(program.defaultLearningRate));
  base::addChoice(app, "--schedule", options.schedule, "learning rate after warmup",
                  {std::begin(kScheduleNames), std::end(kScheduleNames)})
      ->default_str(kScheduleNames[schedule.kind]);
  base::addInteger(app, "--warmup", "N", options.warmup, "steps over which the learning rate rises",
                   base::IntegerRange<std::int64_t>{0, INT64_MAX})
      ->default_str(std::to_string(schedule.warmup));
  base::addNumber(app, "--min-lr", "X", options.minRate, "learning rate at which the schedule ends",
                  {})
      ->default_str(shortest(schedule.minimum));
  base::addNumber(app, "--decay-share", "X", options.decayShare,
                  "share of the steps, the last ones, in which the rate of the schedule wsd falls",
                  {/*least=*/0, /*aboveLeast=*/false, /*limit=*/1})
      ->default_str(shortest(schedule.decayShare));
  base::addInteger(app, "--schedule-steps", "N", options.scheduleSteps,
                   "step where the schedule ends; later ones have its last rate (default: the "
                   "last step of the run)",
                   base::IntegerRange<std::int64_t>{1, INT64_MAX});
  for (const UpdateConstant &constant : program.updateConstants)
    addConstant(app, options, constant.name,
                std::string(constant.name) + " of " + program.updateRule, constant.isFraction)
        ->default_str(shortest(constant.value))
        ->group(constant.isFixed ? "" : "Options");
  for (const char *name : kUpdateConstants)
    if (!findConstant(program, name))
      addConstant(app, options, name, "", /*isFraction=*/false)->group("");
  addConstant(app, options, "clip", "largest global norm of the gradients; 0 for no clipping",
              /*isFraction=*/false)
      ->default_str(shortest(program.clip))
      ->group(program.clip > 0 ? "Options" : "");
  base::addGroupOptions(app, options.groups, "instead of those of the checkpoint or compiled");
}

std::string faultOfHyperparameters(const Program &program, const Options &options) {
  for (const auto &[name, value] : options.constants) {
    const UpdateConstant *constant = findConstant(program, name);
    const std::string option = constantOption(name), got = "got " + option + ", but ";
    if (name == "clip" && program.clip == 0)
      return got + "this program was compiled without clipping: compile it with --clip";
    if (name != "clip" && !constant)
      return got + "the update rule of this program, '" + program.updateRule + "', has no " + name +
             ": leave it out, or compile with another --optimizer";
    if (constant && constant->isFixed)
      return got + "this program was compiled with " + name +
             " 0, without the state that another value needs: compile it with " + option;
  }
  std::vector<GroupedName> names;
  for (const Storage &storage : program.storages)
    for (const Parameter &parameter : storage.members)
      names.push_back({parameter.name, !parameter.frozen});
  if (const auto fault = options.groups.over({}).findFault(names))
    return constantOption(fault->setting) + ": " + fault->why;
  return "";
}

} // namespace fsdp::rt
