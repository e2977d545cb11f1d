#include "runtime/comm/RankActions.h"

#include "base/Error.h"

#include <algorithm>
#include <map>

namespace fsdp::rt {

using namespace base;

namespace {

/// The most entries of a list in a message.
constexpr std::size_t kMax = 3;

/// The launch of a stream in which the collective `at` of `all` is; null for one of the host.
const RankAction *launchOf(const std::vector<RankAction> &all, std::size_t at) {
  for (std::size_t i = at; i-- > 0;)
    if (all[i].thread == all[at].thread && all[i].action.kind == FlightAction::Launch)
      return all[i].isUnderWay() ? &all[i] : nullptr;
  return nullptr;
}

/// The current and the latest action of a rank.
struct RankState {
  std::vector<RankAction> all;
  /// Under way: a launch that is in no collective, the first collective, and its launch.
  const RankAction *computing = nullptr, *collective = nullptr, *launch = nullptr;
  /// Under way, a launch or a collective, as the first that began.
  const RankAction *first = nullptr;
  const RankAction *last = nullptr; ///< the latest that has ended
  const RankAction *mark = nullptr; ///< the phase of the host
  bool hasDevice = false;           ///< which performs the work that the host has enqueued

  RankState(const SharedSegment &segment, int rank) : all(actionsOf(segment, rank)) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const RankAction &found = all[i];
      hasDevice |= found.action.kind == FlightAction::Enqueued;
      if (found.action.kind == FlightAction::Mark && found.isUnderWay())
        mark = &found;
      // A mark names a larger action, a wait another one.
      if (found.action.kind == FlightAction::Mark || found.action.kind == FlightAction::Wait)
        continue;
      if (!found.isUnderWay()) {
        if (!last || found.action.end > last->action.end)
          last = &found;
        continue;
      }
      first = first ? first : &found;
      if (found.action.kind == FlightAction::Collective && !collective) {
        collective = &found;
        launch = launchOf(all, i);
      }
      if (found.action.kind == FlightAction::Launch && !computing && !isInCollective(i))
        computing = &found;
    }
  }

private:
  bool isInCollective(std::size_t at) const {
    return std::any_of(all.begin() + static_cast<std::ptrdiff_t>(at), all.end(),
                       [&](const RankAction &later) {
                         return later.action.kind == FlightAction::Collective &&
                                later.isUnderWay() && later.thread == all[at].thread;
                       });
  }
};

std::string underWay(const RankAction &found) {
  return format("%s%s, under way for %.1f s", found.action.describe().c_str(),
                placeOf(found).c_str(), now() - found.action.begin);
}

std::string named(const SharedSegment &segment, int rank) {
  const std::string role = roleOf(segment, rank);
  return format("rank %d%s", rank, role.empty() ? "" : (" (" + role + ")").c_str());
}

} // namespace

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

std::string roleOf(const SharedSegment &segment, int rank) { return segment.flight(rank)->label(); }

std::string placeOf(const RankAction &found) {
  return found.thread == "host" ? "" : format(" of stream '%s'", found.thread.c_str());
}

std::string describeLatest(const SharedSegment &segment, int rank) {
  const RankState state(segment, rank);
  if (state.computing)
    return underWay(*state.computing);
  if (state.first && state.first == state.launch)
    return format("launch '%s' of stream '%s' in %s, under way for %.1f s",
                  state.launch->action.name, state.launch->thread.c_str(),
                  state.collective->action.describe().c_str(), now() - state.launch->action.begin);
  if (state.first)
    return underWay(*state.first);
  if (state.last)
    return format("%s%s, ended %.1f s ago", state.last->action.describe().c_str(),
                  placeOf(*state.last).c_str(), now() - state.last->action.end);
  return "";
}

std::string describeState(const SharedSegment &segment, int rank) {
  const std::string role = roleOf(segment, rank), latest = describeLatest(segment, rank);
  if (role.empty() && latest.empty())
    return "";
  return format(" (%s%s%s)", role.c_str(), role.empty() || latest.empty() ? "" : "; ",
                latest.empty() ? "" : ("latest action: " + latest).c_str());
}

std::string describeBusy(const SharedSegment &segment, int rank, double seconds) {
  if (segment.rank(rank).state != RankRecord::Running)
    return "";
  const RankState state(segment, rank);
  const double time = now();
  if (state.computing)
    return time - state.computing->action.begin < seconds ? "" : underWay(*state.computing);
  if (state.collective || state.hasDevice || !state.last || time - state.last->action.end < seconds)
    return "";
  return format("nothing under way%s; its last action: %s",
                state.mark ? (" in '" + state.mark->action.describe() + "'").c_str() : "",
                describeLatest(segment, rank).c_str());
}

std::string describeBusyRanks(const SharedSegment &segment, const std::vector<int> &excluded,
                              double seconds) {
  std::string text;
  std::size_t said = 0;
  for (int rank = 0; rank < segment.layout().ranks && said < kMax; ++rank) {
    if (std::find(excluded.begin(), excluded.end(), rank) != excluded.end())
      continue;
    const std::string busy = describeBusy(segment, rank, seconds);
    if (busy.empty())
      continue;
    text += "; " + named(segment, rank) + " waits for no other rank: " + busy;
    ++said;
  }
  return text;
}

std::string describeHang(const SharedSegment &segment, int rank) {
  std::string text;
  if (const std::string role = roleOf(segment, rank); !role.empty())
    text = "; its role: " + role;
  if (const std::string latest = describeLatest(segment, rank); !latest.empty())
    text += "; its latest action: " + latest;
  std::map<std::string, std::string> waiting; // ranks by the collective in which they wait
  for (int other = 0; other < segment.layout().ranks; ++other) {
    if (other == rank)
      continue;
    const RankState state(segment, other);
    if (!state.collective)
      continue;
    std::string &ranks = waiting[state.collective->action.describe()];
    ranks += ranks.empty() ? named(segment, other) : named(segment, other).replace(0, 5, ", ");
    // Of transfers, launches of different microbatches are alike.
    if (state.launch && state.collective->action.request.isTransfer())
      ranks += format(" in '%s'", state.launch->action.name);
  }
  std::size_t said = 0;
  for (const auto &[collective, ranks] : waiting)
    if (said++ < kMax)
      text += format("; waiting in %s: %s", collective.c_str(), ranks.c_str());
  return text;
}

} // namespace fsdp::rt
