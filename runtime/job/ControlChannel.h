//===- ControlChannel.h - ranks of several machines hear of each other ------===//
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

/// A thread of each rank over the connections of its rendezvous. Rank 0's has one to every other
/// rank: failures go to it, it prints the first and tells all; a rank whose connection ends, or
/// that gives no sign of life, has failed too. Without rank 0 the others end as well. It also takes
/// the connections that other ranks open to this one.
class ControlChannel {
public:
  ControlChannel(Rendezvous rendezvous, double timeoutSeconds);
  ~ControlChannel();

  /// Starts the thread; failures go to and come from `failure`, which outlives it.
  void start(base::Failure &failure);
  /// Returns when the job's failure has been printed: by rank 0, or, where that does not answer, by
  /// the first on this machine to come here.
  void report();
  /// Tells that this rank is done; returns when all are. Throws Aborted when the job has failed.
  void finish();

  /// The connection between this rank and `peer` that both know by `id`: opened by the higher rank,
  /// awaited by the lower. `check` is called now and then and may throw.
  Socket join(int peer, std::uint64_t id, const std::function<void()> &check, double seconds);

private:
  struct Connection {
    Socket socket;
    int rank = 0;
    double sinceHeartbeat = 0; ///< seconds
    bool done = false;
    std::vector<char> bytes; ///< of a message that has not come whole
  };
  struct PendingConnection;

  void run();
  void poll();
  void receiveFrom(Connection &connection);
  /// Takes the whole messages that have come; false when something else has.
  bool handleMessages(Connection &connection);
  void handleMessage(Connection &connection, const ControlMessage &message);
  void handleEnd(Connection &connection);
  void acceptConnections();
  bool handlePending(PendingConnection &connection);
  /// Passes on the job's failure, once.
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
