//===- CommandLineParts.h - what several command lines have -----*- C++ -*-===//

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

/// Options about the ranks.
void declareJob(CLI::App &app, Plans plans, Options &options);
void declareHelp(CLI::App &app, const Program &program);
/// --init, --resume and --allow-model-change of a run that trains nothing.
void declareWeights(CLI::App &app, Options &options);
/// Misuse: these do not name weights; `use` is what the run does with them: "evaluate".
void requireWeights(const Options &options, const char *use);
/// Prints the message of a misused command line; returns the exit status. `help` is what prints the
/// options.
int reportMisuse(const Program &program, const std::string &why, const char *help);
/// What follows from the options that were given.
void completeOptions(const Program &program, const CLI::App &app, int argc, char **argv,
                     Options &options);
/// Parses what follows the first word, and completes `options`. Returns the exit status after
/// --help and for a misused command line; `require` throws Misuse if options do not fit together.
/// `help` is what prints the options: "eval --help".
std::optional<int> parseAfterWord(const Program &program, CLI::App &app, int argc, char **argv,
                                  Options &options, const char *help,
                                  const std::function<void()> &require);

/// The command line after `generate`, which is argv[1].
std::optional<int> parseGeneration(Plans plans, int argc, char **argv, Options &options);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_COMMANDLINEPARTS_H
