#include "runtime/train/LearningRate.h"

#include "base/Error.h"
#include "runtime/train/Log.h"

#include <algorithm>

namespace fsdp::rt {

using namespace base;

namespace {

/// "--min-lr"
std::string optionOf(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return "--" + name;
}

LearningRate compiledRate(const Program &program) {
  LearningRate rate;
  rate.base = program.defaultLearningRate;
  rate.schedule = program.schedule;
  return rate;
}

LearningRate savedRate(const Program &program, const CheckpointManifest &from) {
  LearningRate rate = compiledRate(program);
  rate.base = from.baseLearningRate;
  if (from.schedule) // missing in older manifests
    rate.schedule = *from.schedule;
  rate.endIsGiven = from.scheduleSteps != 0;
  rate.end = rate.endIsGiven ? from.scheduleSteps : from.totalSteps;
  return rate;
}

/// Error: an option has no effect with the schedule, or the minimum is above the base.
void check(const LearningRate &rate, const Options &options) {
  const std::string name = kScheduleNames[rate.schedule.kind];
  const auto refuse = [](const std::string &why) {
    throw Error(why, kExitBadCommandLine).byAll().asRefusal();
  };
  const auto without = [&](const char *option, const std::string &why) {
    refuse(std::string("got ") + option + " with the schedule " + name + ", " + why +
           ": leave it out, or choose another with --schedule");
  };
  if (options.minRate && rate.schedule.kind == Schedule::Constant)
    without("--min-lr", "which never falls");
  if (options.decayShare && rate.schedule.kind != Schedule::Wsd)
    without("--decay-share", "which has no last part of its own");
  if (options.scheduleSteps && !rate.ends())
    without("--schedule-steps", "which has no end");
  if (rate.schedule.kind != Schedule::Constant && rate.schedule.minimum > rate.base)
    refuse("got the minimum " + shortest(rate.schedule.minimum) +
           " of the learning rate above the rate itself, " + shortest(rate.base) +
           ": give a lower --min-lr or a higher --lr");
}

} // namespace

LearningRate LearningRate::of(const Program &program, const Options &options, std::int64_t steps,
                              const CheckpointManifest *from) {
  const LearningRate saved = from ? savedRate(program, *from) : compiledRate(program);
  LearningRate rate = saved;
  if (options.learningRate)
    rate.base = static_cast<float>(*options.learningRate);
  if (options.schedule)
    rate.schedule.kind = scheduleNamed(*options.schedule).value();
  if (options.warmup)
    rate.schedule.warmup = *options.warmup;
  if (options.minRate)
    rate.schedule.minimum = static_cast<float>(*options.minRate);
  if (options.decayShare)
    rate.schedule.decayShare = static_cast<float>(*options.decayShare);
  if (options.scheduleSteps)
    rate.endIsGiven = true, rate.end = *options.scheduleSteps;
  if (!rate.endIsGiven)
    rate.end = steps;
  check(rate, options);
  if (!from || options.onlyEvaluates())
    return rate;
  const auto before = saved.settings(), now = rate.settings();
  for (const auto &[name, value] : now)
    for (const auto &[other, old] : before)
      if (name == other && value != old)
        rate.changes.push_back({name, old, value});
  return rate;
}

std::vector<std::pair<std::string, std::string>> LearningRate::settings() const {
  std::vector<std::pair<std::string, std::string>> all = {
      {"lr", shortest(base)},
      {"schedule", kScheduleNames[schedule.kind]},
      {"warmup", std::to_string(schedule.warmup)},
      {"min_lr", shortest(schedule.minimum)},
      {"decay_share", shortest(schedule.decayShare)}};
  if (ends())
    all.emplace_back("schedule_steps", std::to_string(end));
  return all;
}

std::string LearningRate::describeOther(const Program &program) const {
  LearningRate compiled = compiledRate(program);
  compiled.base = base;
  const auto defaults = compiled.settings();
  std::string text;
  for (const auto &setting : settings())
    if (setting.first == "schedule_steps"
            ? endIsGiven
            : std::find(defaults.begin(), defaults.end(), setting) == defaults.end())
      text += (text.empty() ? "" : " ") + optionOf(setting.first) + "=" + setting.second;
  return text;
}

std::string LearningRate::describeChanges() const {
  std::string text;
  for (const ChangedSetting &change : changes)
    text += (text.empty() ? "" : ", ") + optionOf(change.name) + " " + change.now + " (was " +
            change.before + ")";
  return text;
}

} // namespace fsdp::rt
