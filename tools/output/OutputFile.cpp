//===- OutputFile.cpp - results that appear whole or not at all -----------===//

#include "tools/output/OutputFile.h"

#include "base/AtomicFile.h"
#include "base/Error.h"

#include "llvm/Support/Signals.h"

namespace fsdpc {

/// The error that `call` throws.
template <typename Call> static llvm::Error errorOf(Call call) {
  try {
    call();
    return llvm::Error::success();
  } catch (const base::Error &error) {
    return llvm::createStringError(llvm::Twine(error.what()));
  }
}

llvm::Expected<OutputFile> OutputFile::open(const std::string &path) {
  base::OutputPath output;
  if (llvm::Error error = errorOf([&] {
        output = path == "-" ? base::OutputPath::standardOutput() : base::OutputPath(path);
      }))
    return std::move(error);
  return OutputFile(std::move(output));
}

llvm::Error OutputFile::write(llvm::StringRef content, bool executable) {
  // LLVM's handlers, which the tools have, remove the file.
  base::setTemporaryFileOwner(
      {[](const std::string &file) { llvm::sys::RemoveFileOnSignal(file); },
       [](const std::string &file) { llvm::sys::DontRemoveFileOnSignal(file); }});
  return errorOf([&] {
    base::AtomicFileOptions options;
    options.executable = executable;
    options.flushed = false; // the output of a compiler can be reproduced
    base::AtomicFile file(path, base::FileSystem::real(), options);
    file.write(content.data(), content.size());
    file.commit();
  });
}

llvm::Error checkInput(const std::string &path) {
  return path == "-" ? llvm::Error::success() : errorOf([&] { base::requireReadable(path); });
}

llvm::Error checkDistinctFiles(const std::vector<base::NamedFile> &files) {
  return errorOf([&] { base::requireDistinct(files); });
}

} // namespace fsdpc
