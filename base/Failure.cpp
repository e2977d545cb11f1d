#include "base/Failure.h"

#include <cstdio>
#include <sched.h>

namespace base {

bool Failure::raise(const Error &error) noexcept {
  std::int32_t nothing = 0;
  if (!state_.compare_exchange_strong(nothing, 1))
    return false;
  status_ = error.status() ? error.status() : kExitFailure;
  rank_ = error.rank();
  byAll_ = error.isByAll();
  refusal_ = error.isRefusal();
  std::snprintf(action_, sizeof action_, "%s", error.action().c_str());
  std::snprintf(message_, sizeof message_, "%s", error.what());
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
  Error error = Error(message_, status_).at(rank_, action_);
  if (byAll_)
    error = error.byAll();
  return refusal_ ? error.asRefusal() : error;
}

} // namespace base
