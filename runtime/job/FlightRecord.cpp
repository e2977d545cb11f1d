#include "runtime/job/FlightRecord.h"
#include "base/AtomicFile.h"
#include "base/PrintableText.h"
#include "base/PrivateFolder.h"
#include "runtime/comm/RankActions.h"
#include "runtime/job/ChildProcess.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>
#include <vector>

namespace fsdp::rt {

using namespace base;

namespace {

/// Time limit for writing a record, in seconds.
constexpr double kWriteTimeout = 5;

std::string temporaryFolder() {
  const char *folder = std::getenv("TMPDIR");
  return format("%s/fsdp-%d", folder && *folder == '/' ? folder : "/tmp",
                static_cast<int>(geteuid()));
}

/// Error: another user could have put a link into the folder.
void makeTemporaryFolder() {
  const std::string folder = temporaryFolder();
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    throw Error(format("cannot create the folder '%s': %s", folder.c_str(), std::strerror(errno)));
  if (!base::faultOfPrivateFolder(folder).empty())
    throw Error(format(
        "'%s' is not a folder of this user alone: remove it, or name a file with --flight-record",
        folder.c_str()));
}

} // namespace

std::string temporaryFlightRecord(const std::string &program) {
  std::string name = program;
  std::replace(name.begin(), name.end(), '/', '_');
  return withEnding(temporaryFolder() + "/" + name, kFlightRecordEnding);
}

void writeFlightRecord(const SharedSegment &segment, const std::string &path, int firstRank,
                       int worldSize) {
  if (path.empty() || !segment.failure().raised() || segment.failure().error().isRefusal() ||
      !segment.failure().claimRecord())
    return;
  std::vector<RankAction> all;
  std::map<std::string, std::string> roles; // ranks of each
  int present = 0, lowest = -1;
  for (int rank = 0; rank < segment.layout().ranks; ++rank) {
    if (segment.rank(rank).state == RankRecord::Absent)
      continue;
    ++present;
    if (lowest < 0)
      lowest = firstRank + rank;
    if (const std::string role = roleOf(segment, rank); !role.empty()) {
      std::string &ranks = roles[role];
      ranks += (ranks.empty() ? "rank " : ", ") + std::to_string(firstRank + rank);
    }
    const std::vector<RankAction> own = actionsOf(segment, rank);
    all.insert(all.end(), own.begin(), own.end());
  }
  std::sort(all.begin(), all.end());
  const std::string name =
      present == worldSize ? path : withEnding(path, format(".rank-%d", lowest));
  const double time = now();
  std::string text = "# " + printable(segment.failure().error().describe()) + "\n" +
                     "# seconds, rank, thread, state, action; the latest actions last, times "
                     "before this was written\n";
  for (const auto &[role, ranks] : roles)
    text += "# " + printable(role) + ": " + ranks + "\n";
  for (const RankAction &found : all) {
    const FlightAction &action = found.action;
    const std::string state =
        found.isUnderWay() ? "under way" : format("took %.6f s", action.end - action.begin);
    text += format("%12.6f  rank %-3d  %-10s  %-16s  %s\n", action.begin - time,
                   firstRank + found.rank, printable(found.thread).c_str(), state.c_str(),
                   printable(action.describe()).c_str());
  }
  // The failure has been printed. A record that cannot be written must neither hide it nor delay
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
  const std::optional<int> status = runInChild(kWriteTimeout, [&] {
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
                        : format("was not written within %g s", kWriteTimeout).c_str());
}

} // namespace fsdp::rt
