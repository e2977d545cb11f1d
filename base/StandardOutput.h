//===- StandardOutput.h - results on standard output ------------*- C++ -*-===//

#ifndef BASE_STANDARDOUTPUT_H
#define BASE_STANDARDOUTPUT_H

#include "base/Error.h"

#include <chrono>
#include <string>

namespace base {

/// The reader of standard output has closed the pipe, as in `| head -1`.
class NoReader : public Error {
public:
  using Error::Error;
};

/// The exit status then, as of a program that SIGPIPE has ended. Nothing is printed.
constexpr int kExitNoReader = 141;

/// Prints `text`, the whole result of a command (help, an options file), to standard output. Throws
/// an Error if it cannot be written, as on a full disk. If the reader has closed the pipe, as in `|
/// head -1`, ends the process by SIGPIPE without a message, as other programs do.
void printResult(const std::string &text);

/// Waits this long, or ends the process as printResult() does when the reader of standard output
/// leaves.
void waitWhileRead(std::chrono::milliseconds time);

} // namespace base

#endif // BASE_STANDARDOUTPUT_H
