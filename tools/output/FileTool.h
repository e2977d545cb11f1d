//===- FileTool.h - tools that read one file and write one ------*- C++ -*-===//

#ifndef TOOLS_OUTPUT_FILETOOL_H
#define TOOLS_OUTPUT_FILETOOL_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <memory>

namespace fsdpc {

/// The work of a tool on its input ("-" is standard input): false after it failed and printed the
/// reason.
using FileWork =
    llvm::function_ref<bool(std::unique_ptr<llvm::MemoryBuffer> input, llvm::raw_ostream &output)>;

/// Runs `work` and writes its result to `output` by the rules of docs/files.md, "-" being standard
/// output; writes nothing if it fails. Error messages begin with `tool`.
/// Returns the exit status: 0, 1, or 2 for a command line that names one file twice.
int runFileTool(llvm::StringRef tool, const std::string &input, const std::string &output,
                FileWork work);

/// As the rules require: writing past a limit of the file size is an error like a full disk.
void ignoreFileSizeSignal();

} // namespace fsdpc

#endif // TOOLS_OUTPUT_FILETOOL_H
