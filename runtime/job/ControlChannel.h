//===- ControlChannel.h - failures and heartbeats over TCP ----------------===//
#ifndef FSDP_RUNTIME_JOB_CONTROLCHANNEL_H
#define FSDP_RUNTIME_JOB_CONTROLCHANNEL_H

#include "base/Failure.h"
#include "base/WaitCounter.h"
#include "runtime/job/TcpRendezvous.h"

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <poll.h>
#include <thread>
#include <vector>

namespace fsdp::rt {

/// A thread of each rank that serves the connections of its rendezvous. Rank 0 has a connection to
/// every other rank: ranks send failures to rank 0, which prints the first one and sends it to all.
/// A rank whose connection ends, or whose heartbeat is missing, has failed too. The ranks end if
/// rank 0 is lost. The thread also accepts the connections that other ranks open to this one.
class ControlChannel {
public:
  ControlChannel(Rendezvous rendezvous, double timeoutSeconds);
  ~ControlChannel();

  /// Starts the thread, which sends and stores failures of `failure`; that outlives the thread.
  void start(base::Failure &failure);
  /// Returns when the job's failure has been printed: by rank 0, or, if rank 0 does not answer, by
  /// the first rank of this machine that calls report().
  void report();
  /// Announces that this rank is done; returns when all are. Throws Aborted if the job has failed.
  void finish();

  /// The connection between this rank and `peer` that both identify by `id`: the higher rank opens
  /// it, the lower one waits for it. `check` is called several times a second and may throw.
  Socket join(int peer, std::uint64_t id, const std::function<void()> &check, double seconds);

private:
  struct Connection {
    Socket socket;
    int rank = 0;
    double sinceHeartbeat = 0; ///< seconds
    bool done = false;
    std::vector<char> bytes; ///< of a message that has not arrived completely
  };
  struct PendingConnection;

  void run();
  void poll();
  void receiveFrom(Connection &connection);
  /// Handles the complete messages that have arrived; false if one is malformed.
  bool handleMessages(Connection &connection);
  void handleMessage(Connection &connection, const ControlMessage &message);
  void handleEnd(Connection &connection);
  void acceptConnections();
  bool handlePending(PendingConnection &connection);
  /// Sends the job's failure to the other ranks, once.
  void broadcastFailure();
  void finishTogether();
  void send(Connection &connection, ControlMessage::Kind kind, const base::Error *error = nullptr);
  void wake();

  const int rank_;
  const std::vector<PeerInfo> peers_;
  const std::uint64_t nonce_;
  const std::string token_;
  const bool loopbackOnly_;
  const double heartbeatTimeout_;
  Socket listener_, wakeEvent_;
  std::vector<Connection> connections_;
  std::vector<std::unique_ptr<PendingConnection>> pending_;
  std::vector<pollfd> entries_;
  base::Failure *failure_ = nullptr;
  std::atomic<bool> stop_{false}, isFinished_{false}, isFirstRankLost_{false};
  bool isFailureSent_ = false, isDoneSent_ = false, areAllDone_ = false;
  base::WaitCounter failureReported_, jobEnded_; ///< the failure is printed; all ranks are done
  std::mutex mutex_;
  std::map<std::pair<int, std::uint64_t>, Socket> joined_; ///< by rank and id; under mutex_
  base::WaitCounter joinCount_;
  std::thread thread_;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_CONTROLCHANNEL_H
