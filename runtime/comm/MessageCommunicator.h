//===- MessageCommunicator.h - collectives by messages --------------------===//
//
// Collectives of ranks that share no memory: point-to-point messages and this runtime's sums in
// rank order. Reductions of libraries change their order with the size of the message, so their
// results would not be bitwise equal to those of the shared-memory backend.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_COMM_MESSAGECOMMUNICATOR_H
#define FSDP_RUNTIME_COMM_MESSAGECOMMUNICATOR_H

#include "runtime/comm/Communicator.h"
#include "runtime/comm/PeerContext.h"
#include "runtime/comm/Socket.h"

#include <functional>
#include <memory>
#include <vector>

namespace fsdp::rt {

/// A backend implements the messages, which arrive between two ranks in the order in which they
/// were sent.
class MessageCommunicator : public Communicator {
protected:
  /// `group`: the world ranks, this one among them.
  MessageCommunicator(std::string name, const PeerContext &peer, std::vector<int> group,
                      double timeoutSeconds);

  /// Starts to send, or to receive, `bytes` to or from group rank `peer`, not this rank. The memory
  /// must not change until finish().
  virtual void send(const void *data, std::size_t bytes, int peer) = 0;
  virtual void receive(void *data, std::size_t bytes, int peer) = 0;
  /// Waits until every message has arrived; calls checkWait() several times a second.
  virtual void finish(const Request &request) = 0;
  /// Whether a message from group rank `peer` has not arrived.
  virtual bool awaits(int peer) = 0;

  /// Throws if the job has failed, this rank is closing, or `waited`, in seconds, exceeds the
  /// timeout.
  void checkWait(double waited, const Request &request);

  void doMove(const void *source, void *target, const Request &request,
              const int *sources) override;
  void doReduceScatter(const void *whole, void *piece, const Request &request) override;
  void doGroup(const Request &request, const GroupedCollective *members,
               std::size_t count) override;
  void doAllReduce(const void *source, void *target, const Request &request) override;
  void doBarrier(const Request &request) override;
  void doSend(const void *source, const Request &request) override;
  void doReceive(void *target, const Request &request) override;

  const PeerContext &peer_;
  const std::vector<int> group_;
  const double timeout_;

private:
  /// Sends this rank's request to every peer and checks that all requests are equal.
  void open(const Request &request);
  struct Posted;
  /// Bytes of scratch memory of a collective; its messages; unpacking and sums after their arrival.
  std::size_t scratchFor(const Posted &posted) const;
  void post(const Posted &posted);
  /// `padded`: the piece of a sum has room for its padding, which is cleared.
  void complete(const Posted &posted, bool padded);
  /// Performs collectives whose messages are under way at once; `request` is named in errors.
  void performAll(const Request &request, const GroupedCollective *members, std::size_t count,
                  const int *sources = nullptr, bool padded = true);
  [[noreturn]] void reportAbsent(const Request &request);
  /// Scratch memory of at least this many bytes, which grows in the first step.
  char *scratch(std::size_t bytes);

  std::vector<Request> announced_;
  std::vector<const void *> sources_;
  std::vector<char> scratch_;
};

/// Makes the connection between this rank and world rank `peer` that both identify by `id`. Calls
/// `check` several times a second, which may throw. Errors: the rank cannot be reached or does not
/// connect within `seconds`.
using ConnectToPeer = std::function<Socket(int peer, std::uint64_t id,
                                           const std::function<void()> &check, double seconds)>;

/// Messages over TCP. Opens the connections, which all ranks of the group identify by `id`. Errors:
/// a rank cannot be reached or does not connect in time.
std::unique_ptr<Communicator> tcpCommunicator(std::string name, const PeerContext &peer,
                                              const ConnectToPeer &connect, std::uint64_t id,
                                              std::vector<int> group);

/// Messages over MPI, if the runtime was built with it. Collective over MPI_COMM_WORLD, but for a
/// sender and a receiver, whose messages have a `tag` other than 0.
std::unique_ptr<Communicator> mpiCommunicator(std::string name, const PeerContext &peer,
                                              std::vector<int> group, double timeoutSeconds,
                                              int tag = 0);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_MESSAGECOMMUNICATOR_H
