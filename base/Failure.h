//===- Failure.h - the first failure of a job -------------------------------===//
#ifndef BASE_FAILURE_H
#define BASE_FAILURE_H

#include "base/Error.h"

#include <atomic>
#include <cstdint>

namespace base {

/// The first thing that went wrong in a job. It holds no pointer: it stands in the memory that the
/// ranks share, so that whoever looks sees the one cause, and everybody who waits looks.
class Failure {
public:
  /// Stores the error unless one is stored already; true for the first. Never throws.
  bool raise(const Error &error) noexcept;
  bool raised() const { return state_.load(std::memory_order_acquire) != 0; }
  /// Throws `Aborted` when the job has failed.
  void check() const;
  /// The stored error; only after raised().
  Error error() const;
  /// True for one caller: the one that prints the cause.
  bool claimReport() { return !reported_.exchange(1); }
  /// True for one caller: the one that writes the flight record.
  bool claimRecord() { return !recorded_.exchange(1); }

private:
  std::atomic<std::int32_t> state_{0}; // 0 nothing, 1 being written, 2 written
  std::atomic<std::int32_t> reported_{0};
  std::atomic<std::int32_t> recorded_{0};
  std::int32_t status_ = 0;
  std::int32_t rank_ = -1;
  bool byAll_ = false, refusal_ = false;
  char action_[128] = {};
  char message_[1792] = {};
};

} // namespace base

#endif // BASE_FAILURE_H
