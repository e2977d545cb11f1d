#include "base/Failure.h"

#include "base/PrintableText.h"

#include <cstdio>
#include <sched.h>

namespace base {

ErrorRecord::ErrorRecord(const Error &error) noexcept
    : status(error.status() ? error.status() : kExitFailure), rank(error.rank()),
      byAll(error.isByAll()), refusal(error.isRefusal()) {
  std::snprintf(action, sizeof action, "%s", error.action().c_str());
  std::snprintf(message, sizeof message, "%s", error.what());
}

Error ErrorRecord::error() const {
  Error error = Error(printable({message, sizeof message}, sizeof message - 1), status)
                    .at(rank, printable({action, sizeof action}, sizeof action - 1));
  if (byAll)
    error = error.byAll();
  return refusal ? error.asRefusal() : error;
}

bool Failure::raise(const Error &error) noexcept {
  std::int32_t nothing = 0;
  if (!state_.compare_exchange_strong(nothing, 1))
    return false;
  record_ = ErrorRecord(error);
  state_.store(2, std::memory_order_release);
  return true;
}

void Failure::check() const {
  if (raised())
    throw Aborted("stopped, as the job has failed elsewhere");
}

Error Failure::error() const {
  // Another process may be between the two stores; it may also have died there.
  for (int tries = 0; tries < 1000 && state_.load(std::memory_order_acquire) == 1; ++tries)
    sched_yield();
  return record_.error();
}

} // namespace base
