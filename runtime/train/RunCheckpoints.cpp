#include "runtime/train/RunCheckpoints.h"

#include "base/Error.h"
#include "base/FileSystem.h"
#include "base/MappedFile.h"
#include "base/PrintableText.h"
#include "base/WaitCounter.h"
#include "runtime/job/RunIdentity.h"
#include "runtime/job/StopSignals.h"
#include "runtime/program/Roles.h"
#include "runtime/train/Batches.h"
#include "runtime/train/ModelChange.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace fsdp::rt {

using namespace base;

namespace {

/// The error for a checkpoint that cannot be read now.
std::string mayBeWhole(const std::string &problem, bool isLatest) {
  return problem +
         "; it may be complete, so no earlier one is taken: try again when it can be read, " +
         (isLatest ? "name another checkpoint with --resume DIR, or pass over it with --start-over"
                   : "or name another checkpoint with --resume DIR");
}

/// The error if each of the checkpoints in `root` has a problem.
std::string noneCanBeUsed(const std::vector<std::string> &problems, const std::string &root,
                          bool isLatest) {
  const std::string remedy =
      isLatest ? "name another with --resume DIR, or begin anew with --start-over" : "";
  if (problems.size() == 1 && isLatest)
    return problems[0] +
           "; name another checkpoint with --resume DIR, or begin anew with --start-over";
  std::string text =
      problems.size() == 1
          ? ""
          : format("none of the %zu checkpoints in '%s' can be used%s: ", problems.size(),
                   root.c_str(), isLatest ? (" (" + remedy + ")").c_str() : "");
  for (const std::string &problem : problems)
    text += (&problem == &problems[0] ? "" : "; ") + problem;
  return text;
}

} // namespace

std::vector<SavedStep> findCheckpoints(const Program &program, const Options &options) {
  if (options.resume.empty())
    return {};
  const bool isLatest = options.resume == "latest";
  const std::string &path = isLatest ? options.save : options.resume;
  const std::vector<SavedStep> found = checkpointsAt(path);
  if (isLatest)
    return found;
  if (found.empty())
    throw Error("'" + path + "' holds no checkpoint: expected the folder of a step with '" +
                CheckpointManifest::kName +
                "', or a folder of such; --resume=latest starts at step 0 if there is none");
  const CheckpointLayout layout(program);
  std::vector<std::string> problems;
  for (const SavedStep &saved : found)
    try {
      Checkpoint(saved.folder, layout);
      return found;
    } catch (const UnreadableFile &error) {
      throw Error(mayBeWhole(error.what(), isLatest));
    } catch (const Error &error) {
      problems.push_back(error.what());
    }
  throw Error(noneCanBeUsed(problems, path, isLatest));
}

/// The description that ranks compare.
std::string describeResumed(const std::vector<SavedStep> &checkpoints) {
  for (const SavedStep &saved : checkpoints)
    try {
      const CheckpointManifest manifest = CheckpointManifest::read(saved.folder);
      return format("of step %lld, digest %s", static_cast<long long>(manifest.step),
                    digestText(contentDigest(manifest.text())).c_str());
    } catch (const Error &) { // training reads it again
    }
  return "of no checkpoint";
}

void checkRoot(const std::string &root, const Program &program) {
  struct stat status;
  const bool exists = stat(root.c_str(), &status) == 0;
  if (!exists && errno == ENAMETOOLONG)
    throw Error("cannot save to '" + root + "': " + std::strerror(errno));
  // The longest path is a file in the folder of a step, with a number appended.
  std::size_t longest = std::strlen(CheckpointManifest::kUnfinished);
  for (const ExtraFile &extra : program.extraFiles)
    longest = std::max(longest, std::strlen(extra.name));
  const CheckpointLayout layout(program);
  for (const CheckpointFile &file : layout.files())
    longest = std::max(longest, file.name.size());
  constexpr std::size_t kOfStep = 32;
  if (root.size() + kOfStep + longest >= PATH_MAX)
    throw Error(format("cannot save to '%s': its path has %zu bytes, expected at most %zu for the "
                       "names of the files in it",
                       root.c_str(), root.size(), PATH_MAX - 1 - kOfStep - longest));
  if (exists && !S_ISDIR(status.st_mode))
    throw Error("cannot save to '" + root + "': got a file, expected a folder or nothing");
  if (!exists && lstat(root.c_str(), &status) == 0)
    throw Error("cannot save to '" + root +
                "': got a symbolic link that leads to nothing, expected a folder or nothing");
  if (exists && fileExists(root + "/" + CheckpointManifest::kName))
    throw Error("cannot save to '" + root +
                "': got a checkpoint, expected the folder around it, '" + folderOf(root) +
                "', or another one");
  const std::string written = exists ? root : folderOf(root);
  if (access(written.c_str(), W_OK | X_OK) != 0)
    throw Error("cannot save to '" + root + "': '" + written + "': " + std::strerror(errno));
}

