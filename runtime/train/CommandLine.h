//===- CommandLine.h - the options of a generated program -------*- C++ -*-===//

#ifndef FSDP_RUNTIME_TRAIN_COMMANDLINE_H
#define FSDP_RUNTIME_TRAIN_COMMANDLINE_H

#include "base/OutputPath.h"
#include "runtime/train/Options.h"

#include <optional>
#include <vector>

namespace fsdp::rt {

/// Parses the command line of a program with these plans, for training or, if it begins with `eval`
/// or `generate`, for these commands, into `options`. Returns nothing if the program is to
/// continue; otherwise it prints the message and returns the exit status: 0 after `--help`, 2 for
/// an unknown or malformed option, or a number outside of its range.
std::optional<int> parseCommandLine(Plans plans, int argc, char **argv, Options &options);

/// Errors: a flight record, of this start or of a restart, of all ranks or of some, would replace
/// one of `files`, the files of the run; a record given on the command line is in a folder of
/// checkpoints, cannot be written, or is the log of another run.
void checkFlightRecord(const Options &options, const std::vector<base::NamedFile> &files);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_COMMANDLINE_H
