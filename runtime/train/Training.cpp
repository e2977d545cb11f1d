#include "runtime/train/Training.h"

#include "base/Error.h"
#include "base/PrintableText.h"
#include "base/WaitCounter.h"
#include "runtime/execution/Device.h"
#include "runtime/files/StandardStreams.h"
#include "runtime/job/Job.h"
#include "runtime/job/StopSignals.h"
#include "runtime/program/Shard.h"
#include "runtime/train/BadSteps.h"
#include "runtime/train/Batches.h"
#include "runtime/train/Hyperparameters.h"
#include "runtime/train/Log.h"
#include "runtime/train/LogFile.h"
#include "runtime/train/ParameterNames.h"
#include "runtime/train/Prints.h"
#include "runtime/train/RunCheckpoints.h"
#include "runtime/train/RunHeader.h"
#include "runtime/train/Weights.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fsdp::rt {

using namespace base;

namespace {

/// One rank's training run.
class Training {
public:
  Training(const Program &program, const Options &options, const RunSources &sources,
           const RunOutputs &outputs, RunStart &runStart, std::int64_t steps, Job &job)
      : program(program), options(options), sources(sources), outputs(outputs), runStart(runStart),
        steps(steps), job(job), device(target::open(program, job)),
        checkpoints(program, this->options, steps, *device, sources.checkpoints, runStart,
                    sources.data ? sources.data->samples() : 0, sources.files.training,
                    sources.carried),
        prints(program.train) {
    values.resize(program.train.outputs.size());
    sums.resize(program.evaluate.outputs.size());
  }

