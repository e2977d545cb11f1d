#include "runtime/job/FlightRecord.h"
#include "base/AtomicFile.h"
#include "base/PrintableText.h"
#include "base/PrivateFolder.h"
#include "runtime/device/FlightTrack.h"
#include "runtime/job/ChildProcess.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>
#include <vector>

namespace fsdp::rt {

using namespace base;

namespace {

/// Seconds after which writing a record is given up.
constexpr double kWriting = 5;

struct Found {
  FlightAction action;
  int rank;
  std::string thread;

  bool operator<(const Found &other) const {
    return std::tie(action.begin, rank, thread) <
           std::tie(other.action.begin, other.rank, other.thread);
  }
};

/// Of one rank, in the order in which they began.
std::vector<Found> actionsOf(const SharedSegment &segment, int rank) {
  std::vector<Found> all;
  for (int track = 0; track < kFlightTracks; ++track) {
    const FlightTrack &kept = segment.flight(rank)[track];
    for (const FlightAction &action : kept.actions())
      all.push_back({action, rank, track ? kept.label() : "host"});
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::string where(const Found &found) {
  return found.thread == "host" ? "" : format(" of stream '%s'", found.thread.c_str());
}

std::string temporaryFolder() {
  const char *folder = std::getenv("TMPDIR");
  return format("%s/fsdp-%d", folder && *folder == '/' ? folder : "/tmp",
                static_cast<int>(geteuid()));
}

/// Errors: somebody else could have put a link into it.
void makeTemporaryFolder() {
  const std::string folder = temporaryFolder();
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    throw Error(format("cannot create the folder '%s': %s", folder.c_str(), std::strerror(errno)));
  if (!base::faultOfPrivateFolder(folder).empty())
    throw Error(format(
        "'%s' is not a folder of this user alone: remove it, or name a file with --flight-record",
        folder.c_str()));
}

bool isUnderWay(const Found &found) { return found.action.end == 0; }

} // namespace

std::string temporaryFlightRecord(const std::string &program) {
  std::string name = program;
  std::replace(name.begin(), name.end(), '/', '_');
  return withEnding(temporaryFolder() + "/" + name, kFlightRecordEnding);
}

std::string describeLatest(const SharedSegment &segment, int rank) {
  const Found *doing = nullptr, *last = nullptr;
  const std::vector<Found> all = actionsOf(segment, rank);
  for (const Found &found : all) {
    if (found.action.kind == FlightAction::Mark || found.action.kind == FlightAction::Wait)
      continue; // says what it is part of, or what is behind something else
    if (isUnderWay(found) && !doing)
      doing = &found;
    if (!isUnderWay(found) && (!last || found.action.end > last->action.end))
      last = &found;
  }
  if (doing)
    return format("%s%s, under way for %.1f s", doing->action.describe().c_str(),
                  where(*doing).c_str(), now() - doing->action.begin);
  if (last)
    return format("%s%s, ended %.1f s ago", last->action.describe().c_str(), where(*last).c_str(),
                  now() - last->action.end);
  return "";
}

std::string describeHang(const SharedSegment &segment, int rank) {
  std::string text;
  if (const std::string latest = describeLatest(segment, rank); !latest.empty())
    text = "; its latest action: " + latest;
  std::map<std::string, std::string> waiting; // ranks by what they wait in
  for (int other = 0; other < segment.layout().ranks; ++other) {
    if (other == rank)
      continue;
    for (const Found &found : actionsOf(segment, other))
      if (found.action.kind == FlightAction::Collective && isUnderWay(found)) {
        std::string &ranks = waiting[found.action.describe()];
        ranks += (ranks.empty() ? "rank " : ", ") + std::to_string(other);
        break;
      }
  }
  constexpr std::size_t kMost = 3; // of a message that stays readable
  std::size_t said = 0;
  for (const auto &[collective, ranks] : waiting)
    if (said++ < kMost)
      text += format("; waiting in %s: %s", collective.c_str(), ranks.c_str());
  return text;
}

void writeFlightRecord(const SharedSegment &segment, const std::string &path, int firstRank,
                       int worldSize) {
  if (path.empty() || !segment.failure().raised() || segment.failure().error().isRefusal() ||
      !segment.failure().claimRecord())
    return;
  std::vector<Found> all;
  int present = 0, lowest = -1;
  for (int rank = 0; rank < segment.layout().ranks; ++rank) {
    if (segment.rank(rank).state == RankRecord::Absent)
      continue;
    ++present;
    if (lowest < 0)
      lowest = firstRank + rank;
    const std::vector<Found> own = actionsOf(segment, rank);
    all.insert(all.end(), own.begin(), own.end());
  }
  std::sort(all.begin(), all.end());
  const std::string name =
      present == worldSize ? path : withEnding(path, format(".rank-%d", lowest));
  const double time = now();
  std::string text = "# " + printable(segment.failure().error().describe()) + "\n" +
                     "# seconds, rank, thread, state, action; the latest actions last, times "
                     "before this was written\n";
  for (const Found &found : all) {
    const FlightAction &action = found.action;
    const std::string state =
        isUnderWay(found) ? "under way" : format("took %.6f s", action.end - action.begin);
    text += format("%12.6f  rank %-3d  %-10s  %-16s  %s\n", action.begin - time,
                   firstRank + found.rank, printable(found.thread).c_str(), state.c_str(),
                   printable(action.describe()).c_str());
  }
  // The failure itself has been said; that its record cannot be written must not hide it, nor keep
  // this process, which may be the one that ends the job.
  const auto write = [&] {
    if (const std::string folder = temporaryFolder() + "/";
        name.compare(0, folder.size(), folder) == 0)
      makeTemporaryFolder();
    AtomicFile file{OutputPath(name)};
    file.reserve(text.size());
    file.write(text.data(), text.size());
    file.commit();
    std::fprintf(stderr, "note: wrote the last actions of each rank to '%s'\n",
                 printable(name).c_str());
  };
  const std::optional<int> status = runInChild(kWriting, [&] {
    try {
      write();
    } catch (const Error &error) {
      std::fprintf(stderr, "warning: the last actions of each rank are lost: %s\n",
                   printable(error.what()).c_str());
    }
    return 0;
  });
  if (!status || *status)
    std::fprintf(stderr, "warning: the last actions of each rank are lost: '%s' %s\n",
                 printable(name).c_str(),
                 status ? "was not written: its process could not be started, or was killed"
                        : format("was not written within %g s", kWriting).c_str());
}

} // namespace fsdp::rt
