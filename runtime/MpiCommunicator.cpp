#ifdef FSDP_WITH_MPI

#include "runtime/MpiCommunicator.h"
#include "runtime/Progress.h"
#include "runtime/Reduction.h"
#include "runtime/Tiling.h"

#include <cstring>
#include <mutex>
#include <sched.h>
#include <unistd.h>

namespace fsdp::rt {

namespace {

constexpr int kAnnounce = 1, kData = 2; // tags
// MPI counts in int.
constexpr std::size_t kLargestMessage = std::size_t(1) << 30;

// Streams of one rank call MPI one at a time (MPI_THREAD_SERIALIZED), and never block inside it.
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

std::size_t sizeOf(const Communicator::Request &request) { return sizeInBytes(request.type); }

} // namespace

MpiCommunicator::MpiCommunicator(std::string name, const Job &job, std::vector<int> group,
                                 double timeoutSeconds)
    : Communicator(
          std::move(name),
          static_cast<int>(std::find(group.begin(), group.end(), job.rank()) - group.begin()),
          static_cast<int>(group.size())),
      job_(job), group_(std::move(group)), timeout_(timeoutSeconds), announced_(group_.size()),
      sources_(group_.size()), shifted_(group_.size()) {
  check(MPI_Comm_split(MPI_COMM_WORLD, group_.front(), rank(), &comm_), "MPI_Comm_split");
  check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

MpiCommunicator::~MpiCommunicator() {
  // Freeing is collective: not when the job is going down, nor with messages under way.
  if (comm_ != MPI_COMM_NULL && underWay_.empty() && !job_.failure().raised())
    MPI_Comm_free(&comm_);
}

char *MpiCommunicator::scratch(std::size_t bytes) {
  if (scratch_.size() < bytes)
    scratch_.resize(bytes);
  return scratch_.data();
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

void MpiCommunicator::send(const void *data, std::size_t bytes, int peer, int tag) {
  for (std::size_t at = 0; at < bytes; at += kLargestMessage) {
    MPI_Request request;
    std::lock_guard<std::mutex> guard(oneAtATime());
    check(MPI_Isend(static_cast<const char *>(data) + at,
                    static_cast<int>(std::min(kLargestMessage, bytes - at)), MPI_BYTE, peer, tag,
                    comm_, &request),
          "MPI_Isend");
    underWay_.push_back(request);
    messages_.push_back({peer, false});
  }
}

void MpiCommunicator::receive(void *data, std::size_t bytes, int peer, int tag) {
  for (std::size_t at = 0; at < bytes; at += kLargestMessage) {
    MPI_Request request;
    std::lock_guard<std::mutex> guard(oneAtATime());
    check(MPI_Irecv(static_cast<char *>(data) + at,
                    static_cast<int>(std::min(kLargestMessage, bytes - at)), MPI_BYTE, peer, tag,
                    comm_, &request),
          "MPI_Irecv");
    underWay_.push_back(request);
    messages_.push_back({peer, true});
  }
}

void MpiCommunicator::finish(const Request &request) {
  const double deadline = now() + timeout_;
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
    // More threads than cores: give the core away, and after a while sleep.
    if (tries < 100) {
      sched_yield();
      continue;
    }
    usleep(tries < 1000 ? 20 : 200);
    if (tries % 64)
      continue;
    job_.failure().check();
    if (job_.leaving())
      throw Aborted("the rank is leaving");
    if (now() > deadline)
      reportAbsent(request);
  }
  underWay_.clear();
  messages_.clear();
}

void MpiCommunicator::reportAbsent(const Request &request) {
  std::string late;
  std::lock_guard<std::mutex> guard(oneAtATime());
  for (std::size_t i = 0; i < underWay_.size(); ++i) {
    int done = 1;
    if (messages_[i].incoming && underWay_[i] != MPI_REQUEST_NULL)
      MPI_Test(&underWay_[i], &done, MPI_STATUS_IGNORE);
    if (!done)
      late += (late.empty() ? "" : ", ") + std::to_string(group_[messages_[i].peer]);
  }
  throw Error(
      format("waited %g s in '%s' over '%s' for rank %s, which did not come (FSDP_TIMEOUT sets "
             "the longest wait in seconds)",
             timeout_, request.describe().c_str(), name().c_str(), late.c_str()))
      .byAll();
}

void MpiCommunicator::open(const Request &request) {
  announced_[rank()] = request;
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank())
      receive(&announced_[peer], sizeof(Request), peer, kAnnounce);
  for (int step = 1; step < size(); ++step)
    send(&announced_[rank()], sizeof(Request), (rank() + step) % size(), kAnnounce);
  finish(request);
  for (int peer = 0; peer < size(); ++peer)
    if (!(announced_[peer] == request))
      mismatch(request, peer, announced_[peer]);
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

void MpiCommunicator::gather(const void *piece, void *whole, const Request &request) {
  const Tile tile = tileOf(request);
  const std::size_t element = sizeOf(request);
  const char *from = static_cast<const char *>(piece);
  char *to = static_cast<char *>(whole);
  auto heldBytes = [&](int peer) { return tile.outer * tile.held(peer) * tile.inner * element; };

  // Where each rank's elements stand back to back: in the result itself when they do so there.
  const bool direct = tile.outer == 1;
  char *packed = direct ? to : scratch(tile.wholeCount() * element);
  std::size_t at = 0, mine = 0;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank())
      mine = at;
    else
      receive(packed + at, heldBytes(peer), peer, kData);
    at += heldBytes(peer);
  }
  std::size_t offset = mine;
  forEachRun(tile, rank(), [&](std::size_t p, std::size_t, std::size_t count) {
    if (packed + offset != from + p * element)
      std::memcpy(packed + offset, from + p * element, count * element);
    offset += count * element;
  });
  for (int step = 1; step < size(); ++step)
    send(packed + mine, heldBytes(rank()), (rank() + step) % size(), kData);
  finish(request);
  if (direct)
    return;
  at = 0;
  for (int peer = 0; peer < size(); ++peer)
    forEachRun(tile, peer, [&](std::size_t, std::size_t w, std::size_t count) {
      std::memcpy(to + w * element, packed + at, count * element);
      at += count * element;
    });
}

