//===- TcpCommunicator.h - messages over connections of its own -------------===//
#ifndef FSDP_RUNTIME_COMM_TCPCOMMUNICATOR_H
#define FSDP_RUNTIME_COMM_TCPCOMMUNICATOR_H

#include "runtime/comm/MessageCommunicator.h"
#include "runtime/comm/Socket.h"

#include <functional>
#include <poll.h>

namespace fsdp::rt {

/// Makes the connection between this rank and world rank `peer` that both know by `id`. Calls
/// `check` now and then, which may throw. Errors: the rank cannot be reached or does not come
/// within `seconds`.
using ConnectToPeer = std::function<Socket(int peer, std::uint64_t id,
                                           const std::function<void()> &check, double seconds)>;

/// A connection to each other rank of the group. Whoever waits for messages moves those under way
/// itself; nothing moves behind its back.
class TcpCommunicator final : public MessageCommunicator {
public:
  /// Opens the connections, which all ranks of the group know by `id`. Errors: a rank that cannot
  /// be reached or does not come in time.
  TcpCommunicator(std::string name, const PeerContext &peer, const ConnectToPeer &connect,
                  std::uint64_t id, std::vector<int> group, double timeoutSeconds);
  ~TcpCommunicator() override;

protected:
  void send(const void *data, std::size_t bytes, int peer) override;
  void receive(void *data, std::size_t bytes, int peer) override;
  void finish(const Request &request) override;
  bool awaits(int peer) override;

private:
  struct Transfer {
    char *data;
    std::size_t bytes;
  };
  /// What is under way in one direction, in order; `next` is the first that has not gone whole.
  struct Queue {
    std::vector<Transfer> transfers;
    std::size_t next = 0;

    bool empty() const { return next == transfers.size(); }
  };
  struct Connection {
    Socket socket;
    Queue out, in;
  };

  /// Moves what can be moved now; true when something was.
  bool move(const Request &request);
  bool move(Connection &connection, Queue &queue, bool outwards, int &fault);
  /// The connection to a rank is gone: the job's failure says why, or this does.
  [[noreturn]] void lost(int peer, int reason, const Request &request);

  std::vector<Connection> connections_; ///< by rank of the group; its own is empty
  std::vector<pollfd> entries_;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_TCPCOMMUNICATOR_H
