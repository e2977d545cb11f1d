//===- OutputFile.cpp - results that appear whole or not at all -----------===//

#include "tools/output/OutputFile.h"

#include "base/AtomicFile.h"

#include "llvm/Support/Signals.h"

namespace fsdpc {

base::OutputPath openOutput(const std::string &path) {
  return path == "-" ? base::OutputPath::standardOutput() : base::OutputPath(path);
}

void writeOutput(const base::OutputPath &path, llvm::StringRef content, bool executable) {
  // LLVM's handlers, which the tools have, remove the file.
  base::setTemporaryFileOwner(
      {[](const std::string &file) { llvm::sys::RemoveFileOnSignal(file); },
       [](const std::string &file) { llvm::sys::DontRemoveFileOnSignal(file); }});
  base::AtomicFileOptions options;
  options.executable = executable;
  options.flushed = false; // the output of a compiler can be reproduced
  base::AtomicFile file(path, base::FileSystem::real(), options);
  file.write(content.data(), content.size());
  file.commit();
}

} // namespace fsdpc
