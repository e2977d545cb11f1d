//===- Driver.cpp ---------------------------------------------------------===//

#include "runtime/train/Driver.h"

#include "runtime/Error.h"
#include "runtime/PrintableText.h"
#include "runtime/data/Dataset.h"
#include "runtime/device/Device.h"
#include "runtime/device/WaitCounter.h"
#include "runtime/files/StandardStreams.h"
#include "runtime/job/Bootstrap.h"
#include "runtime/job/Launcher.h"
#include "runtime/job/Machines.h"
#include "runtime/job/StopSignals.h"
#include "runtime/job/Watchdog.h"
#include "runtime/program/Shard.h"
#include "runtime/train/Batches.h"
#include "runtime/train/CommandLine.h"
#include "runtime/train/LogFile.h"
#include "runtime/train/ModelChange.h"
#include "runtime/train/Plans.h"
#include "runtime/train/RunCheckpoints.h"
#include "runtime/train/RunHeader.h"
#include "runtime/train/RunStart.h"
#include "runtime/train/Supervision.h"
#include "runtime/train/TrainingIdentity.h"
#include "runtime/train/Weights.h"

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

namespace {

/// What is read and checked once, before there are ranks.
struct Sources {
  std::unique_ptr<Dataset> data;
  std::unique_ptr<Dataset> valData;
  std::unique_ptr<WeightFiles> weights;
  std::vector<SavedStep> checkpoints; ///< to go on from, the latest first; not all may be valid
  RunContents contents;               ///< where something records them
};

/// Seconds in which a folder of checkpoints answers a process that restarts.
constexpr double kFolderTimeout = 30;

/// What is written; open, where that is needed, before there are ranks.
struct Outputs {
  OutputPath exported, trace, log;
};

/// One rank's training run.
class Training {
public:
  Training(const Program &program, const Options &options, const Sources &sources,
           const Outputs &outputs, RunStart &runStart, std::int64_t steps, Job &job)
      : program(program), options(options), sources(sources), outputs(outputs), runStart(runStart),
        steps(steps), job(job), device(target::open(program, job)),
        checkpoints(program, this->options, steps, *device, sources.checkpoints, runStart,
                    sources.data ? sources.data->samples() : 0) {
    values.resize(program.train.outputs.size());
    sums.resize(program.evaluate.outputs.size());
  }

  int run() {
    if (job.rank() == 0) // before anything else may fail: what a failure leaves would take the
                         // place of that run's
      requireNoLogOfARun(outputs.log);
    checkpoints.claim();
    if (!checkpoints.resume())
      fillParameters();
    startState();
    openBatches();
    if (!options.save.empty())
      checkpoints.describe(header().record());
    checkpoints.open();
    if (job.rank() == 0) {
      printHeader();
      progress.emplace(steps, program.tokensPerSample > 1 ? "tokens" : "samples");
      openLog();
    }
    device->world().barrier();
    if (!outputs.trace.empty())
      device->startTrace();
    for (std::int64_t step = checkpoints.start().step + 1; step <= steps; ++step) {
      trainStep(step);
      const int signal = checkpoints.afterStep(step, [&] {
        settle();
        if (log) // its lines are there when the checkpoint is
          log->flush();
      });
      saySaved();
      if (signal)
        return stop(step, signal);
    }
    if (options.onlyEvaluates())
      evaluateOnly();
    settle();
    checkpoints.finish();
    saySaved();
    if (job.rank() == 0) {
      printSummary();
      warnOfLastStep();
    }
    if (!outputs.trace.empty()) {
      device->writeTrace(outputs.trace);
      sayWrote(outputs.trace);
    }
    if (!outputs.exported.empty()) {
      exportWeights(outputs.exported, program, *device);
      sayWrote(outputs.exported);
    }
    finishLog();
    return kExitDone;
  }

private:
  /// What the latest step left as output `name`.
  double valueOf(std::string_view name) const {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (program.train.outputs[i] == name)
        return values[i];
    return NAN;
  }

  void fillParameters() {
    for (const Storage &storage : program.storages) {
      if (storage.shard.isPlaced())
        fill(storage);
      if (storage.hasCopy())
        fill(storage.asReplicated());
      // Not a second copy of the parameters in each rank.
      if (sources.weights)
        sources.weights->releasePages();
    }
  }

  void fill(const Storage &storage) {
    const RankPosition position = positionOf(program, device->job());
    device->write(storage.shard, [&](float *shard) {
      if (sources.weights)
        loadShard(*sources.weights, storage, position, shard);
      else
        initializeShard(storage, position, options.seed, shard);
    });
  }