RunCheckpoints::RunCheckpoints(const Program &program, Options &options, std::int64_t steps,
                               Device &device, const std::vector<SavedStep> &candidates,
                               RunStart &runStart, std::int64_t samples,
                               const std::vector<DataSource> &given, const BesideFiles &carried)
    : program(program), options(options), steps(steps), device(device), candidates(candidates),
      runStart(runStart), samples(samples), carried(carried) {
  for (const DataSource &source : given)
    if (given.size() > 1)
      sources.push_back({source.name, {}, source.weight, source.samples});
}

RunCheckpoints::~RunCheckpoints() {
  saver.reset(); // completes a save in progress
}

void RunCheckpoints::claim() {
  if (!options.save.empty() && device.rank() == 0 && !runStart.holdsLock())
    lockRoot();
}

void RunCheckpoints::lockRoot() {
  const std::string &root = options.save;
  lock = Descriptor(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock) {
    if (errno == ENOENT)
      return;
    throw Error("cannot save to '" + root + "': " + std::strerror(errno));
  }
  if (!lock.lockAgainstOtherRuns(root))
    throw Error(
        "cannot save to '" + root +
        "': another run saves its checkpoints there; wait for its end or choose another folder")
        .asRefusal();
}

const CheckpointLayout &RunCheckpoints::layout() {
  if (!checkpointLayout)
    checkpointLayout.emplace(program);
  return *checkpointLayout;
}
std::vector<ShardShare> RunCheckpoints::shares() {
  return layout().sharesOf(device.job().mesh().coordinates(device.rank()));
}

void RunCheckpoints::refuse(bool isOwn, const Error &error) {
  std::int64_t first = isOwn ? -std::int64_t(device.rank()) : INT64_MIN;
  device.world().allReduce(&first, &first, 1, ReduceOp::Max);
  if (device.rank() == -first)
    throw error;
  device.world().barrier(); // that rank reports it
  throw Aborted("stopped, as another rank could not read a checkpoint");
}

bool RunCheckpoints::resume() {
  enum Verdict : std::int64_t { Usable, Damaged, Unreadable };
  const bool isLatest = options.resume == "latest" || runStart.hasOpened();
  // Only checkpoints of an older run are skipped: a restart would lose those of this run.
  const bool startsOver = options.startOver && !runStart.hasOpened();
  // After a restart a disk may be accessible again; in the first attempt the user decides.
  const auto unreadable = [&](const std::string &why) {
    return options.restarts ? Error(why) : Error(why).asRefusal();
  };
  std::vector<std::string> problems;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::string &folder = candidates[i].folder;
    std::string problem;
    std::int64_t own = Usable, worst = Usable;
    std::optional<Checkpoint> checkpoint;
    try {
      checkpoint.emplace(folder, layout());
    } catch (const UnreadableFile &error) {
      own = Unreadable, problem = error.what();
    } catch (const Error &error) {
      own = Damaged, problem = error.what();
    }
    device.world().allReduce(&own, &worst, 1, ReduceOp::Max);
    if (worst == Usable)
      problem = checkpoint->load(shares(), program, device);
    else if (worst == Unreadable && !startsOver)
      refuse(own == Unreadable, unreadable(mayBeWhole(problem, isLatest)));
    else if (problem.empty())
      problem = "'" + folder + "' cannot be read by another rank";
    if (problem.empty()) {
      continueFrom(*checkpoint);
      runStart.begin(static_cast<int>(i), from.step);
      return true;
    }
    problems.push_back(problem);
    if (i + 1 == candidates.size() && !startsOver)
      refuse(/*isOwn=*/device.rank() == 0,
             Error(noneCanBeUsed(problems, isLatest ? options.save : options.resume, isLatest))
                 .asRefusal());
    if (device.rank() == 0)
      std::fprintf(stderr,
                   "%s: warning: %s: continuing from an earlier checkpoint, if there is one\n",
                   program.name, printable(problem).c_str());
  }
  runStart.begin(-1, 0);
  if (device.rank() == 0 && isLatest)
    std::printf("no checkpoint%s in '%s'%s: training begins anew\n",
                runStart.hasOpened() ? " of this run" : "", options.save.c_str(),
                problems.empty() ? "" : " can be used");
  return false;
}

/// The library that computed attention in the run that wrote a checkpoint; empty: none did.
static std::string attentionOf(const CheckpointManifest &manifest) {
  if (manifest.runs.empty())
    return "";
  const auto run = nlohmann::json::parse(manifest.runs.back(), nullptr, /*allow_exceptions=*/false);
  return run.is_object() ? run.value("attention", "") : "";
}

