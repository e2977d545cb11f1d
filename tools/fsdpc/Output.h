//===- Output.h - atomic outputs of the compiler ----------------*- C++ -*-===//

#ifndef TOOLS_FSDPC_OUTPUT_H
#define TOOLS_FSDPC_OUTPUT_H

#include "base/OutputPath.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <string>

namespace fsdpc {

/// Relative path -> content.
using Files = std::map<std::string, std::string>;

/// The file that marks a folder as written by this tool.
extern const char *const markerName;

/// The contents of the file at `path`. Throws Failure.
std::string readFile(const std::string &path);

/// Throws Failure if the printed text cannot be written, base::NoReader if that is because nobody
/// reads it.
void finishPrinting(llvm::raw_fd_ostream &out);

/// Prints `table` to standard output, or to standard error where one of `results` goes to standard
/// output, which the table would spoil. Throws as finishPrinting.
void printBeside(const std::string &table, llvm::ArrayRef<const base::OutputPath *> results);

/// Fails early if a folder cannot be written to `path`, which must be free or a folder that this
/// tool wrote.
void checkFolderOutput(const std::string &path);

/// Replaces the folder at `path` by one with `files` and the marker, in one move.
void writeFolder(const std::string &path, const Files &files);

/// Whether both exist, and `file` is somewhere below `folder`.
bool standsInFolder(const std::string &file, const std::string &folder);

} // namespace fsdpc

#endif // TOOLS_FSDPC_OUTPUT_H
