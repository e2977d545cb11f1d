//===- BuildProgress.cpp --------------------------------------------------===//

#include "tools/fsdpc/BuildProgress.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <tuple>
#include <unistd.h>

namespace fsdpc {

std::optional<unsigned> percentageOf(llvm::StringRef log) {
  std::optional<unsigned> percentage;
  for (llvm::StringRef line; !log.empty();) {
    std::tie(line, log) = log.split('\n');
    uint64_t done = 0, all = 100;
    if (!line.consume_front("[") || line.ltrim().consumeInteger(10, done))
      continue;
    llvm::StringRef rest = line.ltrim().drop_while([](char c) { return c >= '0' && c <= '9'; });
    if (rest.consume_front("/") ? rest.consumeInteger(10, all) || !rest.starts_with("]")
                                : !rest.starts_with("%]"))
      continue;
    if (all > 0 && done <= all)
      percentage = static_cast<unsigned>(100 * done / all);
  }
  return percentage;
}

static std::string minutes(double seconds) {
  std::string text;
  llvm::raw_string_ostream out(text);
  const auto whole = static_cast<unsigned>(seconds + 0.5);
  out << whole / 60 << llvm::format(":%02u", whole % 60);
  return text;
}

BuildProgress::BuildProgress(std::string what, std::string log)
    : what(std::move(what)), log(std::move(log)), terminal(isatty(STDERR_FILENO)),
      begin(std::chrono::steady_clock::now()) {}

void BuildProgress::update() {
  auto buffer = llvm::MemoryBuffer::getFile(log, /*IsText=*/false, /*RequiresNullTerminator=*/false,
                                            /*IsVolatile=*/true);
  const std::optional<unsigned> percentage =
      buffer ? percentageOf((*buffer)->getBuffer()) : std::nullopt;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const bool line = percentage && *percentage / 25 > shown && *percentage < 100;
  if (!terminal && !line)
    return;
  std::string text = "fsdpc: ";
  if (percentage)
    text += std::to_string(*percentage) + " % of " + what + " is built, " + minutes(seconds) +
            " so far";
  else
    text += "configuring " + what + ", " + minutes(seconds) + " so far";
  if (percentage && *percentage > 0)
    text += ", about " + minutes(seconds * (100 - *percentage) / *percentage) + " left";
  if (terminal)
    llvm::errs() << "\r\033[K" << text;
  else
    llvm::errs() << text << "\n";
  if (line)
    shown = *percentage / 25;
}

void BuildProgress::clear() {
  if (terminal)
    llvm::errs() << "\r\033[K";
}

void BuildProgress::finish() {
  clear();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  llvm::errs() << "fsdpc: built " << what << " in " << minutes(seconds) << "\n";
}

} // namespace fsdpc