static std::string attentionBy(const std::string &library) {
  return library.empty() ? "the program's own kernels" : library;
}

void RunCheckpoints::continueFrom(const Checkpoint &checkpoint) {
  from = checkpoint.manifest();
  resumed = checkpoint.name();
  began = from.step;
  const std::string name = "'" + printable(checkpoint.name()) + "'";
  const ModelChange change = modelChange(program, from, checkpoint.name());
  if (!change.difference.empty() && change.isKnown && !options.allowModelChange)
    throw Error(change.difference +
                ": resume with the program that wrote it, or continue with --allow-model-change")
        .byAll()
        .asRefusal();
  if (!change.difference.empty() && device.rank() == 0)
    std::fprintf(stderr, "%s: warning: %s\n", program.name, printable(change.difference).c_str());
  if (from.step > steps && !options.onlyEvaluates())
    throw Error(format("got --steps %lld, but %s is of step %lld: request more steps, or resume "
                       "from an earlier checkpoint",
                       static_cast<long long>(steps), name.c_str(),
                       static_cast<long long>(from.step)))
        .byAll()
        .asRefusal();
  if (options.seedIsGiven && options.seed != from.seed)
    throw Error(
        format("got --seed %llu, expected %llu as %s has: leave the option out, as order and "
               "dropout continue from there",
               static_cast<unsigned long long>(options.seed),
               static_cast<unsigned long long>(from.seed), name.c_str()))
        .byAll()
        .asRefusal();
  if (options.shuffle != from.shuffle && !options.onlyEvaluates())
    throw Error(format("got %s, but %s was written %s it: the order of the samples continues from "
                       "there, so start both alike",
                       options.shuffle ? "--shuffle" : "no --shuffle", name.c_str(),
                       from.shuffle ? "with" : "without"))
        .byAll()
        .asRefusal();
  options.seed = from.seed;
  device.adoptProductChoices(from.products);
  if (device.rank() != 0)
    return;
  std::fprintf(options.generation ? stderr : stdout, "resumed from %s, step %lld\n", name.c_str(),
               static_cast<long long>(from.step));
  if (const std::string before = attentionOf(from), now = device.attentionLibrary().name;
      before != now)
    std::fprintf(options.generation ? stderr : stdout,
                 "attention by %s; the checkpoint was written with that of %s\n",
                 attentionBy(now).c_str(), printable(attentionBy(before)).c_str());
  for (const std::string &altered : alteredExtras(checkpoint.name(), from))
    std::fprintf(stderr,
                 "%s: warning: %s; training continues without it, but programs that load the "
                 "checkpoint read it\n",
                 program.name, printable(altered).c_str());
  for (const CheckpointManifest::File &file : from.files)
    if (std::none_of(layout().files().begin(), layout().files().end(),
                     [&](const CheckpointFile &read) { return read.name == file.name; }))
      std::fprintf(stderr,
                   "%s: warning: %s has '%s', and no parameter of this program keeps such a state: "
                   "training continues without it\n",
                   program.name, name.c_str(), file.name.c_str());
  if (!options.onlyEvaluates())
    warnOfOtherData();
}

/// "2 sources: 70% of 300 samples 'web/*.bin', 30% of 50 samples 'code.bin'"
static std::string describeSources(const std::vector<DataSource> &sources, std::int64_t samples) {
  if (sources.empty())
    return format("one source of %lld samples", static_cast<long long>(samples));
  std::string text = format("%zu sources", sources.size());
  for (const DataSource &source : sources)
    text +=
        format("%s %.6g%% of %lld samples '%s'", &source == &sources[0] ? ":" : ",",
               100 * source.weight, static_cast<long long>(source.samples), source.name.c_str());
  return text;
}

/// Files of other names may have the same samples, and are not other data.
static bool sameSources(const std::vector<DataSource> &a, const std::vector<DataSource> &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto &one, const auto &other) {
    return one.samples == other.samples && std::abs(one.weight - other.weight) < 1e-12;
  });
}

void RunCheckpoints::warnOfOtherData() const {
  const std::string name = "'" + printable(resumed) + "'";
  if (!sameSources(sources, from.sources))
    std::fprintf(
        stderr,
        "%s: warning: got %s in --data, and %s was written with %s: training continues at the "
        "position where these sources with these weights would be\n",
        program.name, printable(describeSources(sources, samples)).c_str(), name.c_str(),
        printable(describeSources(from.sources, from.datasetSamples)).c_str());
  else if (samples != from.datasetSamples)
    std::fprintf(stderr,
                 "%s: warning: got %lld samples in --data, and %s was written with %lld: the "
                 "position in the data counts them\n",
                 program.name, static_cast<long long>(samples), name.c_str(),
                 static_cast<long long>(from.datasetSamples));
}

