//===- StandardStreams.h - descriptors 0 to 2 of a program ------*- C++ -*-===//

#ifndef FSDP_RUNTIME_FILES_STANDARDSTREAMS_H
#define FSDP_RUNTIME_FILES_STANDARDSTREAMS_H

#include "base/OutputPath.h"

#include <vector>

namespace fsdp::rt {

/// First thing in a program: opens the null device where it was started with a standard descriptor
/// closed, or the next file opened would take the number and get what is printed. From then on a
/// write that nobody reads, or that is beyond a limit, fails instead of ending the process.
void prepareStandardStreams();

/// Where one of `files` is a stream to where standard output goes, moves what people read to
/// standard error; to nowhere if that is the same stream.
void keepOutputOutOf(const std::vector<base::NamedFile> &files);

/// Shows what was printed to standard output. Where that is impossible (its reader is gone, the
/// disk is full) says so once on standard error; a run is worth more than its progress.
void showOutput();

/// The same for output that is the result. Error: it cannot be written.
void finishOutput();

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_FILES_STANDARDSTREAMS_H
