#include "runtime/train/Training.h"

#include "base/Error.h"
#include "base/PrintableText.h"
#include "base/WaitCounter.h"
#include "runtime/execution/Device.h"
#include "runtime/files/StandardStreams.h"
#include "runtime/job/Job.h"
#include "runtime/job/StopSignals.h"
#include "runtime/program/Roles.h"
#include "runtime/program/Shard.h"
#include "runtime/train/ArenaPeak.h"
#include "runtime/train/BadSteps.h"
#include "runtime/train/Batches.h"
#include "runtime/train/Exports.h"
#include "runtime/train/Hyperparameters.h"
#include "runtime/train/Log.h"
#include "runtime/train/LogFile.h"
#include "runtime/train/ParameterNames.h"
#include "runtime/train/Prints.h"
#include "runtime/train/RunCheckpoints.h"
#include "runtime/train/RunHeader.h"
#include "runtime/train/Spikes.h"

#include <algorithm>
#include <cmath>
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
        history(options.spikes.window), prints(program.train) {
    values.resize(program.train.outputs.size());
    sums.resize(program.evaluate.outputs.size());
  }

  int run() {
    if (job.rank() == 0) // first, as another failure's flight record would replace that run's
      requireNoLogOfARun(outputs.log);
    checkpoints.claim();
    if (!checkpoints.resume())
      fillParameters();
    if (options.generation)
      return generate();
    hyper = Hyperparameters::of(program, options, steps,
                                checkpoints.folder().empty() ? nullptr : &checkpoints.start());
    startState();
    device->setUpdates(updateSettings(program, hyper.groups));
    openBatches();
    if (!options.save.empty())
      checkpoints.describe(header().record(), hyper, history);
    checkpoints.open();
    requireOutput(options.evaluates());
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
    if (options.evaluates())
      evaluateOnly();
    settle();
    checkpoints.finish();
    saySaved();
    if (job.rank() == 0) {
      printSummary();
      if (device->state().badSteps && !options.onlyEvaluates())
        warnOfLastStep(program.name, latest(steps));
    }
    if (!outputs.trace.empty()) {
      device->writeTrace(outputs.trace);
      sayWrote(*device, outputs.trace);
    }
    writeExports(outputs, program, *device, sources.carried);
    finishLog();
    return options.evaluates() && job.rank() == 0 ? finishResult() : int(kExitDone);
  }