  void startState() {
    const CheckpointManifest &start = checkpoints.start();
    StepState state{};
    state.step = start.step;
    state.totalSteps = steps;
    state.updates = start.updates;
    state.seed = options.seed;
    state.baseLearningRate =
        static_cast<float>(options.learningRate.value_or(program.defaultLearningRate));
    state.badSteps = start.badSteps;
    state.samples = batchSize();
    device->setState(state);
  }

  void saySaved() {
    for (const std::string &folder : checkpoints.takeSaved()) {
      if (job.rank() != 0)
        continue;
      progress->end();
      std::printf("saved '%s'\n", printable(folder).c_str());
      showOutput();
    }
  }

  void openBatches() {
    if (sources.data) {
      batches.emplace(program, *sources.data, SampleOrder(options.shuffle, options.seed), job);
      batches->goTo(checkpoints.start().samples);
    }
    if (sources.valData)
      valBatches.emplace(program, *sources.valData, SampleOrder(), job);
  }

  /// Before anything looks at the parameters between steps (evaluation, a checkpoint, an export):
  /// what is under way is done, deferred updates too.
  void settle() {
    drain();
    device->finish();
  }

  /// An error is final: a restart would find nothing to train, and end as if the log had all lines.
  void finishLog() {
    try {
      if (log)
        log->finish();
    } catch (const Error &error) {
      throw error.asRefusal();
    }
  }

  /// Ends a run that a signal ends; returns its status.
  int stop(std::int64_t step, int signal) {
    checkpoints.finish();
    saySaved();
    finishLog();
    if (job.rank() == 0) {
      std::printf("stopped by %s after step %lld of %lld; go on with --resume=latest\n",
                  signal == SIGINT ? "SIGINT" : "SIGTERM", static_cast<long long>(step),
                  static_cast<long long>(steps));
      showOutput();
    }
    device->world().barrier();
    return statusOfSignal(signal);
  }

  std::int64_t batchSize() const { return globalBatch(program); }

  /// Performs the updates that the latest step has left for the next one.
  void drain() {
    if (!left)
      return;
    device->mark({"drain", std::exchange(left, 0)});
    device->run(program.drain, nullptr, /*again=*/false);
  }

  void trainStep(std::int64_t step) {
    const double begin = now();
    device->mark({"step", step});
    device->run(program.train, batches ? &*batches : nullptr, /*again=*/step < steps);
    left = program.drain.runs.empty() ? 0 : step;
    const double seconds = now() - begin;
    std::copy_n(device->outputs(), values.size(), values.begin());
    stopIfBad(step);
    const double rate =
        static_cast<double>(batchSize() * program.tokensPerSample) / std::max(seconds, 1e-9);
    if (log)
      describe(step, seconds, rate);
    if (progress)
      progress->step(step, valueOf("loss"), valueOf("grad_norm"), valueOf("lr"), seconds, rate);
    if (valBatches && (step == steps || (options.evalEvery && step % options.evalEvery == 0)))
      runEvaluation(step);
    if (log)
      log->write(line, step);
  }

  void describe(std::int64_t step, double seconds, double rate) {
    line.add("step", step);
    for (std::size_t i = 0; i < values.size(); ++i)
      line.add(program.train.outputs[i], values[i]);
    line.add("tokens_per_s", rate);
    line.add("step_ms", seconds * 1e3);
    line.add("peak_bytes", static_cast<std::int64_t>(device->peakBytes()));
    line.add("workspace", static_cast<std::int64_t>(device->workspaceBytes()));
    if (step == checkpoints.start().step + 1) // from then on libraries take no more
      if (const auto bytes = device->libraryBytes())
        line.add("library_bytes", static_cast<std::int64_t>(*bytes));
  }

  /// Ends the job when too many steps in a row were skipped. Loss and norm are the same on every
  /// rank, so all come here together. While they are finite nothing was skipped, and the step may
  /// go on behind the next one.
  void stopIfBad(std::int64_t step) {
    if (std::isfinite(valueOf("loss")) && std::isfinite(valueOf("grad_norm")))
      return;
    if (device->state().badSteps < kBadStepsInARow)
      return;
    drain(); // an update that is skipped notes the gradient
    const int firstBad = device->firstBad();
    constexpr std::int64_t none = INT32_MAX;
    std::int64_t first = firstBad < 0 ? -none : -std::int64_t(firstBad);
    device->world().allReduce(&first, &first, 1, ReduceOp::Max);
    std::string culprit = "every gradient is finite";
    for (const Storage &storage : program.storages) {
      const std::int64_t member = -first - storage.firstParameter;
      if (-first != none && member >= 0 && member < std::int64_t(storage.members.size()))
        culprit = std::string("the first gradient that is not finite is that of '") +
                  storage.members[static_cast<std::size_t>(member)].name + "'";
    }
    throw Error(
        format("got loss %g and gradient norm %g in step %lld, the last of %d in a row that "
               "are not finite and whose updates were skipped; %s; lower the learning "
               "rate, clip the gradients, or look at the data",
               shownNumber(valueOf("loss")), shownNumber(valueOf("grad_norm")),
               static_cast<long long>(step), kBadStepsInARow, culprit.c_str()));
  }

