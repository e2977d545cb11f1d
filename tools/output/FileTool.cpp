//===- FileTool.cpp - tools that read one file and write one --------------===//

#include "tools/output/FileTool.h"

#include "base/PrintableText.h"
#include "tools/output/Messages.h"

#include <csignal>

namespace fsdpc {

void ignoreFileSizeSignal() { std::signal(SIGXFSZ, SIG_IGN); }

int runFileTool(llvm::StringRef tool, const std::string &input, const std::string &output,
                FileWork work) {
  ignoreFileSizeSignal();
  auto fail = [&](const llvm::Twine &message, int status) {
    llvm::errs() << tool << ": error: " << printableMessage(message.str()) << "\n";
    return status;
  };
  llvm::Expected<OutputFile> file = OutputFile::open(output);
  if (!file)
    return fail(llvm::toString(file.takeError()), 1);
  if (input != "-")
    if (llvm::Error error =
            checkDistinctFiles({base::NamedFile::input("the input", input), file->named("-o")}))
      return fail(llvm::toString(std::move(error)), 2);
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(input, /*IsText=*/true);
  if (!buffer)
    return fail("cannot read " + base::inQuotes(input) + ": " + buffer.getError().message(), 1);
  std::string content;
  llvm::raw_string_ostream stream(content);
  if (!work(std::move(*buffer), stream))
    return 1;
  if (llvm::Error error = file->write(content))
    return fail(llvm::toString(std::move(error)), 1);
  return 0;
}

} // namespace fsdpc
