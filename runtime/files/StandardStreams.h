//===- StandardStreams.h - descriptors 0 to 2 of a program ------*- C++ -*-===//

#ifndef FSDP_RUNTIME_FILES_STANDARDSTREAMS_H
#define FSDP_RUNTIME_FILES_STANDARDSTREAMS_H

#include "base/Error.h"
#include "base/OutputPath.h"
#include "base/StandardOutput.h"

#include <vector>

namespace fsdp::rt {

/// Called first in a program: opens the null device for closed standard descriptors, or the next
/// opened file would get the number and the output. From then on a write without a reader, or
/// beyond a limit, fails instead of ending the process.
void prepareStandardStreams();

/// If one of `files` is the same stream as standard output, redirects the messages of the program
/// to standard error; to the null device if that is the same stream too.
void keepOutputOutOf(const std::vector<base::NamedFile> &files);

/// Flushes standard output. On failure (no reader, a full disk) prints one note on standard error;
/// the run continues.
void showOutput();

/// Sets whether standard output is a result: then showOutput() prints no message, and
/// finishOutput() reports later failures.
void requireOutput(bool isResult);

/// Flushes standard output that is a result. Error: it cannot be written; NoReader where that is
/// why.
void finishOutput();
/// The same at the end of a run, whose exit status it returns. The Error is a refusal.
int finishResult();

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_FILES_STANDARDSTREAMS_H
