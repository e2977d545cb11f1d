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

/// The role of a rank where ranks run different programs, "pipeline1", which the driver sets as the
/// label of the host's track; empty where there is one program.
std::string roleOf(const SharedSegment &segment, int rank);

/// " of stream 'compute'"; empty for the host.
std::string placeOf(const RankAction &action);

/// The current or latest action of a rank of the segment: "launch 'endless' of stream 'compute',
/// under way for 3.2 s"; empty if there is none. Of several current ones, one that waits for no
/// other rank, else the first.
std::string describeLatest(const SharedSegment &segment, int rank);

/// " (pipeline1; latest action: launch 'endless' of stream 'compute', under way for 3.2 s)": role
/// and latest action, for a message that names the rank before it; empty if nothing is known.
std::string describeState(const SharedSegment &segment, int rank);

/// How long a rank must have been busy to be named by a rank whose wait took `timeoutSeconds`: that
/// wait may have begun some launches earlier, as receives are issued ahead.
constexpr double busySeconds(double timeoutSeconds) { return timeoutSeconds / 2; }

/// The action that has kept a rank busy for at least `seconds`, while it waits for no other rank: a
/// launch other than a collective, or none, for instance where its host reads a file. Empty where
/// it waits for others, or makes progress.
std::string describeBusy(const SharedSegment &segment, int rank, double seconds);

/// "; rank 2 (pipeline2) waits for no other rank: launch ...": all such ranks but `excluded`,
/// for a message about a wait: a rank may wait for one that waits itself.
std::string describeBusyRanks(const SharedSegment &segment, const std::vector<int> &excluded,
                              double seconds);

/// For the error of a rank that does not respond: its role, its latest action, and the ranks that
/// wait in collectives, each after "; ". Empty if nothing is known.
std::string describeHang(const SharedSegment &segment, int rank);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_RANKACTIONS_H
