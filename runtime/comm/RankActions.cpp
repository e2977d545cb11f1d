#include "runtime/comm/RankActions.h"

#include "base/Error.h"

#include <algorithm>
#include <map>

namespace fsdp::rt {

using namespace base;

std::vector<RankAction> actionsOf(const SharedSegment &segment, int rank) {
  std::vector<RankAction> all;
  for (int track = 0; track < kFlightTracks; ++track) {
    const FlightTrack &kept = segment.flight(rank)[track];
    for (const FlightAction &action : kept.actions())
      all.push_back({action, rank, track ? kept.label() : "host"});
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::string placeOf(const RankAction &found) {
  return found.thread == "host" ? "" : format(" of stream '%s'", found.thread.c_str());
}

std::string describeLatest(const SharedSegment &segment, int rank) {
  const RankAction *doing = nullptr, *last = nullptr;
  const std::vector<RankAction> all = actionsOf(segment, rank);
  for (const RankAction &found : all) {
    if (found.action.kind == FlightAction::Mark || found.action.kind == FlightAction::Wait)
      continue; // a mark names a larger action, a wait another one
    if (found.isUnderWay() && !doing)
      doing = &found;
    if (!found.isUnderWay() && (!last || found.action.end > last->action.end))
      last = &found;
  }
  if (doing)
    return format("%s%s, under way for %.1f s", doing->action.describe().c_str(),
                  placeOf(*doing).c_str(), now() - doing->action.begin);
  if (last)
    return format("%s%s, ended %.1f s ago", last->action.describe().c_str(), placeOf(*last).c_str(),
                  now() - last->action.end);
  return "";
}

std::string describeHang(const SharedSegment &segment, int rank) {
  std::string text;
  if (const std::string latest = describeLatest(segment, rank); !latest.empty())
    text = "; its latest action: " + latest;
  std::map<std::string, std::string> waiting; // ranks by the collective in which they wait
  for (int other = 0; other < segment.layout().ranks; ++other) {
    if (other == rank)
      continue;
    for (const RankAction &found : actionsOf(segment, other))
      if (found.action.kind == FlightAction::Collective && found.isUnderWay()) {
        std::string &ranks = waiting[found.action.describe()];
        ranks += (ranks.empty() ? "rank " : ", ") + std::to_string(other);
        break;
      }
  }
  constexpr std::size_t kMax = 3; // for a readable message
  std::size_t said = 0;
  for (const auto &[collective, ranks] : waiting)
    if (said++ < kMax)
      text += format("; waiting in %s: %s", collective.c_str(), ranks.c_str());
  return text;
}

} // namespace fsdp::rt
