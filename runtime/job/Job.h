//===- Job.h - one rank's view of the running job -----------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_JOB_JOB_H
#define FSDP_RUNTIME_JOB_JOB_H

#include "base/Failure.h"
#include "runtime/comm/Communicator.h"
#include "runtime/comm/PeerContext.h"
#include "runtime/device/FlightTrack.h"
#include "runtime/job/RunIdentity.h"
#include "runtime/program/Mesh.h"

#include <functional>
#include <memory>
#include <string>

namespace fsdp::rt {

/// Channels of a communicator: the most streams of a program.
constexpr int kChannels = 16;

/// The transport between ranks: `--communicator=`. Auto: shared memory on one machine; between
/// machines TCP if MASTER_ADDR is set, else MPI. Tcp, Mpi: between all ranks. Nccl: on the device;
/// Auto on the host. Loopback: the ranks are threads of this process.
enum class Transport { Auto, SharedMemory, Tcp, Mpi, Nccl, Loopback };

/// "auto", "shm", "tcp" or "mpi"; Error (bad command line) otherwise.
Transport parseTransport(const std::string &text);

struct JobOptions {
  Transport transport = Transport::Auto;
  /// Bytes of one rank's arena.
  std::size_t arenaBytes = 0;
  /// The program's communicators; one over all ranks is always added.
  Table<CommunicatorSpec> communicators;
  /// Name of the program; the same on every rank.
  const char *program = "";
  /// Options and contents of files that must be the same on every rank. Compared when ranks of a
  /// launcher connect.
  RunIdentity identity;
  /// The ranks handle SIGTERM, SIGINT, SIGHUP and SIGUSR1 (StopSignals.h), and may take as long as
  /// they need to end.
  bool handlesStop = false;
  /// Gets the job's failure, which is then not printed. Then a mesh of one rank is forked too.
  std::function<void(const base::Error &)> onFailure;
  /// Ranks of several machines may connect without a token (JobToken.h).
  bool trustNetwork = false;
  /// This rank's index among the ranks of its machine; set by runRanks.
  int localRank = 0;
  /// Number of the ranks of its machine; set by runRanks. 0: not known.
  int localRanks = 0;
  /// Threads that compute in a rank: `--threads`. 0: the cores that the machine gives each rank.
  int threads = 0;
  /// Longest wait in a collective, or for ranks to join, in seconds. A process without a heartbeat
  /// for that time, at most 30 s, has failed. 0: FSDP_TIMEOUT if set, else 300.
  double timeoutSeconds = 0;
  /// Bytes/s that a rank sends over a link which streams' collectives take for theirs
  /// (Communicator::limitLink). 0: FSDP_LINK_BANDWIDTH if set, else no limit.
  double linkBandwidth = 0;
  /// File for the latest actions of each rank when the job has failed (FlightRecord.h); empty:
  /// none.
  std::string flightRecord;
};

/// One rank's view of the running job.
class Job {
public:
  virtual ~Job() = default;

  int rank() const { return peer_.rank; }
  int worldSize() const { return mesh_.size(); }
  /// The part of it that communicators use.
  const PeerContext &peer() const { return peer_; }
  /// Index among the ranks of this machine.
  int localRank() const { return options_.localRank; }
  /// Threads that compute in this rank, and whether its machine has a core for each of those of all
  /// its ranks.
  int threads() const { return threads_; }
  bool hasCoreForEachThread() const { return hasCoreForEachThread_; }
  const Mesh &mesh() const { return mesh_; }
  /// This rank's arena: `arenaBytes()` bytes, zero at start, 64-byte aligned.
  std::byte *arena() const { return peer_.arena; }
  std::size_t arenaBytes() const { return peer_.arenaBytes; }
  const JobOptions &options() const { return options_; }
  /// Set while a context closes: this rank then stops waiting for others.
  void setClosing(bool closing) { peer_.closing.store(closing); }
  /// The records of the latest actions of the host thread and of a stream.
  FlightTrack *hostFlight() const { return peer_.flight; }
  FlightTrack *streamFlight(int stream) const;
  /// The job's first error.
  base::Failure &failure() const { return *peer_.failure; }
  /// Communicator `index` of the options; index == count is the one over all ranks. Each channel is
  /// a separate communicator, because streams of different ranks run in different orders, and the
  /// collectives of one communicator must have the same order on every rank. Each is created once,
  /// by all ranks in the same order; 0 <= channel < kChannels. Communicators of transfers have
  /// channel 0 only: the peers use another stream.
  virtual std::unique_ptr<Communicator> communicator(int index, int channel = 0) = 0;

protected:
  Job(const Mesh &mesh, const JobOptions &options, int rank);

  Mesh mesh_;
  JobOptions options_;
  int threads_;
  bool hasCoreForEachThread_;
  /// Derived classes set the arena, the failure and the flight tracks.
  PeerContext peer_;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_JOB_H
