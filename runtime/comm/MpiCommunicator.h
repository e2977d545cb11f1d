//===- MpiCommunicator.h - messages over MPI ------------------------------===//
//
// Only MpiJob.cpp includes this.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_COMM_MPICOMMUNICATOR_H
#define FSDP_RUNTIME_COMM_MPICOMMUNICATOR_H

#include "runtime/comm/MessageCommunicator.h"

#include <mpi.h>

namespace fsdp::rt {

class MpiCommunicator final : public MessageCommunicator {
public:
  /// `group`: the world ranks, this one among them. Collective over MPI_COMM_WORLD, but for a
  /// sender and a receiver, whose messages have a `tag` other than 0.
  MpiCommunicator(std::string name, const PeerContext &peer, std::vector<int> group,
                  double timeoutSeconds, int tag = 0);
  ~MpiCommunicator() override;

protected:
  void send(const void *data, std::size_t bytes, int peer) override;
  void receive(void *data, std::size_t bytes, int peer) override;
  void finish(const Request &request) override;
  bool awaits(int peer) override;

private:
  /// The rank of group rank `peer` in comm_.
  int rankOf(int peer) const { return isOfWorld() ? group_[static_cast<std::size_t>(peer)] : peer; }
  bool isOfWorld() const { return comm_ == MPI_COMM_WORLD; }

  /// Calls `post(offset, bytes, request)` for each message of at most kLargestMessage.
  template <class Post> void postParts(std::size_t bytes, int peer, bool incoming, Post post);

  MPI_Comm comm_ = MPI_COMM_NULL;
  const int tag_;
  struct Message {
    int peer;
    bool incoming;
  };
  std::vector<MPI_Request> underWay_;
  std::vector<Message> messages_; // in addition to underWay_
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_MPICOMMUNICATOR_H
