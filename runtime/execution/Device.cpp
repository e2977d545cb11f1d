#include "runtime/execution/Device.h"
#include "runtime/device/FlightTrack.h"

namespace fsdp::rt {

void Device::mark(Mark mark) {
  marked = mark;
  if (FlightTrack *track = job_.hostFlight()) {
    track->end(kept_);
    kept_ = track->begin(FlightAction::Mark, mark.name, "", mark.number);
  }
}

} // namespace fsdp::rt
