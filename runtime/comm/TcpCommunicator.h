//===- TcpCommunicator.h - messages over TCP ------------------------------===//
#ifndef FSDP_RUNTIME_COMM_TCPCOMMUNICATOR_H
#define FSDP_RUNTIME_COMM_TCPCOMMUNICATOR_H

#include "runtime/comm/MessageCommunicator.h"
#include "runtime/comm/Socket.h"

#include <functional>
#include <poll.h>

namespace fsdp::rt {

/// Makes the connection between this rank and world rank `peer` that both identify by `id`. Calls
/// `check` several times a second, which may throw. Errors: the rank cannot be reached or does not
/// connect within `seconds`.
using ConnectToPeer = std::function<Socket(int peer, std::uint64_t id,
                                           const std::function<void()> &check, double seconds)>;

/// A connection to each other rank of the group. Messages are moved by the thread that waits for
/// them in finish(), and not in the background.
class TcpCommunicator final : public MessageCommunicator {
public:
  /// Opens the connections, which all ranks of the group identify by `id`. Errors: a rank cannot be
  /// reached or does not connect in time.
  TcpCommunicator(std::string name, const PeerContext &peer, const ConnectToPeer &connect,
                  std::uint64_t id, std::vector<int> group);
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
  /// The transfers in one direction, in order; `next` is the first that is not complete.
  struct Queue {
    std::vector<Transfer> transfers;
    std::size_t next = 0;

    bool empty() const { return next == transfers.size(); }
  };
  struct Connection {
    Socket socket;
    Queue out, in;
  };

  /// Moves as many bytes as possible without blocking; true if any were.
  bool move(const Request &request);
  bool move(Connection &connection, Queue &queue, bool outwards, int &fault);
  /// Handles a lost connection: throws the job's failure if there is one, else an error.
  [[noreturn]] void lost(int peer, int reason, const Request &request);

  std::vector<Connection> connections_; ///< by rank of the group; empty for this rank
  std::vector<pollfd> entries_;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_TCPCOMMUNICATOR_H
