//===- TcpRendezvous.h - connects ranks of several machines ---------------===//
//
// Rank 0 listens on a port that all ranks know; the other ranks connect and identify themselves.
// When all have joined, rank 0 sends the list of all ranks to each. Other connections are rejected
// without an effect on the job.
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

/// The address at which rank 0 listens, and the conditions for connecting to it.
struct RendezvousPlace {
  std::string host;
  int port = 0;
  std::string portFrom; ///< the variable that the port is from, for messages
  /// The secret of the job; see JobToken.h.
  std::string token;
  /// Accepts connections from this machine only.
  bool loopbackOnly = false;

  /// "node0:29501 (MASTER_PORT)"
  std::string describe() const;
};

/// A rank's side of a rendezvous that all ranks have joined.
struct Rendezvous {
  int rank = 0;
  std::vector<PeerInfo> peers;
  /// Different for every job.
  std::uint64_t nonce = 0;
  std::string token;
  bool loopbackOnly = false;
  Socket listener;
  /// On rank 0: to every other rank, by rank. On the others: one, to rank 0.
  std::vector<Socket> connections;
};

/// A rendezvous that failed.
class RendezvousError : public base::Error {
public:
  enum Reporter { ThisRank, FirstOfMachine, FirstRank };
  RendezvousError(const std::string &message, Reporter reporter,
                  std::function<void()> informOthers = nullptr)
      : base::Error(message), reporter_(reporter), informOthers_(std::move(informOthers)) {}
  /// The ranks that print it.
  Reporter reporter() const { return reporter_; }
  /// Called after it is printed: on rank 0, sends it to ranks that join late, for some seconds or
  /// until all have joined.
  void informOthers() const {
    if (informOthers_)
      informOthers_();
  }

private:
  Reporter reporter_;
  std::function<void()> informOthers_;
};

/// Returns when all ranks have joined; `self.port` and `self.nonce` are filled in. Throws
/// RendezvousError after `seconds` with the missing ranks, or at once if this rank does not belong
/// to the job or a rank was started differently than rank 0.
Rendezvous rendezvous(const RendezvousPlace &place, JoinRequest self, double seconds);

/// Equal on ranks that can share memory: the boot, the namespaces of network and processes, and the
/// user. FSDP_MACHINE replaces it if set.
std::string machineIdentity();

/// Name of this machine.
std::string hostName();

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_TCPRENDEZVOUS_H