/// Whether the run continues from a checkpoint in the folder of --save, under the name of its step:
/// then those of earlier steps there are of the same run.
bool RunCheckpoints::beganInRoot() const {
  const std::string name = CheckpointRoot(FileSystem::real(), options.save).folderOf(from.step);
  return !resumed.empty() && identityOf(resumed) == identityOf(name);
}

void RunCheckpoints::open() {
  if (options.save.empty())
    return;
  saver.emplace(program, device, layout(), shares(),
                CheckpointSaver::Settings{options.save, options.keep, options.saveAsync,
                                          options.saveErrors == "warn", carried});
  lastSaved = from.step;
  saver->createRoot();
  if (!lock && !runStart.holdsLock() && device.rank() == 0) // it did not exist before
    lockRoot();
  const bool isOwn = beganInRoot();
  for (const std::string &name : saver->open(isOwn ? std::optional(from.step) : std::nullopt))
    std::printf("kept the checkpoint of %s as '%s'\n", isOwn ? "a later step" : "another run",
                printable(name).c_str());
}

int RunCheckpoints::afterStep(std::int64_t step, const std::function<void()> &settle) {
  if (!saver)
    return 0;
  const StopRequest own = stopRequest();
  // A launcher sends a signal to every rank, which ranks may get before and after the end of a
  // step. Then another rank has had as many requests, and this one arrived at about the time of
  // that agreement.
  const bool isNew =
      own.saves != seen && (own.saves > agreed || own.savesAt - lastAsked >= kSameSignalSeconds);
  seen = own.saves;
  std::int64_t asked[2] = {isNew ? own.saves : 0, own.signal};
  device.world().allReduce(asked, asked, 2, ReduceOp::Max);
  if (asked[0]) {
    lastAsked = now();
    agreed = std::max(agreed, asked[0]);
  }
  const bool due = step == steps || (options.saveEvery && step % options.saveEvery == 0);
  if ((due || asked[0] || asked[1]) && step != lastSaved) {
    settle();
    device.mark({"save", step});
    save(step);
    lastSaved = step;
  }
  return static_cast<int>(asked[1]);
}

void RunCheckpoints::save(std::int64_t step) {
  const StepState &state = device.state();
  CheckpointManifest next;
  next.model = program.name;
  next.modelDigest = program.modelDigest;
  next.runs = from.runs;
  if (!record.empty())
    next.runs.push_back(record);
  next.mesh = device.job().mesh().describe();
  next.step = step;
  next.totalSteps = steps;
  next.updates = state.updates;
  next.seed = state.seed;
  next.baseLearningRate = hyper.rate;
  next.schedule = hyper.schedule;
  next.scheduleSteps = hyper.endIsGiven ? hyper.end : 0;
  next.products = device.productChoices();
  next.updateRule = hyper.rule;
  next.constants = hyper.constants;
  if (program.clip > 0)
    next.constants.push_back({"clip", hyper.clip});
  next.groups = {hyper.groups.rateScales, hyper.groups.noDecay};
  next.badSteps = state.badSteps;
  next.losses = history->losses();
  next.gradNorms = history->gradNorms();
  next.samples = samplesAfter(step);
  next.shuffle = options.shuffle;
  next.datasetSamples = samples;
  next.sources = sources;
  saver->save(std::move(next));
}

std::int64_t RunCheckpoints::samplesAfter(std::int64_t step) const {
  return from.samples + (step - from.step) * globalBatch(program);
}

std::vector<std::string> RunCheckpoints::takeSaved() {
  if (!saver)
    return {};
  std::vector<std::string> saved = saver->takeSaved();
  if (!saved.empty()) {
    completed = saved.back();
    completedStep = std::strtoll(completed.c_str() + completed.rfind('-') + 1, nullptr, 10);
  }
  return saved;
}

bool RunCheckpoints::goBack(std::int64_t samples) {
  CheckpointManifest back;
  const std::string &folder = completed.empty() ? resumed : completed;
  if (!folder.empty()) {
    const Checkpoint checkpoint(folder, layout());
    if (const std::string problem = checkpoint.load(shares(), program, device); !problem.empty())
      throw Error(problem).byAll();
    back = checkpoint.manifest();
  } else {
    const RankPosition position = positionOf(program, device.job());
    for (const Storage &storage : program.storages)
      if (replicaAt(program, storage, position))
        for (const State &state : storage.states)
          device.write(state.shard,
                       [&](float *shard) { std::fill_n(shard, state.shard.count, 0.0f); });
  }
  back.runs = from.runs; // that of this run is added by save()
  back.samples = samples;
  from = std::move(back);
  lastSaved = from.step; // a later save may have failed with a warning
  return !folder.empty();
}

void RunCheckpoints::finish() {
  if (saver)
    saver->finish();
}

} // namespace fsdp::rt