void MpiCommunicator::scatter(const void *whole, void *piece, const Request &request, bool padded) {
  const Tile tile = tileOf(request);
  const std::size_t element = sizeOf(request);
  const char *from = static_cast<const char *>(whole);
  auto heldBytes = [&](int peer) { return tile.outer * tile.held(peer) * tile.inner * element; };

  const bool direct = tile.outer == 1;
  const std::size_t incoming = heldBytes(rank());
  char *received = scratch(incoming * size() + (direct ? 0 : tile.wholeCount() * element));
  char *packed = received + incoming * size();
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank())
      receive(received + incoming * peer, incoming, peer, kData);
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank())
      continue;
    const char *start = from + peer * tile.local * tile.inner * element;
    if (!direct) {
      start = packed;
      forEachRun(tile, peer, [&](std::size_t, std::size_t w, std::size_t count) {
        std::memcpy(packed, from + w * element, count * element);
        packed += count * element;
      });
    }
    send(start, heldBytes(peer), peer, kData);
  }
  finish(request);
  std::size_t at = 0;
  forEachRun(tile, rank(), [&](std::size_t p, std::size_t w, std::size_t count) {
    for (int peer = 0; peer < size(); ++peer)
      sources_[peer] = peer == rank() ? from + w * element : received + incoming * peer + at;
    reduceInRankOrder(static_cast<char *>(piece) + p * element, sources_.data(), size(), count,
                      request.type, request.op);
    at += count * element;
  });
  if (padded)
    clearPadding(tile, rank(), piece, element);
}

void MpiCommunicator::doAllGather(const void *piece, void *whole, const Request &request) {
  open(request);
  gather(piece, whole, request);
}

void MpiCommunicator::doReduceScatter(const void *whole, void *piece, const Request &request) {
  open(request);
  scatter(whole, piece, request, /*padded=*/true);
}

void MpiCommunicator::doAllReduce(const void *source, void *target, const Request &request) {
  open(request);
  // Each rank sums a part, then all gather the parts. Sums are per element: the cut changes no bit.
  // The buffers hold no padding, so the last parts are cut to what there is.
  Request parts = request;
  parts.local = (request.total + size() - 1) / size();
  char *mine = static_cast<char *>(target) +
               std::min<std::size_t>(rank() * parts.local, request.total) * sizeOf(request);
  scatter(source, mine, parts, /*padded=*/false);
  gather(mine, target, parts);
}

void MpiCommunicator::doBroadcast(void *buffer, const Request &request) {
  open(request);
  if (rank() != request.root)
    receive(buffer, request.total, request.root, kData);
  else
    for (int step = 1; step < size(); ++step)
      send(buffer, request.total, (rank() + step) % size(), kData);
  finish(request);
}

void MpiCommunicator::doBarrier(const Request &request) { open(request); }

} // namespace fsdp::rt

#endif // FSDP_WITH_MPI
