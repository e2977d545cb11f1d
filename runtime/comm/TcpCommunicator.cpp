#include "base/WaitedTime.h"
#include "runtime/comm/MessageCommunicator.h"

#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>

namespace fsdp::rt {

using namespace base;

namespace {

// Interval at which a waiting rank checks the state of the others, in seconds.
constexpr double kPollInterval = 0.05;
// Time for the cause of a lost connection to arrive, in seconds.
constexpr double kCauseTimeout = 3;
constexpr int kNone = -1;

/// A connection to each other rank of the group. Messages are moved by the thread that waits for
/// them in finish(), and not in the background.
class TcpCommunicator final : public MessageCommunicator {
public:
  TcpCommunicator(std::string name, const PeerContext &peer, const ConnectToPeer &connect,
                  std::uint64_t id, std::vector<int> group)
      : MessageCommunicator(std::move(name), peer, std::move(group), peer.timeoutSeconds),
        connections_(static_cast<std::size_t>(size())) {
    for (int peer = 0; peer < size(); ++peer)
      if (peer != rank())
        connections_[peer].socket = connect(group_[peer], id, [this] { peer_.check(); }, timeout_);
    entries_.reserve(connections_.size());
  }

  // The peers read the end of the connection after all sent data.
  ~TcpCommunicator() override {
    for (Connection &connection : connections_)
      if (connection.socket)
        shutdown(connection.socket.descriptor(), SHUT_WR);
  }

protected:
  void send(const void *data, std::size_t bytes, int peer) override {
    if (bytes)
      connections_[peer].out.transfers.push_back(
          {const_cast<char *>(static_cast<const char *>(data)), bytes});
  }

  void receive(void *data, std::size_t bytes, int peer) override {
    if (bytes)
      connections_[peer].in.transfers.push_back({static_cast<char *>(data), bytes});
  }

  // Data that a peer does not receive also blocks this rank.
  bool awaits(int peer) override {
    return !connections_[peer].in.empty() || !connections_[peer].out.empty();
  }

  void finish(const Request &request) override {
    double lastCheck = now();
    WaitedTime waited;
    for (;;) {
      const bool moved = move(request);
      entries_.clear();
      for (const Connection &connection : connections_)
        if (!connection.in.empty() || !connection.out.empty())
          entries_.push_back({connection.socket.descriptor(),
                              static_cast<short>((connection.in.empty() ? 0 : POLLIN) |
                                                 (connection.out.empty() ? 0 : POLLOUT)),
                              0});
      if (entries_.empty())
        break;
      if (!moved)
        poll(entries_.data(), entries_.size(), static_cast<int>(kPollInterval * 1e3));
      const double time = now();
      if (moved)
        waited.restart();
      if (time - lastCheck < kPollInterval)
        continue;
      lastCheck = time;
      checkWait(waited.look(), request);
    }
    for (Connection &connection : connections_) {
      connection.in.transfers.clear();
      connection.out.transfers.clear();
      connection.in.next = connection.out.next = 0;
    }
  }

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

  bool move(Connection &connection, Queue &queue, bool outwards, int &fault) {
    bool moved = false;
    while (!queue.empty()) {
      Transfer &transfer = queue.transfers[queue.next];
      const long bytes = outwards ? connection.socket.send(transfer.data, transfer.bytes)
                                  : connection.socket.receive(transfer.data, transfer.bytes);
      if (bytes == Socket::kEnded)
        fault = errno;
      if (bytes <= 0)
        return moved;
      moved = true;
      transfer.data += bytes;
      transfer.bytes -= static_cast<std::size_t>(bytes);
      queue.next += transfer.bytes == 0;
    }
    return moved;
  }

  /// Moves as many bytes as possible without blocking; true if any were.
  bool move(const Request &request) {
    bool moved = false;
    for (int step = 1; step < size(); ++step) {
      const int peer = (rank() + step) % size();
      Connection &connection = connections_[peer];
      int fault = kNone;
      // Data that has arrived is read before the end of the connection is reported.
      moved |= move(connection, connection.in, false, fault);
      moved |= move(connection, connection.out, true, fault);
      if (fault != kNone)
        lost(peer, fault, request);
    }
    return moved;
  }

  /// Handles a lost connection: throws the job's failure if there is one, else an error.
  [[noreturn]]
  void lost(int peer, int reason, const Request &request) {
    for (WaitedTime waited; waited.look() < kCauseTimeout;) {
      checkWait(0, request);
      poll(nullptr, 0, 20);
    }
    const int world = group_[static_cast<std::size_t>(peer)];
    // No rank has failed. A peer that closes with unread data resets the connection.
    const bool ended = reason == 0 || reason == ECONNRESET || reason == EPIPE;
    throw Error(format("waiting in %s for rank %d, which %s", describeCurrent(request).c_str(),
                       world,
                       ended ? "has ended already"
                             : format("is unreachable: %s", std::strerror(reason)).c_str()))
        .byAll();
  }

  std::vector<Connection> connections_; ///< by rank of the group; empty for this rank
  std::vector<pollfd> entries_;
};

} // namespace

std::unique_ptr<Communicator> tcpCommunicator(std::string name, const PeerContext &peer,
                                              const ConnectToPeer &connect, std::uint64_t id,
                                              std::vector<int> group) {
  return std::make_unique<TcpCommunicator>(std::move(name), peer, connect, id, std::move(group));
}

} // namespace fsdp::rt
