#include "runtime/train/Driver.h"

#include "base/Error.h"
#include "runtime/execution/Device.h"
#include "runtime/files/StandardStreams.h"
#include "runtime/job/Bootstrap.h"
#include "runtime/job/ErrorReport.h"
#include "runtime/job/Launcher.h"
#include "runtime/job/StopSignals.h"
#include "runtime/job/Watchdog.h"
#include "runtime/program/Roles.h"
#include "runtime/train/Batches.h"
#include "runtime/train/CommandLine.h"
#include "runtime/train/Hyperparameters.h"
#include "runtime/train/ParameterNames.h"
#include "runtime/train/Plans.h"
#include "runtime/train/RunCheckpoints.h"
#include "runtime/train/RunFiles.h"
#include "runtime/train/RunStart.h"
#include "runtime/train/Supervision.h"
#include "runtime/train/Training.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fsdp::rt {

using namespace base;

namespace {

/// Time limit for listing the folder of checkpoints before a restart, in seconds.
constexpr double kFolderTimeout = 30;

std::int64_t stepCount(const Program &program, const Options &options, const RunSources &sources) {
  if (options.steps)
    return *options.steps;
  const double batch = static_cast<double>(globalBatch(program));
  if (sources.files.isMixed()) {
    std::string passes;
    for (const DataSource &source : sources.files.training)
      passes +=
          format("%s%.0f of '%s'", passes.empty() ? "" : ", ",
                 std::ceil(double(source.samples) / source.weight / batch), source.name.c_str());
    throw Error(format("got --epochs with %zu sources in --data, each of which has epochs of its "
                       "own: give the number of steps (--steps); about so many are one epoch: %s",
                       sources.files.training.size(), passes.c_str()),
                kExitBadCommandLine);
  }
  const double samples = sources.data ? double(sources.data->samples()) : batch;
  const double steps = std::ceil(*options.epochs * samples / batch);
  if (!(steps < 0x1p63)) // the least number above the range of std::int64_t
    throw Error(format("--epochs got %g, which is %g steps of %g samples, expected at most %lld "
                       "steps",
                       *options.epochs, steps, batch, static_cast<long long>(INT64_MAX)),
                kExitBadCommandLine);
  return std::max<std::int64_t>(static_cast<std::int64_t>(steps), 1);
}

} // namespace

/// Throws an error if --steps=0 would merge adapters that no file has: they are drawn, and change
/// nothing.
static void requireAdapters(const Program &program, const Options &options,
                            const RunSources &sources) {
  if (!options.onlyEvaluates() || options.exportMerged.empty() || !sources.weights)
    return;
  const std::vector<std::string> &drawn = sources.weights->drawn();
  for (const std::string &name : adapterNames(program))
    if (std::find(drawn.begin(), drawn.end(), name) != drawn.end())
      throw Error("got --export-merged with --steps=0, and no file of --init has the adapter '" +
                      name +
                      "', which would be drawn: name the trained adapters with another "
                      "--init, or train",
                  kExitBadCommandLine);
}

int runTraining(Plans plans, int argc, char **argv) {
  prepareStandardStreams();
  Options options;
  try {
    if (const std::optional<int> status = parseCommandLine(plans, argc, argv, options))
      return *status;
    if (options.report && options.data.empty() && !options.onlyEvaluates()) {
      for (const Program *plan : plans)
        if (!options.plan || options.plan == plan)
          std::fputs(plan->report, stdout);
      return finishResult();
    }
    const Program &program = pickPlan(plans, options.plan);
    if (!options.save.empty())
      checkRoot(options.save, program);
    target::requireDevices(target::jobOptions(program, options.communicator), worldSize(program));
    std::vector<NamedFile> files;
    RunData data = RunData::of(options);
    const RunOutputs outputs = openOutputs(program, options, data, files);
    RunSources sources = openSources(program, options, std::move(data));
    requireAdapters(program, options, sources);
    if (options.generation) // before the ranks start, which read the weights first
      program.generation.generate(
          {program, nullptr, *options.generation, sources.carried, outputs.scores});
    if (sources.weights) // an index or a folder refers to other files
      for (const InitialWeights::Source &source : sources.weights->sources())
        for (const std::string &path : source.files.files())
          files.push_back(NamedFile::input("--init", path));
    checkDistinct(files);
    checkFlightRecord(options, files);
    const bool isLaunched = detectLauncher().has_value();
    if (isLaunched || !options.save.empty() || options.logHeader)
      sources.contents = RunContents::of(sources.files, sources.weights.get());
    const std::int64_t steps = stepCount(program, options, sources);
    if (options.resume.empty()) // before the ranks start, which check a checkpoint further
      Hyperparameters::of(program, options, steps, nullptr);
    if (!options.save.empty())
      handleStopSignals();
    if (options.maxRestarts)
      requireSupervision(plans, program, options);
    RunStart runStart;
    return runSupervised(plans, program, options, [&](const Program &plan, std::string &cause) {
      if (options.restarts) // so that this process does not wait for that disk
        requireAnswer(options.save, heartbeatTimeout(options.timeout.value_or(kFolderTimeout)));
      if (options.maxRestarts)
        runStart.lock(options.save);
      if (options.restarts)
        sources.checkpoints = runStart.hasOpened()
                                  ? runStart.candidates(options.save, sources.checkpoints)
                                  : findCheckpoints(plan, options);
      JobOptions job = target::jobOptions(plan, options.communicator);
      job.trustNetwork = options.trustNetwork;
      job.threads = static_cast<int>(options.threads);
      if (isLaunched) // forked ranks have the same options
        job.identity = identityOfTraining(plan, options, steps, sources.files, sources.contents,
                                          describeResumed(sources.checkpoints));
      job.timeoutSeconds = options.timeout.value_or(0);
      job.handlesStop = !options.save.empty();
      job.flightRecord = options.flightRecordFile();
      if (options.maxRestarts)
        job.onFailure = [&](const Error &error) {
          if (error.isRefusal())
            report(error); // a restart would be refused too
          else
            cause = error.describe();
        };
      return runRanks(Mesh(plan.axes, plan.deviceOrder), job, [&](Job &rank) {
        const Program &own = programAt(plan, positionOf(plan, rank));
        if (FlightTrack *host = rank.hostFlight())
          host->label(own.role); // for messages about ranks that hang
        return train(own, options, sources, outputs, runStart, steps, rank);
      });
    });
  } catch (const NoPlan &none) {
    return reportByFirst(none.error, none.rank);
  } catch (const Error &error) {
    return report(error);
  }
}

} // namespace fsdp::rt