  /// Loss and metrics over the validation set, every sample once. Of the last batch only the
  /// samples that the set still has count; those after them repeat the first ones.
  void runEvaluation(std::int64_t step) {
    const std::int64_t samples = sources.valData->samples(), batch = batchSize();
    settle();
    valBatches->goTo(0);
    device->mark({"evaluate", step});
    std::fill(sums.begin(), sums.end(), WeightedSum());
    for (std::int64_t first = 0; first < samples; first += batch) {
      device->setSamples(std::min(batch, samples - first));
      device->run(program.evaluate, &*valBatches, /*again=*/first + batch < samples);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        sums[i].sum += device->sums()[i].sum;
        sums[i].weight += device->sums()[i].weight;
      }
    }
    device->setSamples(batch);
    for (std::size_t i = 0; log && i < sums.size(); ++i)
      line.add("val_", program.evaluate.outputs[i], sums[i].sum / sums[i].weight);
    if (progress && options.evalEvery && !options.onlyEvaluates()) {
      progress->end();
      std::printf("step %lld/%lld  ", static_cast<long long>(step), static_cast<long long>(steps));
      printValidation();
    }
  }

  /// The run of `--steps=0`. Its log is one line, of the step whose weights these are.
  void evaluateOnly() {
    const std::int64_t step = checkpoints.start().step;
    line.add("step", step);
    runEvaluation(step);
    if (log)
      log->write(line, step);
  }

  void printValidation() {
    for (std::size_t i = 0; i < sums.size(); ++i)
      std::printf("%sval_%s %.6g", i ? "  " : "", program.evaluate.outputs[i],
                  shownNumber(sums[i].sum / sums[i].weight));
    std::printf("\n");
  }

  RunHeader header() const {
    return {program,
            options,
            steps,
            job.mesh().describe(),
            target::libraries(),
            device->collectives(),
            sources.contents,
            checkpoints.start(),
            checkpoints.folder()};
  }

  void printHeader() {
    std::fputs(header().text().c_str(), stdout);
    if (options.report)
      std::fputs(program.report, stdout);
    showOutput();
  }

  void openLog() {
    if (outputs.log.empty())
      return runStart.noteOpened({});
    const std::int64_t first = checkpoints.start().step; // after which training begins
    const std::string name = printable(outputs.log.name());
    const bool goesOn = runStart.hasOpened() ? runStart.owns(outputs.log.identity())
                                             : first > 0 && !options.onlyEvaluates();
    log.emplace(outputs.log,
                std::vector<FileIdentity>{outputs.exported.identity(), outputs.trace.identity(),
                                          identityOf(options.flightRecord)},
                goesOn ? std::optional(first) : std::nullopt);
    runStart.noteOpened(log->identity());
    if (!log->kept().empty())
      std::printf("kept the existing log as '%s'\n", printable(log->kept()).c_str());
    if (log->dropped())
      std::printf("dropped %lld steps after step %lld from the log '%s'\n", 0LL + log->dropped(),
                  0LL + first, name.c_str());
    if (log->lastStep() && *log->lastStep() < first)
      std::fprintf(stderr,
                   "%s: warning: the log '%s' has no step %lld, after which training goes on\n",
                   program.name, name.c_str(), static_cast<long long>(first));
    if (options.restarts)
      log->writeHeader(
          restartLine(options.restarts, first, job.mesh().describe(), options.restartCause));
    if (options.logHeader)
      log->writeHeader(header().line());
    showOutput();
  }

  void sayWrote(const OutputPath &path) {
    if (job.rank() != 0)
      return;
    std::printf("wrote '%s'\n", printable(path.name()).c_str());
    showOutput();
  }

  /// Fewer bad steps in a row than end the job may stand at its end.
  void warnOfLastStep() {
    if (device->state().badSteps == 0 || options.onlyEvaluates())
      return;
    std::fprintf(stderr,
                 "%s: warning: got loss %g and gradient norm %g in the last step, which are not "
                 "finite: its update was skipped, and the weights are those before it; lower the "
                 "learning rate, clip the gradients, or look at the data\n",
                 program.name, shownNumber(valueOf("loss")), shownNumber(valueOf("grad_norm")));
  }

