//===- TcpRendezvous.h - ranks of several machines find each other ----------===//
//
// Rank 0 listens at a port that all know; the others come to it and say who they are. When all have
// come, each is told of all. What comes and is no rank of this job is sent away and changes
// nothing.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_JOB_TCPRENDEZVOUS_H
#define FSDP_RUNTIME_JOB_TCPRENDEZVOUS_H

#include "base/Error.h"
#include "runtime/comm/Socket.h"
#include "runtime/job/TcpMessages.h"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace fsdp::rt {

/// Where rank 0 is to be found, and who may come.
struct RendezvousPlace {
  std::string host;
  int port = 0;
  std::string portFrom; ///< which variables the port is from, for messages
  /// What every rank knows and nobody else; see JobToken.h.
  std::string token;
  /// Takes connections of this machine only.
  bool loopbackOnly = false;

  /// "node0:29501 (MASTER_PORT)"
  std::string describe() const;
};

/// A rank's side of a rendezvous to which all have come.
struct Rendezvous {
  int rank = 0;
  std::vector<PeerInfo> peers;
  /// No other job has the same.
  std::uint64_t nonce = 0;
  std::string token;
  bool loopbackOnly = false;
  Socket listener;
  /// Rank 0: to every other rank, by rank. The others: to rank 0, the only one.
  std::vector<Socket> connections;
};

/// A rendezvous that failed.
class RendezvousError : public base::Error {
public:
  enum Reporter { ThisRank, FirstOfMachine, FirstRank };
  RendezvousError(const std::string &message, Reporter reporter,
                  std::function<void()> informOthers = nullptr)
      : base::Error(message), reporter_(reporter), informOthers_(std::move(informOthers)) {}
  /// Who is to print it.
  Reporter reporter() const { return reporter_; }
  /// To be called when it is printed: on rank 0, answers ranks that have still to come, until all
  /// have or some seconds are over.
  void informOthers() const {
    if (informOthers_)
      informOthers_();
  }

private:
  Reporter reporter_;
  std::function<void()> informOthers_;
};

/// Returns when all ranks have come; `self.port` and `self.nonce` are filled in. Throws
/// RendezvousError after `seconds` with the ranks that are missing, or at once when this rank is
/// none of the job's, or one of the job's was started otherwise than rank 0.
Rendezvous rendezvous(const RendezvousPlace &place, JoinRequest self, double seconds);

/// The same text on ranks that can share memory: this boot of this kernel, its /dev/shm, process
/// ids and user. FSDP_MACHINE in its place where that is set.
std::string machineIdentity();

/// Name of this machine.
std::string hostName();

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_TCPRENDEZVOUS_H
