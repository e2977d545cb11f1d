#include "runtime/comm/MessageCommunicator.h"
#include "runtime/device/WaitCounter.h"
#include "runtime/comm/Reduction.h"
#include "runtime/comm/ShardRuns.h"

#include <cstring>

namespace fsdp::rt {

namespace {

std::size_t sizeOf(const Communicator::Request &request) { return sizeInBytes(request.type); }

} // namespace

MessageCommunicator::MessageCommunicator(std::string name, const Job &job, std::vector<int> group,
                                         double timeoutSeconds)
    : Communicator(
          std::move(name),
          static_cast<int>(std::find(group.begin(), group.end(), job.rank()) - group.begin()),
          static_cast<int>(group.size())),
      job_(job), group_(std::move(group)), timeout_(timeoutSeconds), announced_(group_.size()),
      sources_(group_.size()) {}

char *MessageCommunicator::scratch(std::size_t bytes) {
  if (scratch_.size() < bytes)
    scratch_.resize(bytes);
  return scratch_.data();
}

void MessageCommunicator::checkWait(double deadline, const Request &request) {
  job_.failure().check();
  if (job_.leaving())
    throw Aborted("the rank is leaving");
  if (now() > deadline)
    reportAbsent(request);
}

void MessageCommunicator::reportAbsent(const Request &request) {
  std::string late;
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank() && awaits(peer))
      late += (late.empty() ? "" : ", ") + std::to_string(group_[peer]);
  throw Error(format("timed out after %g s in '%s' over '%s', waiting for rank %s (FSDP_TIMEOUT "
                     "sets the timeout in seconds)",
                     timeout_, request.describe().c_str(), name().c_str(), late.c_str()))
      .byAll();
}

void MessageCommunicator::open(const Request &request) {
  announced_[rank()] = request;
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank())
      receive(&announced_[peer], sizeof(Request), peer);
  for (int step = 1; step < size(); ++step)
    send(&announced_[rank()], sizeof(Request), (rank() + step) % size());
  finish(request);
  for (int peer = 0; peer < size(); ++peer)
    if (!(announced_[peer] == request))
      mismatch(request, peer, announced_[peer]);
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

void MessageCommunicator::gather(const void *piece, void *whole, const Request &request) {
  const ShardLayout tile = layoutOf(request);
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
      receive(packed + at, heldBytes(peer), peer);
    at += heldBytes(peer);
  }
  std::size_t offset = mine;
  forEachRun(tile, rank(), [&](std::size_t p, std::size_t, std::size_t count) {
    if (packed + offset != from + p * element)
      std::memcpy(packed + offset, from + p * element, count * element);
    offset += count * element;
  });
  for (int step = 1; step < size(); ++step)
    send(packed + mine, heldBytes(rank()), (rank() + step) % size());
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

void MessageCommunicator::scatter(const void *whole, void *piece, const Request &request, bool padded) {
  const ShardLayout tile = layoutOf(request);
  const std::size_t element = sizeOf(request);
  const char *from = static_cast<const char *>(whole);
  auto heldBytes = [&](int peer) { return tile.outer * tile.held(peer) * tile.inner * element; };

  const bool direct = tile.outer == 1;
  const std::size_t incoming = heldBytes(rank());
  char *received = scratch(incoming * size() + (direct ? 0 : tile.wholeCount() * element));
  char *packed = received + incoming * size();
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank())
      receive(received + incoming * peer, incoming, peer);
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
    send(start, heldBytes(peer), peer);
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

void MessageCommunicator::doAllGather(const void *piece, void *whole, const Request &request) {
  open(request);
  gather(piece, whole, request);
}

void MessageCommunicator::doReduceScatter(const void *whole, void *piece, const Request &request) {
  open(request);
  scatter(whole, piece, request, /*padded=*/true);
}

void MessageCommunicator::doAllReduce(const void *source, void *target, const Request &request) {
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

void MessageCommunicator::doBroadcast(void *buffer, const Request &request) {
  open(request);
  if (rank() != request.root)
    receive(buffer, request.total, request.root);
  else
    for (int step = 1; step < size(); ++step)
      send(buffer, request.total, (rank() + step) % size());
  finish(request);
}

void MessageCommunicator::doBarrier(const Request &request) { open(request); }

} // namespace fsdp::rt