  void printSummary() {
    progress->end();
    if (checkpoints.start().step == steps && !options.onlyEvaluates()) {
      std::printf("nothing to train: the checkpoint is of step %lld\n",
                  static_cast<long long>(steps));
      return;
    }
    if (!options.onlyEvaluates()) {
      std::printf("done:");
      for (std::size_t i = 0; i < values.size(); ++i)
        std::printf("  %s %.6g%s", program.train.outputs[i], shownNumber(values[i]),
                    i + 1 == values.size() ? "\n" : "");
    }
    if (valBatches)
      printValidation();
    std::printf("memory: arena peak %zu of %zu bytes (%s), workspace %zu bytes",
                device->peakBytes(), program.arenaBytes,
                formatBytes(static_cast<double>(program.arenaBytes)).c_str(),
                device->workspaceBytes());
    if (const auto bytes = device->libraryBytes())
      std::printf(", libraries %zu bytes", *bytes);
    std::printf("\n");
    showOutput();
  }

  const Program &program;
  Options options; ///< a checkpoint's seed and learning rate among them
  const Sources &sources;
  const Outputs &outputs;
  RunStart &runStart;
  std::int64_t steps;
  Job &job;
  // What the device's streams use outlives it.
  std::optional<Batches> batches, valBatches;
  std::unique_ptr<Device> device;
  RunCheckpoints checkpoints;
  std::optional<ProgressLine> progress; // rank 0 only, like the log
  std::optional<LogFile> log;
  JsonLine line;
  std::int64_t left = 0;         ///< the step that has left updates for the next one; 0: none has
  std::vector<float> values;     ///< those of the latest step
  std::vector<WeightedSum> sums; ///< of the outputs of the latest evaluation
};

/// Refuses a validation set that does not fill its last batch where the model needs that.
void checkWholeBatches(const Program &program, const std::string &path, const Dataset &data) {
  const std::int64_t batch = globalBatch(program), rest = data.samples() % batch;
  if (rest && !program.evaluate.countsSamples)
    throw Error(format("'%s': got %lld samples to evaluate on, expected a multiple of the batch, "
                       "%lld: the model mixes the samples of a batch, so it can only be "
                       "evaluated on full batches; remove the last %lld samples",
                       path.c_str(), static_cast<long long>(data.samples()),
                       static_cast<long long>(batch), static_cast<long long>(rest)));
}

Sources openSources(const Program &program, const Options &options) {
  Sources sources;
  if (!options.data.empty())
    sources.data = openDataset(options.data, program.inputs);
  if (!options.valData.empty())
    sources.valData = openDataset(options.valData, program.inputs);
  if (sources.valData)
    checkWholeBatches(program, options.valData, *sources.valData);
  sources.checkpoints = findCheckpoints(program, options);
  if (!options.init.empty()) {
    sources.weights = std::make_unique<WeightFiles>(options.init);
    const std::string change = configChange(program, sources.weights->files().front());
    if (!change.empty() && !options.allowModelChange)
      throw Error(
          change +
          "; go on with these weights and the model of this program with --allow-model-change");
    if (!change.empty())
      std::fprintf(stderr, "%s: warning: %s\n", program.name, printableMessage(change).c_str());
    const std::string remark = checkWeights(*sources.weights, program);
    if (!remark.empty())
      std::fprintf(stderr, "note: %s\n", printableMessage(remark).c_str());
    sources.weights->releasePages(); // checked; ranks read what they need
  }
  return sources;
}

/// Refuses now what would fail after the last step, or would overwrite an input. `files` becomes
/// what the command line names.
Outputs openOutputs(const Options &options, std::vector<NamedFile> &files) {
  Outputs outputs;
  const auto input = [&](const char *option, const std::string &path) {
    if (!path.empty())
      files.push_back(NamedFile::input(option, path));
  };
  const auto open = [&](const char *option, const std::string &path, OutputPath &to) {
    if (path.empty())
      return;
    to = OutputPath(path);
    files.push_back(NamedFile::output(option, to));
  };
  input("--data", options.data);
  input("--val-data", options.valData);
  input("--init", options.init);
  open("--export", options.exportTo, outputs.exported);
  open("--log", options.log, outputs.log);
  open("--trace", options.trace, outputs.trace);
  checkDistinct(files);
  for (const OutputPath *replaced : {&outputs.exported, &outputs.trace})
    requireNoLogOfARun(*replaced);
  keepOutputOutOf(files);
  return outputs;
}

