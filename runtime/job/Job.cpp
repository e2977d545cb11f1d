#include "runtime/job/Job.h"

#include "base/Error.h"
#include "runtime/job/Machine.h"

namespace fsdp::rt {

using namespace base;

Transport parseTransport(const std::string &text) {
  if (text == "auto")
    return Transport::Auto;
  if (text == "shm")
    return Transport::SharedMemory;
  if (text == "tcp")
    return Transport::Tcp;
  if (text == "mpi")
    return Transport::Mpi;
  throw Error(
      format("option '--communicator' got '%s', expected auto, shm, tcp or mpi", text.c_str()),
      kExitBadCommandLine);
}

Job::Job(const Mesh &mesh, const JobOptions &options, int rank) : mesh_(mesh), options_(options) {
  peer_.rank = rank;
  peer_.arenaBytes = options.arenaBytes;
  peer_.timeoutSeconds = options.timeoutSeconds;
  const int cores = options.localRanks ? MachineCores::read().perRank(options.localRanks) : 1;
  threads_ = options.threads ? options.threads : cores;
  hasCoreForEachThread_ = options.localRanks > 0 && threads_ <= cores;
}

static_assert(kFlightTracks == kChannels + 1);
FlightTrack *Job::streamFlight(int stream) const { return peer_.flight + 1 + stream; }

} // namespace fsdp::rt
