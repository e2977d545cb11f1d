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
  /// Collective over MPI_COMM_WORLD. `group`: the world ranks, this one among them.
  MpiCommunicator(std::string name, const PeerContext &peer, std::vector<int> group,
                  double timeoutSeconds);
  /// Of a sender and a receiver, with messages of `tag`, which is not 0; not collective.
  MpiCommunicator(std::string name, const PeerContext &peer, std::vector<int> group,
                  double timeoutSeconds, int tag);
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

  MPI_Comm comm_ = MPI_COMM_NULL;
  int tag_ = 0;
  struct Message {
    int peer;
    bool incoming;
  };
  std::vector<MPI_Request> underWay_;
  std::vector<Message> messages_; // in addition to underWay_
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_MPICOMMUNICATOR_H