private:
  int generate() {
    if (job.rank() == 0 && sources.weights)
      std::fputs(describeDrawn(sources.weights->drawn()).c_str(), stderr);
    device->world().barrier();
    int status = kExitDone;
    try {
      program.generation.generate(
          {program, &*device, *options.generation, sources.carried, outputs.scores});
    } catch (const NoReader &) { // on all ranks, or after the last token on rank 0
      status = kExitNoReader;
    }
    checkpoints.finish();
    return status;
  }

  /// The output `name` of the latest step.
  float outputOf(std::string_view name) const {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (program.train.outputs[i] == name)
        return values[i];
    return NAN;
  }
  double valueOf(std::string_view name) const { return outputOf(name); }

  void fillParameters() {
    const RankPosition position = positionOf(program, job);
    for (const Storage &storage : program.storages) {
      if (!replicaAt(program, storage, position))
        continue;
      if (storage.shard.isPlaced())
        fill(storage, position);
      if (storage.hasCopy())
        fill(storage.asReplicated(), position);
      // So that a rank does not hold a second copy of the parameters.
      if (sources.weights)
        sources.weights->releasePages();
    }
  }

  void fill(const Storage &storage, const RankPosition &position) {
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
    state.samples = globalBatch(program);
    device->setState(state);
    history.restore(start.losses, start.gradNorms);
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
    if (log)
      log->finish();
  }

  /// Ends the run after a signal; returns its status.
  int stop(std::int64_t step, int signal) {
    checkpoints.finish();
    saySaved();
    finishLog();
    if (job.rank() == 0) {
      std::printf("stopped by %s after step %lld of %lld; continue with --resume=latest\n",
                  nameOfStop(signal), static_cast<long long>(step), static_cast<long long>(steps));
      showOutput();
    }
    device->world().barrier();
    return statusOfSignal(signal);
  }

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
    setLimits();
    device->mark({"step", step});
    device->run(program.train, batches ? &*batches : nullptr, /*prefetchNext=*/step < steps);
    deferredStep = program.drain.runs.empty() ? 0 : step;
    peak.note(program, program.train, *device);
    const double seconds = now() - begin;
    std::copy_n(device->outputs(), values.size(), values.begin());
    spike = !isBad() && !limits.allow(outputOf("loss"), outputOf("grad_norm"));
    if ((isBad() && !goesOn(step)) || (spike && !goesOnAfterSpike(step)))
      return false;
    history.add(outputOf("loss"), outputOf("grad_norm"));
    const double rate = static_cast<double>(globalBatch(program) * program.tokensPerSample) /
                        std::max(seconds, 1e-9);
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

  /// With --on-spike: the limits of the next step. The device skips an update that is to be skipped
  /// above them.
  void setLimits() {
    if (options.onSpike.empty())
      return;
    limits = history.limits(options.spikes);
    if (options.onSpike != "warn")
      device->setLimits(limits.loss, limits.gradNorm);
  }

  void describe(std::int64_t step, double seconds, double rate) {
    line.add("step", step);
    for (std::size_t i = 0; i < values.size(); ++i)
      line.add(program.train.outputs[i], values[i]);
    line.add("tokens_per_s", rate);
    line.add("step_ms", seconds * 1e3);
    line.add("peak_bytes", peak.bytes(*device));
    line.add("workspace", static_cast<std::int64_t>(device->workspaceBytes()));
    if (step == checkpoints.start().step + 1) // later steps allocate no more
      if (const auto bytes = device->libraryBytes())
        line.add("library_bytes", static_cast<std::int64_t>(*bytes));
    if (limits.steps) {
      line.add("loss_limit", limits.loss);
      line.add("grad_norm_limit", limits.gradNorm);
      line.add("spike", std::int64_t(spike));
    }
    line.add("seconds", secondsBefore + now() - began);
    const std::int64_t position = checkpoints.samplesAfter(step);
    line.add("tokens", position * program.tokensPerSample);
    if (sources.data)
      line.add("epoch", double(position) / double(sources.data->samples()));
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

  /// Performs the action of --on-nan for a bad step. False if the run has gone back.
  bool goesOn(std::int64_t step) {
    if (!options.onNan.empty())
      recordFirst(step);
    if (options.onNan == "stop")
      endRun(badStep(step), latest(step).kind() + " (--on-nan=stop)");
    if (options.onNan.empty() && prints.findFailed(values))
      endRun(badStep(step), "whose update was skipped (--on-nan selects other actions)");
    if (options.onNan == "rollback")
      return goBack(badStep(step)), false;
    if (device->state().badSteps >= kBadStepsInARow)
      throw tooManyBadSteps(badStep(step), kBadStepsInARow);
    return true;
  }

  /// Performs the action of --on-spike for a spike. False if the run has gone back.
  bool goesOnAfterSpike(std::int64_t step) {
    recordFirst(step);
    if (options.onSpike == "stop")
      endRun(badStep(step), latest(step).kind() + " (--on-spike=stop)");
    if (options.onSpike == "rollback")
      return goBack(badStep(step)), false;
    const bool skipped = options.onSpike == "skip";
    if (skipped) { // a skipped spike does not count as a step that is not finite
      StepState state = device->state();
      state.badSteps = 0;
      device->setState(state);
    }
    if (progress) {
      const BadStep bad = latest(step);
      progress->end();
      std::fprintf(stderr, "%s: warning: %s%s\n", program.name, bad.describe(bad.kind()).c_str(),
                   skipped ? ": its update was skipped" : "");
    }
    return true;
  }

  /// Writes the first bad step of the run into a file. Called by all ranks together.
  void recordFirst(std::int64_t step) {
    if (std::exchange(wroteBadStep, true))
      return;
    const BadStep bad = badStep(step);
    if (job.rank() != 0 || options.badStepFile().empty())
      return;
    progress->end();
    writeBadStep(bad, options, program.inputs, sources.data.get());
  }

  /// Without the facts that the ranks share.
  BadStep latest(std::int64_t step) const {
    BadStep bad{step, valueOf("loss"),          valueOf("grad_norm"), valueOf("lr"), "", 0,
                {},   prints.findFailed(values)};
    if (spike)
      bad.spike = {limits, options.spikes};
    return bad;
  }

  /// Called by all ranks together.
  BadStep badStep(std::int64_t step) {
    drain(); // a skipped update records its gradient
    const int firstBad = device->firstBad();
    constexpr std::int64_t none = INT32_MAX;
    std::int64_t first = firstBad < 0 ? -none : -std::int64_t(firstBad);
    device->world().allReduce(&first, &first, 1, ReduceOp::Max);
    BadStep bad = latest(step);
    for (const Storage &storage : program.storages) {
      const std::int64_t member = -first - storage.firstParameter;
      if (-first != none && member >= 0 && member < std::int64_t(storage.members.size()))
        bad.parameter = storage.members[static_cast<std::size_t>(member)].name;
    }
    bad.position = checkpoints.samplesAfter(step - 1);
    const SampleOrder order = sampleOrder();
    for (std::int64_t i = 0; sources.data && i < globalBatch(program); ++i)
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
    const std::int64_t samples = sources.valData->samples(), batch = globalBatch(program);
    settle();
    valBatches->goTo(0);
    device->mark({"evaluate", step});
    std::fill(sums.begin(), sums.end(), WeightedSum());
    for (std::int64_t first = 0; first < samples; first += batch) {
      device->setSamples(std::min(batch, samples - first));
      device->run(program.evaluate, &*valBatches, /*prefetchNext=*/first + batch < samples);
      peak.note(program, program.evaluate, *device);
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
         sampleOrder().drawsBefore(checkpoints.start().samples + trained * globalBatch(program)))
      epochs.push_back(double(draws) / double(sources.files.training[epochs.size()].samples));
    return epochs;
  }

  RunHeader header() const {
    return {program,
            options,
            steps,
            hyper,
            job.mesh().describe(),
            device->threads(),
            target::libraries(),
            device->collectives(),
            sources.contents,
            checkpoints.start(),
            checkpoints.folder(),
            sources.weights && checkpoints.folder().empty() ? sources.weights->drawn()
                                                            : std::vector<std::string>(),
            sources.files,
            epochs(),
            device->attentionLibrary()};
  }

  void printHeader() {
    std::fputs(header().text().c_str(), stdout);
    if (!hyper.changes.empty())
      std::printf("changed since the checkpoint: %s\n",
                  printableMessage(hyper.describeChanges()).c_str());
    if (options.report)
      std::fputs(program.report, stdout);
    showOutput();
    if (!options.onlyEvaluates())
      header().warn();
  }

  void openLog() {
    openRunLog(log, header(), outputs, runStart);
    if (log)
      secondsBefore = log->lastSeconds();
  }

  void printSummary() {
    progress->end();
    if (checkpoints.start().step == steps && !options.onlyEvaluates()) {
      std::printf("nothing to train: the checkpoint is of step %jd\n", std::intmax_t(steps));
      return;
    }
    if (!options.onlyEvaluates()) {
      std::printf("done:");
      for (std::size_t i = 0; i < values.size(); ++i)
        if (!prints.owns(i))
          std::printf("  %s %.6g", program.train.outputs[i], shownNumber(values[i]));
      std::printf("\n");
    }
    if (options.evaluates())
      std::printf("evaluated %lld sample%s\n", static_cast<long long>(sources.valData->samples()),
                  sources.valData->samples() == 1 ? "" : "s");
    if (valBatches)
      printValidation();
    std::printf("memory: arena peak %lld of %zu bytes (%s), workspace %zu bytes",
                static_cast<long long>(peak.bytes(*device)), arenaBytesOf(program),
                formatBytes(static_cast<double>(arenaBytesOf(program))).c_str(),
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
  StepHistory history;
  SpikeLimits limits; ///< of the latest step
  bool spike = false; ///< the latest step is one
  ArenaPeak peak;
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
