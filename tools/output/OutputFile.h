//===- OutputFile.h - atomic output files -----------------------*- C++ -*-===//
//
// The rules of docs/files.md, as base/OutputPath.h and base/AtomicFile.h have them for all
// programs, with LLVM's errors.
//
//===----------------------------------------------------------------------===//

#ifndef TOOLS_OUTPUT_OUTPUTFILE_H
#define TOOLS_OUTPUT_OUTPUTFILE_H

#include "base/OutputPath.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace fsdpc {

/// A destination, as base::OutputPath; "-" is standard output.
class OutputFile {
public:
  /// Errors: a folder, a socket or a block device; a FIFO that no process reads; a folder around it
  /// that is missing or not writable; a file without permission to write.
  static llvm::Expected<OutputFile> open(const std::string &path);
  /// The path as given by the user.
  const std::string &name() const { return path.name(); }
  base::FileIdentity identity() const { return path.identity(); }

  /// As the file of `option`, for checkDistinct.
  base::NamedFile named(std::string option) const {
    return base::NamedFile::output(std::move(option), path);
  }

  /// Writes all of the file. One that is replaced keeps its mode and, where permitted, its owner.
  /// If this fails, or SIGHUP, SIGINT or SIGTERM ends the process, an existing file is unchanged
  /// and no temporary file remains. `executable`: who may read it may execute it.
  llvm::Error write(llvm::StringRef content, bool executable = false);

private:
  explicit OutputFile(base::OutputPath path) : path(std::move(path)) {}

  base::OutputPath path;
};

/// base::requireReadable; "-" is standard input.
llvm::Error checkInput(const std::string &path);

/// base::requireDistinct.
llvm::Error checkDistinctFiles(const std::vector<base::NamedFile> &files);

} // namespace fsdpc

#endif // TOOLS_OUTPUT_OUTPUTFILE_H
