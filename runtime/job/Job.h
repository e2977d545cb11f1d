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

/// Channels of a communicator, and so the most streams of a program.
constexpr int kChannels = 16;

/// How ranks talk: `--communicator=`. Auto: through shared memory inside a machine; between
/// machines over TCP where MASTER_ADDR says where to meet, else through MPI. Tcp, Mpi: so between
/// any two ranks. Nccl: on the device; on the host as Auto does. Loopback: the ranks are threads of
/// this one process.
enum class Transport { Auto, SharedMemory, Tcp, Mpi, Nccl, Loopback };

/// "auto", "shm", "tcp" or "mpi"; Error (bad command line) otherwise.
Transport parseTransport(const std::string &text);

struct JobOptions {
  Transport transport = Transport::Auto;
  /// Bytes of one rank's arena.
  std::size_t arenaBytes = 0;
  /// The program's communicators; one over all ranks is always added.
  Table<CommunicatorSpec> communicators;
  /// What the program calls itself; the same on every rank.
  const char *program = "";
  /// What else has to be the same on every rank: options, contents of files. Compared where ranks
  /// of a launcher meet.
  RunIdentity identity;
  /// SIGTERM, SIGINT and SIGUSR1 are for the ranks to handle (StopSignals.h): they may go on for as
  /// long as they need.
  bool handlesStop = false;
  /// Where the ranks are forked, a mesh of one is too, and the job's failure goes here instead of
  /// being printed.
  std::function<void(const base::Error &)> onFailure;
  /// Ranks of several machines may meet without a token (JobToken.h).
  bool trustNetwork = false;
  /// This rank's index among the ranks of its machine; set by runRanks.
  int localRank = 0;
  /// Longest wait in a collective, or for ranks to join; a process without a sign of life for as
  /// long hangs, or for 30 s. 0: FSDP_TIMEOUT if set, else 300.
  double timeoutSeconds = 0;
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
  /// What this rank's communicators know of it.
  const PeerContext &peer() const { return peer_; }
  /// Index among the ranks of this machine.
  int localRank() const { return options_.localRank; }
  const Mesh &mesh() const { return mesh_; }
  /// This rank's arena: `arenaBytes()` bytes, zero at start, 64-byte aligned.
  std::byte *arena() const { return peer_.arena; }
  std::size_t arenaBytes() const { return peer_.arenaBytes; }
  const JobOptions &options() const { return options_; }
  /// Set while a context closes: waits of this rank for others end at once.
  void setClosing(bool closing) { peer_.closing.store(closing); }
  /// Where the latest actions of the host thread are kept, and those of a stream.
  FlightTrack *hostFlight() const { return peer_.flight; }
  FlightTrack *streamFlight(int stream) const;
  /// Where the job's first error is kept.
  base::Failure &failure() const { return *peer_.failure; }
  /// Communicator `index` of the options; index == count is the one over all ranks. Each channel of
  /// it is a communicator of its own, as streams of different ranks run in different orders: what
  /// goes through one channel has to come in the same order everywhere. Each is made once, by all
  /// ranks in the same order; 0 <= channel < kChannels.
  virtual std::unique_ptr<Communicator> communicator(int index, int channel = 0) = 0;

protected:
  Job(const Mesh &mesh, const JobOptions &options, int rank);

  Mesh mesh_;
  JobOptions options_;
  /// Classes below set the arena, the failure and the flight tracks.
  PeerContext peer_;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_JOB_H
