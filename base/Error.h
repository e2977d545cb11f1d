//===- Error.h - the one error type of the runtime -------------------------===//
//
// Every failure in a generated program is an `Error`: a message, the rank, the action that was
// running, and the line that threw it. `runRanks` catches it, informs the other ranks, prints it
// once, and converts it to the exit status.
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

/// A failure. Messages are in lower case without a final period, state `got X, expected Y`, and say
/// how to fix the problem. They may contain names from files or other machines, so control
/// characters and zero bytes are replaced by `?`. File and line are those of the caller by default.
class Error : public std::runtime_error {
public:
  explicit Error(const std::string &message, int status = kExitFailure,
                 const char *file = __builtin_FILE(), int line = __builtin_LINE());

  /// The same error, attributed to `rank` and `action`. An existing attribution is kept.
  Error at(int rank, const std::string &action) const;

  /// The same error, marked as one that all ranks of a group find at the same time.
  Error byAll() const {
    Error found(*this);
    found.byAll_ = true;
    return found;
  }

  /// The same error, marked as a refusal: the run does not start, because of another run or of its
  /// options, or only its log is incomplete. The message names no rank, the run is not restarted,
  /// and the flight record of an earlier failure is kept.
  Error asRefusal() const {
    Error found(*this);
    found.refusal_ = true;
    return found;
  }

  int status() const { return status_; }
  bool isByAll() const { return byAll_; }
  bool isRefusal() const { return refusal_; }
  /// World rank; -1: unknown.
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

/// Thrown to stop work after the job has failed elsewhere; never reported.
class Aborted : public Error {
public:
  using Error::Error;
};

/// printf into a string.
[[gnu::format(printf, 1, 2)]] std::string format(const char *pattern, ...);

} // namespace base

#endif // BASE_ERROR_H
