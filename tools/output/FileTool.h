//===- FileTool.h - tools that read one file and write one ------*- C++ -*-===//

#ifndef TOOLS_OUTPUT_FILETOOL_H
#define TOOLS_OUTPUT_FILETOOL_H

#include "tools/output/OutputFile.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <memory>

namespace fsdpc {

/// What a tool does with its input ("-" is standard input): false where it failed and said why.
using FileWork =
    llvm::function_ref<bool(std::unique_ptr<llvm::MemoryBuffer> input, llvm::raw_ostream &output)>;

/// Has `work` make what is then written to `output` by the rules of docs/files.md, "-" being
/// standard output; nothing is written where it fails. Errors are said in the name of `tool`.
/// Returns the exit status: 0, 1, or 2 for a command line that names one file twice.
int runFileTool(llvm::StringRef tool, const std::string &input, const std::string &output,
                FileWork work);

/// As the rules ask of every tool: writing past a limit of the file size is an error like a full
/// disk.
void ignoreFileSizeSignal();

} // namespace fsdpc

#endif // TOOLS_OUTPUT_FILETOOL_H
