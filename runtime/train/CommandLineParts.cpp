#include "runtime/train/CommandLineParts.h"

#include "base/Error.h"
#include "base/Options.h"
#include "base/OutputPath.h"
#include "base/PrintableText.h"
#include "base/ShellWords.h"
#include "runtime/execution/Device.h"
#include "runtime/job/FlightRecord.h"
#include "runtime/train/Plans.h"
#include "runtime/train/Version.h"

#include <algorithm>
#include <cstdio>
#include <sys/stat.h>
#include <utility>
#include <vector>

namespace fsdp::rt {

using namespace base;

/// The default flight record: beside the files that the run writes, else in the user's temporary
/// folder. The name is fixed, so that a record replaces the previous one.
static std::string defaultFlightRecord(const Options &options, const char *program) {
  if (!options.save.empty())
    return withEnding(options.save, kFlightRecordEnding);
  struct stat log;
  if (!options.log.empty() && (stat(options.log.c_str(), &log) != 0 || S_ISREG(log.st_mode)))
    return withEnding(options.log, kFlightRecordEnding);
  return temporaryFlightRecord(program);
}

std::string takeInitialFile(const std::string &text, std::vector<InitialFile> &files) {
  const std::size_t equals = text.find('=');
  if (equals == text.npos || text.find('/') < equals) {
    files.push_back({"", text});
    return "";
  }
  InitialFile file{text.substr(0, equals), text.substr(equals + 1)};
  if (file.pattern.empty() || file.path.empty())
    return base::mismatch(text, "FILE or PATTERN=FILE");
  if (std::count(file.pattern.begin(), file.pattern.end(), '*') > 1)
    return base::mismatch(text, "one '*' at most in the pattern before '='");
  files.push_back(std::move(file));
  return "";
}

void declareJob(CLI::App &app, Plans plans, Options &options) {
  base::addOption(
      app, "--plan", "MESH",
      "plan to follow, instead of the first for the number of ranks; started alone, the first "
      "of all",
      [plans, &options](const std::string &text) {
        options.plan = planNamed(plans, text);
        return options.plan ? std::string() : base::mismatch(text, describePlans(plans));
      });
  options.communicator = plans[0]->communicator;
  base::addChoice(app, "--communicator", options.communicator,
                  std::string("transport between ranks: ") + target::communicatorNames,
                  {"auto", "shm", "tcp", "mpi", "nccl", "loopback"})
      ->type_name("NAME");
  if (target::computesOnThreads)
    base::addInteger(app, "--threads", "N", options.threads,
                     "threads that compute in each rank, which does not change results (default: "
                     "the cores that this machine gives the program, divided by its ranks here)",
                     base::IntegerRange<std::int64_t>{1, 1024});
  base::addNumber(
      app, "--timeout", "SECONDS", options.timeout,
      "longest time that a rank waits for others to join or in a collective, and, up to "
      "30, that one gives no "
      "sign of life: then the job ends with an error (default: FSDP_TIMEOUT, else 300)",
      {/*least=*/0, /*aboveLeast=*/true, /*limit=*/1e9, /*isF32=*/false});
  base::addText(app, "--flight-record", "FILE", options.flightRecord,
                "when the job fails, write the last actions of each rank to this file; none: to no "
                "file (default: "
                "DIR.flight-record.txt beside --save DIR, else FILE.flight-record.txt beside --log "
                "FILE, else a file in TMPDIR, "
                "which the error names)");
  base::addFlag(app, "--trust-network", options.trustNetwork,
                "let ranks connect over the network without FSDP_JOB_TOKEN: any host that reaches "
                "the port of rank 0 can join");
}

void declareHelp(CLI::App &app, const Program &program, Options &options) {
  app.set_help_flag("-h,--help", "print this help and exit");
  base::addOptionsFiles(app, options.printsConfig);
  app.set_version_flag("--version", std::string(program.name) + " (fsdpc " + runtimeVersion() + ")",
                       "print the version of fsdpc that compiled this program and exit")
      ->disable_flag_override();
}

std::string commandBefore(const Options &options, const std::string &word) {
  std::string command;
  base::addShellWord(command, options.command);
  return printable(command) + (word.empty() ? "" : " " + word);
}

/// Returns false after --print-config. Throws CLI::Success after --help, Misuse for an option that
/// is wrong by itself.
static bool takeArguments(const Program &program, CLI::App &app, int argc, char **argv,
                          const std::string &word, Options &options) {
  const int first = std::min(argc, word.empty() ? 1 : 2);
  const std::vector<std::string> words =
      base::parseArguments<Misuse>(app, std::vector<std::string>(argv + first, argv + argc));
  options.flightRecordIsGiven = app.count("--flight-record") > 0;
  if (options.printsConfig) {
    try {
      base::printResult(base::optionsFileText(app, commandBefore(options, word)));
    } catch (const base::OptionsFileError &error) {
      throw Misuse(error.what());
    }
    return false;
  }
  if (!word.empty())
    base::addShellWord(options.arguments, word);
  for (const std::string &each : words)
    base::addShellWord(options.arguments, each);
  while (options.save.size() > 1 && options.save.back() == '/')
    options.save.pop_back();
  if (!options.flightRecordIsGiven)
    options.flightRecord = defaultFlightRecord(options, program.name);
  return true;
}

void declareWeights(CLI::App &app, Options &options) {
  base::addRepeated(
      app, "--init", "[PATTERN=]FILE",
      "weights, as in training: several add up, each for the parameters of its pattern",
      [&](const std::string &text) { return takeInitialFile(text, options.init); });
  base::addText(app, "--resume", "DIR", options.resume,
                "checkpoint with the weights: the folder of a step, or a folder of checkpoints "
                "(its latest)");
  base::addFlag(app, "--allow-model-change", options.allowModelChange,
                "take the weights though their model computes something else, with a warning");
}

void requireWeights(const Options &options, const char *use) {
  if (options.init.empty() && options.resume.empty())
    throw Misuse(std::string("got neither --init nor --resume: name the weights to ") + use);
  if (!options.init.empty() && !options.resume.empty())
    throw Misuse("got both --resume and --init, expected one of them: a checkpoint has the "
                 "weights");
  if (options.resume == "latest")
    throw Misuse("got --resume=latest, expected a folder: a folder of checkpoints "
                 "means the latest of them");
}

std::optional<int> parseAfterWord(const Program &program, CLI::App &app, int argc, char **argv,
                                  Options &options, const char *word,
                                  const std::function<void()> &require) {
  try {
    if (!takeArguments(program, app, argc, argv, word, options))
      return int(kExitDone);
    require();
  } catch (const CLI::Success &asked) { // help or version
    return base::printAsked(app, asked);
  } catch (const Misuse &misuse) {
    std::string why = misuse.what();
    for (const std::string other : {"eval", "generate"})
      if (*word == 0 && why == "unexpected argument '" + other + "'")
        why = "got '" + other + "' behind other arguments, expected it as the first: '" +
              commandBefore(options, other) + " …'";
    std::fprintf(stderr, "%s: error: %s; see %s --help\n", program.name,
                 printableMessage(why).c_str(), commandBefore(options, word).c_str());
    return kExitBadCommandLine;
  }
  return std::nullopt;
}

} // namespace fsdp::rt
