#ifdef FSDP_WITH_MPI

#include "base/WaitedTime.h"
#include "runtime/comm/MessageCommunicator.h"

#include <algorithm>
#include <mpi.h>
#include <mutex>
#include <sched.h>
#include <unistd.h>

namespace fsdp::rt {

using namespace base;

namespace {

// MPI counts in int.
constexpr std::size_t kLargestMessage = std::size_t(1) << 30;

// Streams of a rank call MPI one at a time (MPI_THREAD_SERIALIZED), and never block in a call.
std::mutex &oneAtATime() {
  static std::mutex mutex;
  return mutex;
}

void check(int code, const char *call) {
  if (code == MPI_SUCCESS)
    return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(format("%s failed: %s", call, text));
}

class MpiCommunicator final : public MessageCommunicator {
public:
  MpiCommunicator(std::string name, const PeerContext &peer, std::vector<int> group,
                  double timeoutSeconds, int tag)
      : MessageCommunicator(std::move(name), peer, std::move(group), timeoutSeconds), tag_(tag) {
    if (tag != 0) {
      comm_ = MPI_COMM_WORLD;
      return;
    }
    check(MPI_Comm_split(MPI_COMM_WORLD, group_.front(), rank(), &comm_), "MPI_Comm_split");
    check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  }

  ~MpiCommunicator() override {
    // Freeing is collective, so not after a failure of the job nor with messages in progress.
    if (comm_ != MPI_COMM_NULL && !isOfWorld() && underWay_.empty() && !peer_.failure->raised())
      MPI_Comm_free(&comm_);
  }

protected:
  void send(const void *data, std::size_t bytes, int peer) override {
    postParts(bytes, peer, false, [&](std::size_t at, int count, MPI_Request *request) {
      return MPI_Isend(static_cast<const char *>(data) + at, count, MPI_BYTE, rankOf(peer), tag_,
                       comm_, request);
    });
  }

  void receive(void *data, std::size_t bytes, int peer) override {
    postParts(bytes, peer, true, [&](std::size_t at, int count, MPI_Request *request) {
      return MPI_Irecv(static_cast<char *>(data) + at, count, MPI_BYTE, rankOf(peer), tag_, comm_,
                       request);
    });
  }

  void finish(const Request &request) override {
    WaitedTime waited;
    for (int tries = 0;; ++tries) {
      int done = 0;
      {
        std::lock_guard<std::mutex> guard(oneAtATime());
        check(MPI_Testall(static_cast<int>(underWay_.size()), underWay_.data(), &done,
                          MPI_STATUSES_IGNORE),
              "MPI_Testall");
      }
      if (done)
        break;
      // There are more threads than cores: yield, and sleep after some tries.
      if (tries < 100) {
        sched_yield();
        continue;
      }
      usleep(tries < 1000 ? 20 : 200);
      if (tries % 64)
        continue;
      checkWait(waited.look(), request);
    }
    underWay_.clear();
    messages_.clear();
  }

  bool awaits(int peer) override {
    std::lock_guard<std::mutex> guard(oneAtATime());
    for (std::size_t i = 0; i < underWay_.size(); ++i) {
      int done = 1;
      if (messages_[i].incoming && messages_[i].peer == peer && underWay_[i] != MPI_REQUEST_NULL)
        MPI_Test(&underWay_[i], &done, MPI_STATUS_IGNORE);
      if (!done)
        return true;
    }
    return false;
  }

private:
  /// The rank of group rank `peer` in comm_.
  int rankOf(int peer) const { return isOfWorld() ? group_[static_cast<std::size_t>(peer)] : peer; }
  bool isOfWorld() const { return comm_ == MPI_COMM_WORLD; }

  /// Calls `post(offset, bytes, request)` for each message of at most kLargestMessage.
  template <class Post> void postParts(std::size_t bytes, int peer, bool incoming, Post post) {
    for (std::size_t at = 0; at < bytes; at += kLargestMessage) {
      MPI_Request request;
      std::lock_guard<std::mutex> guard(oneAtATime());
      check(post(at, static_cast<int>(std::min(kLargestMessage, bytes - at)), &request),
            incoming ? "MPI_Irecv" : "MPI_Isend");
      underWay_.push_back(request);
      messages_.push_back({peer, incoming});
    }
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  const int tag_;
  struct Message {
    int peer;
    bool incoming;
  };
  std::vector<MPI_Request> underWay_;
  std::vector<Message> messages_; // in addition to underWay_
};

} // namespace

std::unique_ptr<Communicator> mpiCommunicator(std::string name, const PeerContext &peer,
                                              std::vector<int> group, double timeoutSeconds,
                                              int tag) {
  return std::make_unique<MpiCommunicator>(std::move(name), peer, std::move(group), timeoutSeconds,
                                           tag);
}

} // namespace fsdp::rt

#endif // FSDP_WITH_MPI
