//===- Error.h - the one error type of the runtime -------------------------===//
//
// Everything that goes wrong in a generated program is an `Error`: what happened, on which rank,
// and where (the action that was running, and the line that threw). `runRanks` catches it, tells
// every other rank, prints it once, and turns it into the exit status.
//
//===----------------------------------------------------------------------===//
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdexcept>
#include <string>

namespace base {

/// Exit statuses of a generated program.
enum ExitStatus : int {
  kExitDone = 0,
  kExitFailure = 1,        ///< bad input, or a rank failed
  kExitBadCommandLine = 2, ///< unknown or malformed option
  kExitNoDevice = 3,       ///< no device that can run the program
};

/// A failure. The message follows the house style: lower case, no final period, `got X, expected
/// Y`, and how to mend it. It may hold names out of files or of other machines: what would control
/// a terminal, or end the text, is shown as `?`. The throwing file and line are taken by default.
class Error : public std::runtime_error {
public:
  explicit Error(const std::string &message, int status = kExitFailure,
                 const char *file = __builtin_FILE(), int line = __builtin_LINE());

  /// The same error, said to have happened on `rank` while `action` ran. The first place named
  /// wins.
  Error at(int rank, const std::string &action) const;

  /// The same error, said to be one that the ranks of a group all find at the same time.
  Error byAll() const {
    Error found(*this);
    found.byAll_ = true;
    return found;
  }

  /// The same error, of a run that is refused before it trains, for the sake of another one or for
  /// what it was asked, or that has done all but write its log: it names no rank, is not tried
  /// again, and leaves the flight record of an earlier failure in its place.
  Error asRefusal() const {
    Error found(*this);
    found.refusal_ = true;
    return found;
  }

  int status() const { return status_; }
  bool isByAll() const { return byAll_; }
  bool isRefusal() const { return refusal_; }
  /// World rank, or -1 while nobody has said.
  int rank() const { return rank_; }
  /// Name of the launch (or phase of the driver) that failed, possibly empty.
  const std::string &action() const { return action_; }
  const char *file() const { return file_; }
  int line() const { return line_; }
  /// "rank 2, 'fc1 einsum': message", with the parts that are known.
  std::string describe() const;

private:
  int status_;
  const char *file_;
  int line_;
  int rank_ = -1;
  bool byAll_ = false, refusal_ = false;
  std::string action_;
};

/// Thrown where work stops because the job has already failed elsewhere: it is never reported.
class Aborted : public Error {
public:
  using Error::Error;
};

/// printf into a string.
[[gnu::format(printf, 1, 2)]] std::string format(const char *pattern, ...);

} // namespace base

#endif // BASE_ERROR_H
