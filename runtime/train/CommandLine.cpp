#include "runtime/train/CommandLine.h"

#include "base/Error.h"
#include "base/FileSystem.h"
#include "base/Options.h"
#include "base/PrintableText.h"
#include "base/ShellWords.h"
#include "runtime/execution/Device.h"
#include "runtime/job/FlightRecord.h"
#include "runtime/train/CommandLineParts.h"
#include "runtime/train/Log.h"
#include "runtime/train/LogFile.h"
#include "runtime/train/ParameterNames.h"
#include "runtime/train/Plans.h"
#include "runtime/train/Version.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <sys/stat.h>
#include <utility>
#include <vector>

namespace fsdp::rt {

using namespace base;

/// Whether `path` is `folder` or is in it, links followed.
static bool isWithin(const std::string &path, const std::string &folder) {
  const FileIdentity around = identityOf(folder);
  if (identityOf(path) == around)
    return true;
  char *resolved = realpath(folderOf(path).c_str(), nullptr);
  std::string at = resolved ? resolved : "/";
  std::free(resolved);
  for (; at != "/"; at = folderOf(at))
    if (identityOf(at) == around)
      return true;
  return false;
}

/// Removes `ending` and a number from the end of `name`. Returns the number; -1: there is none.
static std::int64_t takeNumber(std::string &name, const std::string &ending) {
  const std::size_t at = name.rfind(ending);
  std::int64_t number = 0;
  if (at == name.npos || !base::parseInteger(name.substr(at + ending.size()),
                                             base::IntegerRange<std::int64_t>{0, INT64_MAX}, number)
                              .empty())
    return -1;
  name.resize(at);
  return number;
}

void checkFlightRecord(const Options &options, const std::vector<NamedFile> &files) {
  const std::string &record = options.flightRecord;
  if (record == "none")
    return;
  const auto check = [&](const NamedFile &file) {
    std::vector<NamedFile> all = files;
    all.push_back(file);
    checkDistinct(all);
  };
  struct stat status;
  const bool isFifo = stat(record.c_str(), &status) == 0 &&
                      S_ISFIFO(status.st_mode); // opening it now would let its reader see its end
  if (isFifo || !options.flightRecordIsGiven) {
    check({"--flight-record", record, identityOf(record),
           isFifo ? NamedFile::Stream : NamedFile::Replaced});
  } else {
    const OutputPath path(record);
    check(NamedFile::output("--flight-record", path));
    requireNoLogOfARun(path);
    for (const auto &[option, folder] :
         {std::pair("--save", options.save),
          std::pair("--resume", options.resume == "latest" ? "" : options.resume)})
      if (path.stream() < 0 && !folder.empty() && isWithin(path.file(), folder))
        throw Error(format("got --flight-record '%s' within the folder of %s '%s', which is for "
                           "checkpoints alone: name a file outside of it",
                           record.c_str(), option, folder.c_str()),
                    kExitBadCommandLine);
  }
  // Records of restarts and ranks can only replace these files: those in the folder, which may be
  // links, and those that the run will write there.
  std::vector<std::string> names;
  FileSystem::real().list(folderOf(record), names);
  for (const NamedFile &file : files)
    names.push_back(nameIn(file.path));
  for (const std::string &name : names) {
    std::string rest = name, derived = record;
    const std::int64_t rank = takeNumber(rest, ".rank-"), restart = takeNumber(rest, ".restart-");
    if ((rank < 0 && restart < 0) || restart == 0 || restart > options.maxRestarts)
      continue;
    if (restart > 0)
      derived = withEnding(derived, format(".restart-%lld", static_cast<long long>(restart)));
    if (rank >= 0)
      derived = withEnding(derived, format(".rank-%lld", static_cast<long long>(rank)));
    if (nameIn(derived) == name)
      check({"--flight-record", derived, identityOf(derived), NamedFile::Replaced});
  }
}

/// "trains 'name' on 2 ranks"
static std::string describeProgram(Plans plans) {
  const int ranks = worldSize(*plans[0]);
  const std::string text = "trains '" + std::string(plans[0]->name) + "' on ";
  if (plans.size() == 1)
    return text + std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
  return text + "the mesh of one of its plans: " + describePlans(plans);
}

/// " (safetensors)": the files that --data and --val-data take.
static std::string describeData(const Program &program) {
  return readsTokens(program) ? " (tokens, or bytes if the vocabulary is 256)" : " (safetensors)";
}

/// Options of the steps of training alone, besides hyperparameters: a run without steps would
/// ignore them.
constexpr const char *kOfTraining[] = {"--on-nan", "--on-spike", "--shuffle", "--log-data",
                                       "--eval-every"};

/// The text after describeData.
constexpr const char *kSeveralFiles =
    "; several files, or patterns such as 'web/*.bin', are taken one after another";

/// The command line after `eval`, which is argv[1].
static std::optional<int> parseEvaluation(Plans plans, int argc, char **argv, Options &options) {
  const Program &program = *plans[0];
  CLI::App app("evaluates weights of '" + std::string(program.name) +
                   "' on every sample of a data set, once, and trains nothing",
               std::string(program.name) + " eval");
  declareHelp(app, program, options);
  options.steps = 0;
  base::addList(app, "--val-data", "FILE", options.valData,
                "data set to evaluate on" + describeData(program) + kSeveralFiles);
  declareWeights(app, options);
  base::addText(app, "--log", "FILE", options.log,
                "write the values as one JSON object to this file; an existing file is renamed "
                "FILE.1");
  base::addFlag(app, "--log-header", options.logHeader,
                "begin the log with a description of the run: {\"run\": {...}}");
  declareJob(app, plans, options);
  app.footer("Of an option that is given several times the last value counts; --init and "
             "--val-data add up.");
  return parseAfterWord(program, app, argc, argv, options, "eval", [&] {
    if (program.evaluate.runs.empty())
      throw Misuse("got eval, but this program was compiled without an evaluation");
    if (options.valData.empty())
      throw Misuse("--val-data is missing: name the file to evaluate on");
    requireWeights(options, "evaluate");
    if (options.logHeader && options.log.empty())
      throw Misuse("got --log-header without --log: name the file of the log");
  });
}

/// The help about a word before all options.
static std::string describeWord(const Options &options, const std::string &word,
                                const std::string &use) {
  return " The word '" + word + "' before all options " + use + ", and trains nothing: see " +
         commandBefore(options, word) + " --help.";
}

/// Options that do not fit together; `ofTraining` are those that a run without steps ignores.
static void requireConsistent(const Program &program, const CLI::App &app, Options &options,
                              const std::vector<std::string> &ofTraining) {
  if (const std::string fault = faultOfHyperparameters(program, options); !fault.empty())
    throw Misuse(fault);
  const auto isGiven = [&](const std::string &name) { return app.count(name) > 0; };
  options.seedIsGiven = isGiven("--seed");
  const bool trains = isGiven("--save") || isGiven("--resume") || isGiven("--steps") ||
                      isGiven("--epochs") || isGiven("--init") || isGiven("--export") ||
                      isGiven("--export-merged") || isGiven("--val-data") || isGiven("--log") ||
                      isGiven("--log-header") || isGiven("--log-data") || isGiven("--trace");
  if (options.report && options.data.empty() && !trains)
    return;
  if (options.onlyEvaluates()) {
    if (options.valData.empty() && options.exportTo.empty() && options.exportMerged.empty())
      throw Misuse("got --steps=0 without --val-data and without --export: name the file to "
                   "evaluate on, or where to write the weights, or train at least one step");
    if (options.init.empty() && options.resume.empty())
      throw Misuse(
          "got --steps=0 without --init or --resume: name the weights to evaluate or export");
    if (!options.save.empty())
      throw Misuse("got --save with --steps=0, which changes no weights: leave it out, and name "
                   "a checkpoint with --resume");
    for (const std::string &option : ofTraining)
      if (isGiven(option))
        throw Misuse("got " + option +
                     " with --steps=0, which trains nothing: leave it out, or train at least one "
                     "step");
  }
  if (options.data.empty() && !program.inputs.empty() && !options.onlyEvaluates())
    throw Misuse("--data is missing: name the file to train on");
  if (options.steps && options.epochs)
    throw Misuse("got both --steps and --epochs, expected one of them");
  if (!options.steps && !options.epochs)
    throw Misuse("--steps is missing: give the number of steps to train");
  if (!options.valData.empty() && program.evaluate.runs.empty())
    throw Misuse("got --val-data, but this program was compiled without an evaluation");
  if (!options.tokenizer.empty() && !readsTokens(program))
    throw Misuse("got --tokenizer, but this program reads no tokens");
  if (options.logHeader && options.log.empty())
    throw Misuse("got --log-header without --log: name the file of the log");
  if (options.logData && options.log.empty())
    throw Misuse("got --log-data without --log: name the file of the log");
  for (const char *needsSave :
       {"--save-every", "--keep", "--save-async", "--save-errors", "--max-restarts"})
    if (options.save.empty() && isGiven(needsSave))
      throw Misuse(std::string("got ") + needsSave +
                   " without --save: name the folder of checkpoints");
  for (const auto &[option, way] :
       {std::pair("--on-nan", options.onNan), std::pair("--on-spike", options.onSpike)})
    if (way == "rollback" && options.save.empty())
      throw Misuse(std::string("got ") + option +
                   "=rollback without --save: name the folder of checkpoints to go back to");
  for (const char *ofSpikes : {"--spike-deviations", "--spike-window"})
    if (options.onSpike.empty() && isGiven(ofSpikes))
      throw Misuse(std::string("got ") + ofSpikes +
                   " without --on-spike: say what a step with a spike does");
  if (options.elastic && !options.maxRestarts)
    throw Misuse("got --elastic without --max-restarts: say how often the run may be restarted");
  if (options.resume == "latest" && options.save.empty())
    throw Misuse("got --resume=latest without --save: name the folder of checkpoints with --save");
  if (options.startOver && options.resume != "latest")
    throw Misuse("got --start-over without --resume=latest: without it, and with no checkpoint "
                 "there, a run begins anew in any case");
  if (!options.resume.empty() && !options.init.empty())
    throw Misuse(
        "got both --resume and --init, expected one of them: a checkpoint has the weights");
  if (isGiven("--init-missing") && options.init.empty())
    throw Misuse("got --init-missing without --init: it is about the parameters that no file of "
                 "--init has");
  if (!options.exportOnly.empty() && options.exportTo.empty())
    throw Misuse("got --export-only without --export: name the file for the weights");
  if (!options.exportMerged.empty() && adapterNames(program).empty())
    throw Misuse("got --export-merged, but this program has no adapters (--lora of its compiler): "
                 "--export writes its weights");
  if (options.allowModelChange && options.resume.empty() && options.init.empty())
    throw Misuse("got --allow-model-change without --resume or --init: it is about the weights "
                 "that these name");
  if (options.evalEvery && options.valData.empty())
    throw Misuse("got --eval-every without --val-data: name the file to evaluate on");
}

std::optional<int> parseCommandLine(Plans plans, int argc, char **argv, Options &options) {
  options.command = argc > 0 ? argv[0] : plans[0]->name;
  if (argc > 1 && std::string_view(argv[1]) == "eval")
    return parseEvaluation(plans, argc, argv, options);
  if (argc > 1 && std::string_view(argv[1]) == "generate")
    return parseGeneration(plans, argc, argv, options);
  const Program &program = *plans[0]; // all plans agree in the parts that are used here
  CLI::App app(describeProgram(plans), program.name);
  declareHelp(app, program, options);
  // Options that this program always rejects are not in its help.
  const char *const hidden = "", *const shown = "Options";
  const std::string kind = describeData(program);
  constexpr base::IntegerRange<std::int64_t> counted = {1, INT64_MAX};
  base::addList(app, "--data", "FILE[:WEIGHT]", options.data,
                "data set to train on" + kind + kSeveralFiles +
                    ". With weights each file or pattern is a separate source, from which that "
                    "share of the samples is drawn: 'web/*.bin:0.7' 'code/*.bin:0.3'");
  base::addInteger(app, "--steps", "N", options.steps,
                   "number of steps; 0 evaluates the weights of --init or --resume on --val-data "
                   "and trains nothing",
                   base::IntegerRange<std::int64_t>{0, INT64_MAX});
  base::addNumber(app, "--epochs", "E", options.epochs,
                  "number of passes over the data, instead of --steps",
                  {/*least=*/0, /*aboveLeast=*/true, /*limit=*/INFINITY, /*isF32=*/false});
  base::addRepeated(
      app, "--init", "[PATTERN=]FILE",
      "initial weights (a safetensors file, an index of several, their folder, or a checkpoint); "
      "several add up. With a pattern, 'teacher.*=FILE', of the parameters that it matches, whose "
      "names in the file are the text that '*' matches",
      [&](const std::string &text) { return takeInitialFile(text, options.init); });
  base::addChoice(app, "--init-missing", options.initMissing,
                  "what parameters get that no file of --init has: an error, or the values that "
                  "are drawn without --init",
                  {"error", "draw"});
  base::addText(
      app, "--export", "FILE", options.exportTo,
      "file for the trained weights (safetensors), replaced atomically; FOLDER/ has them as "
      "model.safetensors, with what describes the model beside them");
  base::addText(app, "--tokenizer", "DIR", options.tokenizer,
                "folder whose tokenizer.json and files beside it go into checkpoints and "
                "--export FOLDER/, instead of those beside the weights of --init")
      ->group(readsTokens(program) ? shown : hidden);
  const char *const ofAdapters = adapterNames(program).empty() ? hidden : shown;
  base::addText(app, "--export-merged", "FILE", options.exportMerged,
                "file for the weights with the adapters added to them, as a model without adapters "
                "has them; FOLDER/ as of --export")
      ->group(ofAdapters);
  base::addRepeated(app, "--export-only", "PATTERN",
                    "write only the parameters whose names match, '*' being any part of a name; "
                    "several add up",
                    [&](const std::string &text) {
                      options.exportOnly.push_back(text);
                      return std::string();
                    });
  base::addInteger(app, "--seed", "S", options.seed, "seed of the initial weights",
                   base::IntegerRange<std::uint64_t>());
  const std::size_t before = app.get_options().size();
  declareHyperparameters(app, program, options);
  std::vector<std::string> ofTraining(std::begin(kOfTraining), std::end(kOfTraining));
  const std::vector<CLI::Option *> declared = app.get_options();
  for (std::size_t i = before; i < declared.size(); ++i)
    ofTraining.push_back("--" + declared[i]->get_lnames().front()); // get_name omits hidden ones
  const char *const ofEvaluation = program.evaluate.runs.empty() ? hidden : shown;
  base::addList(app, "--val-data", "FILE", options.valData,
                "data set to evaluate on" + kind + kSeveralFiles)
      ->group(ofEvaluation);
  base::addInteger(app, "--eval-every", "K", options.evalEvery,
                   "evaluate after every K steps and after the last one", counted)
      ->group(ofEvaluation);
  base::addFlag(app, "--shuffle", options.shuffle,
                "visit the samples of each epoch in a random order derived from the seed");
  base::addText(app, "--log", "FILE", options.log,
                "write one JSON object per step to this file; an existing file is renamed FILE.1");
  base::addFlag(app, "--log-header", options.logHeader,
                "begin the log with a description of the run: {\"run\": {...}}");
  base::addFlag(app, "--log-data", options.logData,
                "add a digest of the samples of each step to the log, the same on any number of "
                "ranks");
  base::addChoice(app, "--on-nan", options.onNan,
                  "what a step does whose loss or gradient norm is not finite: end the run; skip "
                  "its update, and end the run at the third in a row (the default); or go back to "
                  "the latest checkpoint of --save and continue with the samples after it",
                  {"stop", "skip", "rollback"});
  base::addChoice(
      app, "--on-spike", options.onSpike,
      "what a step does whose loss or gradient norm is far above those of the steps "
      "before it: warn, and continue; or what --on-nan does, without an end of skipping "
      "(default: nothing)",
      {"warn", "stop", "skip", "rollback"});
  base::addNumber(app, "--spike-deviations", "K", options.spikes.deviations,
                  "how far that is: more than K standard deviations above the mean",
                  {/*least=*/0, /*aboveLeast=*/true})
      ->default_str(shortest(static_cast<float>(options.spikes.deviations)));
  base::addInteger(app, "--spike-window", "N", options.spikes.window,
                   "of the latest N steps, as soon as there are half as many",
                   base::IntegerRange<std::int64_t>{4, 1 << 20})
      ->default_str(std::to_string(options.spikes.window));
  base::addText(
      app, "--save", "DIR", options.save,
      "write checkpoints into this folder: after the last step, every K steps with --save-every, "
      "and on SIGTERM, SIGINT and SIGHUP, which end the run, and SIGUSR1, which does not");
  base::addInteger(app, "--save-every", "K", options.saveEvery, "save after every K steps",
                   counted);
  base::addInteger(app, "--keep", "N", options.keep,
                   "keep the latest N checkpoints, remove earlier ones", counted);
  base::addFlag(app, "--save-async", options.saveAsync,
                "write while training continues; a step waits only for a copy in memory");
  base::addChoice(app, "--save-errors", options.saveErrors,
                  "what a save that fails does: end the run, or warn", {"stop", "warn"});
  base::addText(
      app, "--resume", "DIR", options.resume,
      "continue from a checkpoint: the folder of a step, a folder of checkpoints (its latest), or "
      "'latest': that of --save, beginning anew where it has none");
  base::addFlag(app, "--start-over", options.startOver,
                "with --resume=latest: pass over checkpoints that are damaged or cannot be read, "
                "and begin anew where no other is left");
  base::addFlag(
      app, "--allow-model-change", options.allowModelChange,
      "take the weights of --resume or --init though their model computes something else, "
      "with a warning");
  base::addInteger(
      app, "--max-restarts", "R", options.maxRestarts,
      "when ranks that this program started die, hang or fail, continue from the latest "
      "checkpoint, R times at most",
      counted);
  const bool shrinks = std::any_of(plans.begin(), plans.end(), [&](const Program *plan) {
    return worldSize(*plan) != worldSize(program);
  });
  base::addFlag(app, "--elastic", options.elastic,
                "restart on fewer ranks, where there is a plan for them, instead of on as many; a "
                "run never takes more again")
      ->group(shrinks ? shown : hidden);
  base::addText(app, "--trace", "FILE", options.trace,
                "write a timeline of the launches of the latest steps to this file (for Perfetto)");
  base::addFlag(app, "--report", options.report,
                "print the memory table; without --data, exit after it");
  declareJob(app, plans, options);
  app.footer(
      "Of an option that is given several times the last value counts; --data, --val-data, "
      "--init, --export-only, --lr-scale and --no-decay add up. @FILE.toml is replaced by "
      "the options of a file." +
      (program.evaluate.runs.empty() ? "" : describeWord(options, "eval", "evaluates")) +
      (program.generation.generate ? describeWord(options, "generate", "generates text") : ""));

  return parseAfterWord(program, app, argc, argv, options, "",
                        [&] { requireConsistent(program, app, options, ofTraining); });
}

} // namespace fsdp::rt
