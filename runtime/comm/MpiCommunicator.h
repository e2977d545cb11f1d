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
  ~MpiCommunicator() override;

protected:
  void send(const void *data, std::size_t bytes, int peer) override;
  void receive(void *data, std::size_t bytes, int peer) override;
  void finish(const Request &request) override;
  bool awaits(int peer) override;

private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  struct Message {
    int peer;
    bool incoming;
  };
  std::vector<MPI_Request> underWay_;
  std::vector<Message> messages_; // in addition to underWay_
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_MPICOMMUNICATOR_H
