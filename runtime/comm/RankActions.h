//===- RankActions.h - descriptions of latest actions -----------*- C++ -*-===//

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

/// The recorded actions of a rank, in the order in which they began.
std::vector<RankAction> actionsOf(const SharedSegment &segment, int rank);

/// " of stream 'compute'"; empty for the host.
std::string placeOf(const RankAction &action);

/// The current or latest action of a rank of the segment: "launch 'endless' of stream 'compute',
/// under way for 3.2 s"; empty if there is none.
std::string describeLatest(const SharedSegment &segment, int rank);

/// For the error of a rank that does not respond: its latest action, and the ranks that wait in
/// collectives, each after "; ". Empty if nothing is known.
std::string describeHang(const SharedSegment &segment, int rank);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_RANKACTIONS_H
