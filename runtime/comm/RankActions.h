//===- RankActions.h - what each rank did last, in words ---------*- C++ -*-===//

#ifndef FSDP_RUNTIME_COMM_RANKACTIONS_H
#define FSDP_RUNTIME_COMM_RANKACTIONS_H

#include "runtime/comm/SharedSegment.h"
#include "runtime/device/FlightTrack.h"

#include <string>
#include <tuple>
#include <vector>

namespace fsdp::rt {

/// An action of a rank of a segment.
struct RankAction {
  FlightAction action;
  int rank;
  std::string thread;

  bool isUnderWay() const { return action.end == 0; }
  bool operator<(const RankAction &other) const {
    return std::tie(action.begin, rank, thread) <
           std::tie(other.action.begin, other.rank, other.thread);
  }
};

/// Those of one rank that are kept, in the order in which they began.
std::vector<RankAction> actionsOf(const SharedSegment &segment, int rank);

/// " of stream 'compute'"; empty for the host.
std::string placeOf(const RankAction &action);

/// What a rank of the segment is doing, or did last: "launch 'endless' of stream 'compute', under
/// way for 3.2 s"; empty where it has done nothing that is kept.
std::string describeLatest(const SharedSegment &segment, int rank);

/// Of a rank that does not respond, to be said behind its error: what it did last, and which ranks
/// wait in which collective, each behind "; ". Empty where nothing is known.
std::string describeHang(const SharedSegment &segment, int rank);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_RANKACTIONS_H
