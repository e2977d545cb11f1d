//===- Failure.h - the first failure of a job -------------------------------===//
#ifndef BASE_FAILURE_H
#define BASE_FAILURE_H

#include "base/Error.h"

#include <atomic>
#include <cstdint>

namespace base {

/// An error as plain data, for memory that processes share and for messages between them. Longer
/// texts are cut.
struct ErrorRecord {
  std::int32_t status = 0, rank = -1;
  std::int32_t byAll = 0, refusal = 0;
  char action[128] = {}, message[1792] = {};

  ErrorRecord() = default;
  explicit ErrorRecord(const Error &error) noexcept;
  /// The error; texts need not be terminated, as another process may have written them.
  Error error() const;
};

/// The first error of a job. It holds no pointer, as it lies in the memory that the ranks share.
/// Every rank checks it while it waits for others.
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
  ErrorRecord record_;
};

} // namespace base

#endif // BASE_FAILURE_H