  int run() {
    if (job.rank() ==
        0) // first, as the flight record of another failure would replace that of the other run
      requireNoLogOfARun(outputs.log);
    checkpoints.claim();
    if (!checkpoints.resume())
      fillParameters();
    if (options.generation) {
      if (job.rank() == 0 && sources.weights)
        std::fputs(describeDrawn(sources.weights->drawn()).c_str(), stderr);
      device->world().barrier();
      program.generation.generate(
          {program, *device, *options.generation, sources.carried, outputs.scores});
      checkpoints.finish();
      return kExitDone;
    }
    hyper = Hyperparameters::of(program, options, steps,
                                checkpoints.folder().empty() ? nullptr : &checkpoints.start());
    startState();
    device->setUpdates(updateSettings(program, hyper.groups));
    openBatches();
    if (!options.save.empty())
      checkpoints.describe(header().record(), hyper);
    checkpoints.open();
    if (job.rank() == 0) {
      printHeader();
      progress.emplace(steps, program.tokensPerSample > 1 ? "tokens" : "samples", !prints.empty());
      openLog();
    }
    device->world().barrier();
    if (!outputs.trace.empty())
      device->startTrace();
    began = now();
    for (std::int64_t step = checkpoints.start().step + 1; step <= steps; ++step) {
      if (!trainStep(step)) {
        step = checkpoints.start().step;
        continue;
      }
      const int signal = checkpoints.afterStep(step, [&] {
        settle();
        if (log) // the lines of the log are on the device before the checkpoint is
          log->flush();
      });
      saySaved();
      if (signal)
        return stop(step, signal);
    }
    if (options.onlyEvaluates() && sources.valData)
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
      exportWeights(outputs.exported, program, *device, outputs.exportOnly);
      if (!outputs.exportFolder.empty() && job.rank() == 0)
        writeFiles(outputs.exportsAdapters ? BesideFiles(program.adapters.files)
                                           : filesBeside(program, sources.carried),
                   outputs.exportFolder);
      sayWrote(outputs.exported);
    }
    if (!outputs.merged.empty()) {
      exportMerged(outputs.merged, program, *device);
      if (!outputs.mergedFolder.empty() && job.rank() == 0)
        writeFiles(filesBeside(program, sources.carried), outputs.mergedFolder);
      sayWrote(outputs.merged);
    }
    finishLog();
    return kExitDone;
  }

private:
  /// The output `name` of the latest step.
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
      // So that a rank does not hold a second copy of the parameters.
      if (sources.weights)
        sources.weights->releasePages();
    }
  }

  void fill(const Storage &storage) {
    const RankPosition position = positionOf(program, device->job());
    device->write(storage.shard, [&](float *shard) {
      if (sources.weights)
        loadShard(*sources.weights, storage, position, options.seed, shard);
      else
        initializeShard(storage, position, options.seed, shard);
    });
  }

  void startState() {
    const CheckpointManifest &start = checkpoints.start();
    StepState state{};
    state.step = start.step;
    state.updates = start.updates;
    state.seed = options.seed;
    hyper.writeTo(state);
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

  SampleOrder sampleOrder() const {
    std::vector<WeightedSamples> weighted;
    for (const DataSource &source : sources.files.training)
      weighted.push_back({source.samples, source.weight});
    return {options.shuffle, options.seed, weighted};
  }

  void openBatches() {
    if (sources.data) {
      batches.emplace(program, *sources.data, sampleOrder(), job);
      batches->goTo(checkpoints.start().samples);
    }
    if (sources.valData)
      valBatches.emplace(program, *sources.valData, SampleOrder(), job);
  }

  /// Completes all work, including deferred updates, before parameters are read between steps
  /// (evaluation, a checkpoint, an export).
  void settle() {
    drain();
    device->finish();
  }

  /// An error is a refusal: a restart would have nothing to train, and would end as if the log were
  /// complete.
  void finishLog() {
    try {
      if (log)
        log->finish();
    } catch (const Error &error) {
      throw error.asRefusal();
    }
  }

  /// Ends the run after a signal; returns its status.
  int stop(std::int64_t step, int signal) {
    checkpoints.finish();
    saySaved();
    finishLog();
    if (job.rank() == 0) {
      std::printf("stopped by %s after step %lld of %lld; continue with --resume=latest\n",
                  signal == SIGINT ? "SIGINT" : "SIGTERM", static_cast<long long>(step),
                  static_cast<long long>(steps));
      showOutput();
    }
    device->world().barrier();
    return statusOfSignal(signal);
  }

  std::int64_t batchSize() const { return globalBatch(program); }

  /// Performs the updates that the latest step has deferred.
  void drain() {
    if (!deferredStep)
      return;
    device->mark({"drain", std::exchange(deferredStep, 0)});
    device->run(program.drain, nullptr, /*prefetchNext=*/false);
  }

  /// False: the run has gone back to checkpoints.start().
  bool trainStep(std::int64_t step) {
    const double begin = now();
    device->mark({"step", step});
    device->run(program.train, batches ? &*batches : nullptr, /*prefetchNext=*/step < steps);
    deferredStep = program.drain.runs.empty() ? 0 : step;
    const double seconds = now() - begin;
    std::copy_n(device->outputs(), values.size(), values.begin());
    if (isBad() && !goesOn(step))
      return false;
    const double rate =
        static_cast<double>(batchSize() * program.tokensPerSample) / std::max(seconds, 1e-9);
    if (log)
      describe(step, seconds, rate);
    if (progress &&
        progress->step(step, valueOf("loss"), valueOf("grad_norm"), valueOf("lr"), seconds, rate))
      std::fputs(prints.describe(values).c_str(), stdout);
    if (options.logData)
      describeSamples(step);
    if (valBatches && (step == steps || (options.evalEvery && step % options.evalEvery == 0)))
      runEvaluation(step);
    if (log)
      log->write(line, step);
    return true;
  }

  void describe(std::int64_t step, double seconds, double rate) {
    line.add("step", step);
    for (std::size_t i = 0; i < values.size(); ++i)
      line.add(program.train.outputs[i], values[i]);
    line.add("tokens_per_s", rate);
    line.add("step_ms", seconds * 1e3);
    line.add("peak_bytes", static_cast<std::int64_t>(device->peakBytes()));
    line.add("workspace", static_cast<std::int64_t>(device->workspaceBytes()));
    if (step == checkpoints.start().step + 1) // later steps allocate no more
      if (const auto bytes = device->libraryBytes())
        line.add("library_bytes", static_cast<std::int64_t>(*bytes));
    line.add("seconds", secondsBefore + now() - began);
    const std::int64_t position = checkpoints.samplesAfter(step);
    line.add("tokens", position * program.tokensPerSample);
    if (sources.data)
      line.add("epoch",
               static_cast<double>(position) / static_cast<double>(sources.data->samples()));
    if (program.modelFlops > 0)
      line.add("tflops", program.modelFlops / std::max(seconds, 1e-9) / 1e12);
    if (program.peakSeconds > 0)
      line.add("mfu", program.peakSeconds / std::max(seconds, 1e-9));
  }

  /// The digest of the samples that all ranks have loaded for this step.
  void describeSamples(std::int64_t step) {
    const std::int64_t first = checkpoints.samplesAfter(step - 1);
    std::int64_t digest = batches ? static_cast<std::int64_t>(batches->digestOf(first)) : 0;
    device->world().allReduce(&digest, &digest, 1);
    if (log)
      line.add("samples_digest", digest & static_cast<std::int64_t>(kSampleDigestMask));
  }

  /// Outputs are the same on every rank, so all ranks come to the same result. While they are good
  /// nothing was skipped, and the step may still run while the next one is enqueued.
  bool isBad() const {
    return !std::isfinite(valueOf("loss")) || !std::isfinite(valueOf("grad_norm")) ||
           prints.findFailed(values);
  }

  /// Of a step that is bad: what --on-nan says. False: the run has gone back.
  bool goesOn(std::int64_t step) {
    if (!options.onNan.empty() && !std::exchange(wroteBadStep, true)) {
      const BadStep bad = badStep(step);
      if (const std::string file = options.badStepFile(); job.rank() == 0 && !file.empty()) {
        progress->end();
        writeBadStep(file, bad.record(options.data));
      }
    }
    if (options.onNan == "stop")
      endRun(badStep(step), "which are not finite (--on-nan=stop)");
    if (options.onNan.empty() && prints.findFailed(values))
      endRun(badStep(step), "whose update was skipped (--on-nan says what else may be done)");
    if (options.onNan == "rollback")
      return goBack(badStep(step)), false;
    if (device->state().badSteps >= kBadStepsInARow)
      throw tooManyBadSteps(badStep(step), kBadStepsInARow);
    return true;
  }

  /// Called by all ranks together.
  BadStep badStep(std::int64_t step) {
    drain(); // a skipped update records its gradient
    const int firstBad = device->firstBad();
    constexpr std::int64_t none = INT32_MAX;
    std::int64_t first = firstBad < 0 ? -none : -std::int64_t(firstBad);
    device->world().allReduce(&first, &first, 1, ReduceOp::Max);
    BadStep bad{step, valueOf("loss"),          valueOf("grad_norm"), valueOf("lr"), "", 0,
                {},   prints.findFailed(values)};
    for (const Storage &storage : program.storages) {
      const std::int64_t member = -first - storage.firstParameter;
      if (-first != none && member >= 0 && member < std::int64_t(storage.members.size()))
        bad.parameter = storage.members[static_cast<std::size_t>(member)].name;
    }
    bad.position = checkpoints.samplesAfter(step - 1);
    const SampleOrder order = sampleOrder();
    for (std::int64_t i = 0; sources.data && i < batchSize(); ++i)
      bad.samples.push_back(order.sampleAt(bad.position + i, sources.data->samples()));
    return bad;
  }

  /// To the latest checkpoint, and past the samples of all steps from there to the bad one.
  void goBack(const BadStep &bad) {
    settle();
    checkpoints.finish();
    saySaved();
    const std::int64_t target = checkpoints.latest(), number = rollbacks.add(bad, target);
    const std::int64_t skipFrom = checkpoints.samplesAfter(target),
                       skipTo = checkpoints.samplesAfter(bad.step);
    if (!checkpoints.goBack(skipTo))
      fillParameters();
    startState();
    if (job.rank() != 0)
      return;
    progress->end();
    std::fprintf(stderr, "%s: warning: %s\n", program.name,
                 describeRollback(number, bad, target, skipTo - skipFrom).c_str());
    if (!log)
      return;
    log->goBack(target);
    secondsBefore = log->lastSeconds();
    began = now();
    log->writeHeader(rollbackLine(number, bad, target, skipFrom, skipTo));
  }

  /// Loss and metrics over the validation set, every sample once. In the last batch only the
  /// remaining samples count; the others are repetitions.
  void runEvaluation(std::int64_t step) {
    const std::int64_t samples = sources.valData->samples(), batch = batchSize();
    settle();
    valBatches->goTo(0);
    device->mark({"evaluate", step});
    std::fill(sums.begin(), sums.end(), WeightedSum());
    for (std::int64_t first = 0; first < samples; first += batch) {
      device->setSamples(std::min(batch, samples - first));
      device->run(program.evaluate, &*valBatches, /*prefetchNext=*/first + batch < samples);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        sums[i].sum += device->sums()[i].sum;
        sums[i].weight += device->sums()[i].weight;
      }
    }
    device->setSamples(batch);
    for (std::size_t i = 0; progress && i < sums.size(); ++i)
      if (sums[i].weight == 0) // a 0 looks like a success
        std::fprintf(stderr, "%s: warning: nothing in --val-data counts in val_%s, which is 0\n",
                     program.name, program.evaluate.outputs[i]);
    for (std::size_t i = 0; log && i < sums.size(); ++i)
      line.add("val_", program.evaluate.outputs[i], sums[i].mean());
    if (progress && options.evalEvery && !options.onlyEvaluates()) {
      progress->end();
      std::printf("step %lld/%lld  ", static_cast<long long>(step), static_cast<long long>(steps));
      printValidation();
    }
  }

  /// The run of `eval` and `--steps=0`. Its log has one line, with the step of the weights.
  void evaluateOnly() {
    const std::int64_t step = checkpoints.start().step;
    line.add("step", step);
    runEvaluation(step);
    if (const auto value = perplexity())
      line.add("val_perplexity", *value);
    line.add("samples", sources.valData->samples());
    if (log)
      log->write(line, step);
  }

  /// exp(loss) of the latest evaluation; nothing if the program reads no tokens, or if the model
  /// has a metric of that name.
  std::optional<double> perplexity() const {
    std::optional<double> value;
    for (std::size_t i = 0; readsTokens(program) && i < sums.size(); ++i) {
      const std::string_view name = program.evaluate.outputs[i];
      if (name == "perplexity")
        return std::nullopt;
      if (name == "loss")
        value = std::exp(sums[i].mean());
    }
    return value;
  }

  void printValidation() {
    for (std::size_t i = 0; i < sums.size(); ++i)
      std::printf("%sval_%s %.6g", i ? "  " : "", program.evaluate.outputs[i],
                  shownNumber(sums[i].mean()));
    if (const auto value = perplexity(); value && options.onlyEvaluates())
      std::printf("  val_perplexity %.6g", shownNumber(*value));
    std::printf("\n");
  }

  /// Of each of several sources, by the end of the run.
  std::vector<double> epochs() const {
    std::vector<double> epochs;
    const std::int64_t trained = steps - checkpoints.start().step;
    for (std::int64_t draws :
         sampleOrder().drawsBefore(checkpoints.start().samples + trained * batchSize()))
      epochs.push_back(double(draws) / double(sources.files.training[epochs.size()].samples));
    return epochs;
  }

  RunHeader header() const {
    return {program,
            options,
            steps,
            hyper,
            job.mesh().describe(),
            target::libraries(),
            device->collectives(),
            sources.contents,
            checkpoints.start(),
            checkpoints.folder(),
            sources.weights && checkpoints.folder().empty() ? sources.weights->drawn()
                                                            : std::vector<std::string>(),
            sources.files,
            epochs()};
  }

  void printHeader() {
    std::fputs(header().text().c_str(), stdout);
    if (!hyper.changes.empty())
      std::printf("changed since the checkpoint: %s\n", hyper.describeChanges().c_str());
    if (options.report)
      std::fputs(program.report, stdout);
    showOutput();
    warnOfWarmup();
  }

  /// Warns if a run ends before its warmup does.
  void warnOfWarmup() const {
    const std::int64_t warmup = hyper.schedule.warmup;
    if (warmup > steps && !options.onlyEvaluates())
      std::fprintf(stderr,
                   "%s: warning: the learning rate rises over %lld steps (--warmup), and this run "
                   "has %lld; train longer or with a smaller --warmup\n",
                   program.name, static_cast<long long>(warmup), static_cast<long long>(steps));
  }

  void openLog() {
    if (outputs.log.empty())
      return runStart.noteOpened({});
    const std::int64_t first = checkpoints.start().step; // training begins after it
    const std::string name = printable(outputs.log.name());
    const bool goesOn = runStart.hasOpened() ? runStart.owns(outputs.log.identity())
                                             : first > 0 && !options.onlyEvaluates();
    log.emplace(outputs.log,
                std::vector<FileIdentity>{outputs.exported.identity(), outputs.merged.identity(),
                                          outputs.trace.identity(),
                                          identityOf(options.flightRecord)},
                goesOn ? std::optional(first) : std::nullopt);
    runStart.noteOpened(log->identity());
    if (!log->previous().empty())
      std::printf("kept the existing log as '%s'\n", printable(log->previous()).c_str());
    if (log->dropped())
      std::printf("dropped %lld steps after step %lld from the log '%s'\n", 0LL + log->dropped(),
                  0LL + first, name.c_str());
    if (log->lastStep() && *log->lastStep() < first)
      std::fprintf(stderr,
                   "%s: warning: the log '%s' has no step %lld, after which training continues\n",
                   program.name, name.c_str(), static_cast<long long>(first));
    secondsBefore = log->lastSeconds();
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

  /// Warns if the last steps were skipped, but too few to end the job.
  void warnOfLastStep() {
    if (device->state().badSteps == 0 || options.onlyEvaluates())
      return;
    std::fprintf(
        stderr,
        "%s: warning: %s in the last step, which are not finite: its update was skipped, "
        "and the weights are those before it; lower the learning rate, clip the "
        "gradients, or look at the data\n",
        program.name,
        printable(describeBad(prints.findFailed(values), valueOf("loss"), valueOf("grad_norm")))
            .c_str());
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
        if (!prints.owns(i))
          std::printf("  %s %.6g", program.train.outputs[i], shownNumber(values[i]));
      std::printf("\n");
    }
    if (options.onlyEvaluates() && sources.valData)
      std::printf("evaluated %lld sample%s\n", static_cast<long long>(sources.valData->samples()),
                  sources.valData->samples() == 1 ? "" : "s");
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
  Options options; ///< with the seed of a checkpoint
  const RunSources &sources;
  const RunOutputs &outputs;
  RunStart &runStart;
  std::int64_t steps;
  Hyperparameters hyper;
  Job &job;
  // Used by the device's streams, so they outlive the device.
  std::optional<Batches> batches, valBatches;
  std::unique_ptr<Device> device;
  RunCheckpoints checkpoints;
  std::optional<ProgressLine> progress; // on rank 0 only, as the log
  std::optional<LogFile> log;
  JsonLine line;
  std::int64_t deferredStep = 0;       ///< the step with deferred updates; 0: none
  double began = 0, secondsBefore = 0; ///< of `seconds` in the log: by now(), and of earlier lines
  bool wroteBadStep = false;
  Rollbacks rollbacks;
  Prints prints;
  std::vector<float> values;     ///< outputs of the latest step
  std::vector<WeightedSum> sums; ///< of the outputs of the latest evaluation
};

} // namespace

int train(const Program &program, const Options &options, const RunSources &sources,
          const RunOutputs &outputs, RunStart &runStart, std::int64_t steps, Job &job) {
  return Training(program, options, sources, outputs, runStart, steps, job).run();
}

} // namespace fsdp::rt
