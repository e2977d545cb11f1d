#include "runtime/train/Hyperparameters.h"

#include "base/Error.h"
#include "base/NamePattern.h"
#include "base/PrintableText.h"
#include "runtime/train/Log.h"
#include "runtime/train/ParameterNames.h"

#include <algorithm>
#include <limits>

namespace fsdp::rt {

using namespace base;

std::string constantOption(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return "--" + name;
}

namespace {

Hyperparameters compiledSettings(const Program &program) {
  Hyperparameters hyper;
  hyper.rate = program.defaultLearningRate;
  hyper.schedule = program.schedule;
  hyper.rule = program.updateRule;
  hyper.clip = program.clip;
  for (const UpdateConstant &constant : program.updateConstants)
    hyper.constants.push_back({constant.name, constant.value});
  hyper.groups = compiledGroups(program);
  return hyper;
}

std::string joined(const std::vector<std::string> &texts) {
  std::string all;
  for (const std::string &text : texts)
    all += (all.empty() ? "" : ",") + text;
  return texts.empty() ? kNoGroups : all;
}

Hyperparameters savedSettings(const Program &program, const CheckpointManifest &from) {
  Hyperparameters hyper = compiledSettings(program);
  hyper.rate = from.baseLearningRate;
  if (from.schedule) // missing in older manifests
    hyper.schedule = *from.schedule;
  hyper.endIsGiven = from.scheduleSteps != 0;
  hyper.end = hyper.endIsGiven ? from.scheduleSteps : from.totalSteps;
  hyper.groups = from.groups.over(std::move(hyper.groups));
  for (const Hyperparameters::Constant &saved : from.constants) {
    if (saved.name == "clip")
      hyper.clip = saved.value;
    for (Hyperparameters::Constant &constant : hyper.constants)
      if (constant.name == saved.name && from.updateRule == program.updateRule)
        constant.value = saved.value;
  }
  return hyper;
}

/// Error: an option has no effect with the schedule, or the minimum is above the base.
void check(const Hyperparameters &hyper, const Options &options) {
  const std::string name = kScheduleNames[hyper.schedule.kind];
  const auto refuse = [](const std::string &why) {
    throw Error(why, kExitBadCommandLine).byAll().asRefusal();
  };
  const auto without = [&](const char *option, const std::string &why) {
    refuse(std::string("got ") + option + " with the schedule " + name + ", " + why +
           ": leave it out, or choose another with --schedule");
  };
  if (options.minRate && hyper.schedule.kind == Schedule::Constant)
    without("--min-lr", "which never falls");
  if (options.decayShare && hyper.schedule.kind != Schedule::Wsd)
    without("--decay-share", "which has no separate decay");
  if (options.scheduleSteps && !hyper.ends())
    without("--schedule-steps", "which has no end");
  if (hyper.schedule.kind != Schedule::Constant && hyper.schedule.minimum > hyper.rate)
    refuse("got the minimum " + shortest(hyper.schedule.minimum) +
           " of the learning rate above the rate itself, " + shortest(hyper.rate) +
           ": give a lower --min-lr or a higher --lr");
  if (const std::string fault = hyper.groups.faultOfRate(hyper.rate); !fault.empty())
    refuse(fault);
  if (options.groups.noDecay && !options.groups.noDecay->empty() && !hyper.decays())
    refuse("got --no-decay, but the update rule '" + hyper.rule +
           "' has no weight decay in this run: leave it out, or give --weight-decay");
}

/// Whether each parameter has the same rate and decay with both.
bool haveSameEffect(const Program &program, const ParameterGroups &a, const ParameterGroups &b) {
  for (const Storage &storage : program.storages)
    for (const Parameter &parameter : storage.members)
      if (static_cast<float>(a.scaleOf(parameter.name)) !=
              static_cast<float>(b.scaleOf(parameter.name)) ||
          a.exempts(parameter.name) != b.exempts(parameter.name))
        return false;
  return true;
}

} // namespace

Hyperparameters Hyperparameters::of(const Program &program, const Options &options,
                                    std::int64_t steps, const CheckpointManifest *from) {
  const Hyperparameters saved = from ? savedSettings(program, *from) : compiledSettings(program);
  Hyperparameters hyper = saved;
  if (options.learningRate)
    hyper.rate = static_cast<float>(*options.learningRate);
  if (options.schedule)
    hyper.schedule.kind = scheduleNamed(*options.schedule).value();
  if (options.warmup)
    hyper.schedule.warmup = *options.warmup;
  if (options.minRate)
    hyper.schedule.minimum = static_cast<float>(*options.minRate);
  if (options.decayShare)
    hyper.schedule.decayShare = static_cast<float>(*options.decayShare);
  if (options.scheduleSteps)
    hyper.endIsGiven = true, hyper.end = *options.scheduleSteps;
  if (!hyper.endIsGiven)
    hyper.end = steps;
  for (std::size_t i = 0; i < hyper.constants.size(); ++i) {
    if (const auto given = options.constants.find(hyper.constants[i].name);
        given != options.constants.end())
      hyper.constants[i].value = static_cast<float>(given->second);
    if (program.updateConstants[i].isFixed) // whatever the checkpoint had
      hyper.constants[i].value = program.updateConstants[i].value;
  }
  if (const auto given = options.constants.find("clip"); given != options.constants.end())
    hyper.clip = static_cast<float>(given->second);
  if (program.clip == 0)
    hyper.clip = 0;
  hyper.groups = options.groups.over(std::move(hyper.groups));
  check(hyper, options);
  if (!from || options.onlyEvaluates())
    return hyper;
  const auto before = saved.settings(), now = hyper.settings();
  // Patterns in another order, or others of the same parameters, change nothing.
  const auto isSame = [&](const std::string &name) {
    ParameterGroups a = saved.groups, b = hyper.groups;
    if (name == "lr_scale")
      a.noDecay = b.noDecay;
    else if (name == "no_decay")
      a.rateScales = b.rateScales;
    else
      return false;
    return haveSameEffect(program, a, b);
  };
  for (const auto &[name, value] : now)
    for (const auto &[other, old] : before)
      if (name == other && value != old && !isSame(name))
        hyper.changes.push_back({name, old, value});
  return hyper;
}

bool Hyperparameters::decays() const {
  return std::any_of(constants.begin(), constants.end(), [](const Constant &constant) {
    return constant.name == "weight_decay" && constant.value != 0;
  });
}

std::string Hyperparameters::remarkOnNoDecay(const Program &program) const {
  std::vector<std::string> decaying;
  for (const Storage &storage : program.storages)
    for (const Parameter &parameter : storage.members)
      if (parameter.decay && !parameter.frozen)
        decaying.emplace_back(parameter.name);
  return groups.remarkOnNoDecay(decaying);
}

std::vector<std::pair<std::string, std::string>> Hyperparameters::settings() const {
  std::vector<std::pair<std::string, std::string>> all = {
      {"lr", shortest(rate)},
      {"schedule", kScheduleNames[schedule.kind]},
      {"warmup", std::to_string(schedule.warmup)},
      {"min_lr", shortest(schedule.minimum)},
      {"decay_share", shortest(schedule.decayShare)}};
  if (ends())
    all.emplace_back("schedule_steps", std::to_string(end));
  all.emplace_back("clip", shortest(clip));
  for (const Constant &constant : constants)
    all.emplace_back(constant.name, shortest(constant.value));
  all.emplace_back("lr_scale", joined(groups.rateScaleTexts()));
  all.emplace_back("no_decay", joined(groups.noDecay));
  return all;
}

void Hyperparameters::writeTo(StepState &state) const {
  state.baseLearningRate = rate;
  state.schedule = schedule.over(end);
  state.clip = clip > 0 ? clip : std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < constants.size(); ++i)
    state.constants[i] = constants[i].value;
}

std::string Hyperparameters::describeOther(const Program &program) const {
  Hyperparameters compiled = compiledSettings(program);
  compiled.rate = rate;
  const auto defaults = compiled.settings();
  std::string text;
  for (const auto &setting : settings())
    if (setting.first == "schedule_steps"
            ? endIsGiven
            : std::find(defaults.begin(), defaults.end(), setting) == defaults.end())
      text += (text.empty() ? "" : " ") + constantOption(setting.first) + "=" + setting.second;
  return text;
}

std::string Hyperparameters::describeChanges() const {
  std::string text;
  for (const ChangedSetting &change : changes)
    text += (text.empty() ? "" : ", ") + constantOption(change.name) + " " + change.now + " (was " +
            change.before + ")";
  return text;
}

} // namespace fsdp::rt
