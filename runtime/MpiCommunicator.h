//===- MpiCommunicator.h - collectives between machines ---------------------===//
//
// Point-to-point messages and this runtime's own rank-order sums: MPI's reductions change their
// order with the size of the message, and theirs would not be the bits of the shared-memory
// backend. Only MpiJob.cpp includes this.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_MPICOMMUNICATOR_H
#define FSDP_RUNTIME_MPICOMMUNICATOR_H

#include "runtime/Bootstrap.h"

#include <mpi.h>
#include <vector>

namespace fsdp::rt {

class MpiCommunicator final : public Communicator {
public:
  /// Collective over MPI_COMM_WORLD. `group`: the world ranks, this one among them.
  MpiCommunicator(std::string name, const Job &job, std::vector<int> group, double timeoutSeconds);
  ~MpiCommunicator() override;

protected:
  void doAllGather(const void *piece, void *whole, const Request &request) override;
  void doReduceScatter(const void *whole, void *piece, const Request &request) override;
  void doAllReduce(const void *source, void *target, const Request &request) override;
  void doBroadcast(void *buffer, const Request &request) override;
  void doBarrier(const Request &request) override;

private:
  /// Tells every peer what this rank is about to do and checks that all do the same.
  void open(const Request &request);
  void gather(const void *piece, void *whole, const Request &request);
  /// `padded`: the piece has room for its padding, which is cleared.
  void scatter(const void *whole, void *piece, const Request &request, bool padded);
  void send(const void *data, std::size_t bytes, int peer, int tag);
  void receive(void *data, std::size_t bytes, int peer, int tag);
  /// Waits until every message under way has arrived, bounded.
  void finish(const Request &request);
  [[noreturn]] void reportAbsent(const Request &request);
  /// Scratch of at least this many bytes; grows in the first step and stays.
  char *scratch(std::size_t bytes);

  const Job &job_;
  std::vector<int> group_;
  double timeout_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  struct Message {
    int peer;
    bool incoming;
  };
  std::vector<MPI_Request> underWay_;
  std::vector<Message> messages_; // beside underWay_
  std::vector<Request> announced_;
  std::vector<const void *> sources_, shifted_;
  std::vector<char> scratch_;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_MPICOMMUNICATOR_H
