//===- CommandLineParts.h - shared parts of command lines -------*- C++ -*-===//

#ifndef FSDP_RUNTIME_TRAIN_COMMANDLINEPARTS_H
#define FSDP_RUNTIME_TRAIN_COMMANDLINEPARTS_H

#include "runtime/train/Options.h"

#include <CLI/CLI.hpp>

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace fsdp::rt {

/// An invalid command line.
struct Misuse : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Takes a value of --init, FILE or PATTERN=FILE. A pattern has no '/', so that a path may have
/// '='. Returns an empty text, or the fault.
std::string takeInitialFile(const std::string &text, std::vector<InitialFile> &files);

/// Options of rate, schedule, clipping and update rule; those of other rules are not in the help.
void declareHyperparameters(CLI::App &app, const Program &program, Options &options);
/// Their errors for this program; empty if there are none.
std::string faultOfHyperparameters(const Program &program, const Options &options);
/// Options about the ranks.
void declareJob(CLI::App &app, Plans plans, Options &options);
/// Adds the options for help, version and @FILE.
void declareHelp(CLI::App &app, const Program &program, Options &options);
/// --init, --resume and --allow-model-change of a run that trains nothing.
void declareWeights(CLI::App &app, Options &options);
/// Throws Misuse if these do not name weights; `use` is the verb for their use in the run:
/// "evaluate".
void requireWeights(const Options &options, const char *use);
/// The program as the user called it, followed by `word`, if any: "./train eval".
std::string commandBefore(const Options &options, const std::string &word);
/// Parses the arguments after the program's name, or after `word`, "eval", and completes `options`
/// with values that follow from the given ones. Returns the exit status after --help and
/// --print-config and for a misused command line, whose message it prints; `require` throws Misuse
/// if options do not fit together.
std::optional<int> parseAfterWord(const Program &program, CLI::App &app, int argc, char **argv,
                                  Options &options, const char *word,
                                  const std::function<void()> &require);

/// The command line after `generate`, which is argv[1].
std::optional<int> parseGeneration(Plans plans, int argc, char **argv, Options &options);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_COMMANDLINEPARTS_H
