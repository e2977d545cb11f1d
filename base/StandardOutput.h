//===- StandardOutput.h - results on standard output ------------*- C++ -*-===//

#ifndef BASE_STANDARDOUTPUT_H
#define BASE_STANDARDOUTPUT_H

#include <string>

namespace base {

/// Prints `text`, all that a command was asked for (help, a file of options), to standard output.
/// Throws an Error if it cannot be written, as on a full disk. Where nobody reads it any more, as
/// behind `| head -1`, ends the process without a message by SIGPIPE, as other programs do.
void printResult(const std::string &text);

} // namespace base

#endif // BASE_STANDARDOUTPUT_H