std::int64_t stepCount(const Program &program, const Options &options, const Sources &sources) {
  if (options.steps)
    return *options.steps;
  const double batch = static_cast<double>(globalBatch(program));
  const double samples = sources.data ? double(sources.data->samples()) : batch;
  const double steps = std::ceil(*options.epochs * samples / batch);
  if (!(steps < 0x1p63)) // the least number that is none of std::int64_t
    throw Error(format("--epochs got %g, which is %g steps of %g samples, expected at most %lld "
                       "steps",
                       *options.epochs, steps, batch, static_cast<long long>(INT64_MAX)),
                kExitBadCommandLine);
  return std::max<std::int64_t>(static_cast<std::int64_t>(steps), 1);
}

/// Says so where a run ends before its learning rate has risen to what was asked for.
void warnOfWarmup(const Program &program, std::int64_t steps) {
  if (program.warmup > steps && steps > 0)
    std::fprintf(stderr,
                 "%s: warning: the learning rate rises over %lld steps (--warmup of the compiler), "
                 "and this run has %lld; train longer or compile with a smaller --warmup\n",
                 program.name, static_cast<long long>(program.warmup),
                 static_cast<long long>(steps));
}

} // namespace

std::size_t mostOutputs(const Program &program) {
  return std::max(program.train.outputs.size(), program.evaluate.outputs.size());
}

int runTraining(Plans plans, int argc, char **argv) {
  prepareStandardStreams();
  Options options;
  if (const std::optional<int> status = parseCommandLine(plans, argc, argv, options))
    return *status;
  try {
    if (options.report && options.data.empty()) {
      for (const Program *plan : plans)
        if (!options.plan || options.plan == plan)
          std::fputs(plan->report, stdout);
      finishOutput();
      return kExitDone;
    }
    const Program &program = pickPlan(plans, options.plan);
    if (!options.save.empty())
      checkRoot(options.save, program);
    const std::optional<LaunchEnvironment> several = detectMachines();
    target::requireDevices(target::jobOptions(program, options.communicator),
                           worldSize(program) / (several ? several->size : 1));
    std::vector<NamedFile> files;
    const Outputs outputs = openOutputs(options, files);
    Sources sources = openSources(program, options);
    if (sources.weights) // an index or a folder leads to other files
      for (const std::string &path : sources.weights->files())
        files.push_back(NamedFile::input("--init", path));
    checkDistinct(files);
    checkFlightRecord(options, files);
    const bool isLaunched = detectLauncher() || several;
    if (isLaunched || !options.save.empty() || options.logHeader)
      sources.contents = RunContents::of(options, sources.weights.get());
    const std::int64_t steps = stepCount(program, options, sources);
    warnOfWarmup(program, steps);
    if (!options.save.empty())
      handleStopSignals();
    std::optional<Machines> machines;
    if (several)
      machines.emplace(*several);
    const int count = machines ? machines->count() : 1;
    if (options.maxRestarts)
      requireSupervision(plans, program, options, count);
    RunStart runStart;
    return runSupervised(
        plans, program, options, count, [&](const Program &plan, std::string &cause) {
          if (options.restarts) // before this process waits for that disk
            requireAnswer(options.save, silenceLimit(options.timeout.value_or(kFolderTimeout)));
          if (options.maxRestarts && (!several || several->rank == 0))
            runStart.lock(options.save);
          if (options.restarts)
            sources.checkpoints = runStart.hasOpened()
                                      ? runStart.candidates(options.save, sources.checkpoints)
                                      : findCheckpoints(plan, options);
          JobOptions job = target::jobOptions(plan, options.communicator);
          job.trustNetwork = options.trustNetwork;
          job.machines = machines ? &*machines : nullptr;
          job.progress = &runStart.progress();
          if (isLaunched) // or ranks are forked, with these very options
            job.identity = identityOfTraining(plan, options, steps, sources.contents,
                                              describeResumed(sources.checkpoints));
          job.timeoutSeconds = options.timeout.value_or(0);
          job.handlesStop = !options.save.empty();
          job.flightRecord = options.flightRecordFile();
          if (options.maxRestarts)
            job.onFailure = [&](const Error &error) {
              if (error.isRefusal())
                report(error); // again it would be refused again
              else
                cause = error.describe();
            };
          return runRanks(Mesh(plan.axes, plan.deviceOrder), job, [&](Job &rank) {
            return Training(plan, options, sources, outputs, runStart, steps, rank).run();
          });
        });
  } catch (const NoPlan &none) {
    return reportByFirst(none.error, none.rank);
  } catch (const Error &error) {
    return report(error);
  }
}

} // namespace fsdp::rt
