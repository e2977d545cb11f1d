//===- FileTool.cpp - tools that read one file and write one --------------===//

#include "tools/output/FileTool.h"

#include "base/Error.h"
#include "base/PrintableText.h"
#include "base/StandardOutput.h"
#include "tools/output/OutputFile.h"

#include <csignal>

namespace fsdpc {

void ignoreFileSizeSignal() { std::signal(SIGXFSZ, SIG_IGN); }

int runFileTool(llvm::StringRef tool, const std::string &input, const std::string &output,
                FileWork work) {
  ignoreFileSizeSignal();
  auto fail = [&](const llvm::Twine &message, int status) {
    llvm::errs() << tool << ": error: " << base::printableLines(message.str()) << "\n";
    return status;
  };
  try {
    const base::OutputPath file = openOutput(output);
    if (input != "-")
      base::requireDistinct(
          {base::NamedFile::input("the input", input), base::NamedFile::output("-o", file)});
    auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(input, /*IsText=*/true);
    if (!buffer)
      return fail("cannot read " + base::inQuotes(input) + ": " + buffer.getError().message(), 1);
    std::string content;
    llvm::raw_string_ostream stream(content);
    if (!work(std::move(*buffer), stream))
      return 1;
    writeOutput(file, content);
    return 0;
  } catch (const base::NoReader &) {
    return base::kExitNoReader;
  } catch (const base::Error &error) {
    return fail(error.what(), error.status());
  }
}

} // namespace fsdpc
