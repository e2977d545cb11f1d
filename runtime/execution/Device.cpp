#include "runtime/execution/Device.h"
#include "runtime/device/FlightTrack.h"

#include <algorithm>

namespace fsdp::rt {

void Device::mark(Mark mark) {
  marked = mark;
  if (FlightTrack *track = job_.hostFlight()) {
    track->end(kept_);
    kept_ = track->begin(FlightAction::Mark, mark.name, "", mark.number);
  }
}

std::size_t mostOutputs(const Program &program) {
  return std::max(program.train.outputs.size(), program.evaluate.outputs.size());
}

} // namespace fsdp::rt
