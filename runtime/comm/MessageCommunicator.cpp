#include "runtime/comm/MessageCommunicator.h"
#include "base/WaitCounter.h"
#include "runtime/comm/Reduction.h"
#include "runtime/comm/TransferRuns.h"

#include <array>
#include <cstring>
#include <optional>
#include <utility>

namespace fsdp::rt {

using namespace base;

namespace {

std::size_t sizeOf(const Communicator::Request &request) { return sizeInBytes(request.type); }

} // namespace

MessageCommunicator::MessageCommunicator(std::string name, const PeerContext &peer,
                                         std::vector<int> group, double timeoutSeconds)
    : Communicator(std::move(name), group, peer.rank), peer_(peer), group_(std::move(group)),
      timeout_(timeoutSeconds), announced_(group_.size()), sources_(group_.size()) {}

char *MessageCommunicator::scratch(std::size_t bytes) {
  if (scratch_.size() < bytes)
    scratch_.resize(bytes);
  return scratch_.data();
}

void MessageCommunicator::checkWait(double waited, const Request &request) {
  peer_.check();
  if (waited > timeout_)
    reportAbsent(request);
}

void MessageCommunicator::reportAbsent(const Request &request) {
  std::string late;
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank() && awaits(peer))
      late += (late.empty() ? "" : ", ") + std::to_string(group_[peer]);
  if (request.kind == Kind::Send) // a send waits for its receiver
    late = std::to_string(group_[request.root]);
  throw Error(
      format(
          "timed out after %g s in %s, waiting for rank %s; --timeout sets the timeout in seconds",
          timeout_, describeCurrent(request).c_str(), late.c_str()))
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

namespace {

/// The elements that one rank sends to another: number, number of runs, and offsets of the first
/// run.
struct OutgoingMessage {
  std::size_t count = 0, runs = 0, from = 0, to = 0;
};

OutgoingMessage outgoingMessageOf(const TransferRuns &moves, int sender, int receiver) {
  OutgoingMessage all;
  moves.forEach(sender, receiver, [&](std::size_t from, std::size_t to, std::size_t count) {
    if (all.runs++ == 0)
      all.from = from, all.to = to;
    all.count += count;
  });
  return all;
}

} // namespace

/// A collective whose messages are under way.
struct MessageCommunicator::Posted {
  Request request;
  const void *source;
  void *target;
  TransferRuns moves; ///< of a gather
  char *scratch = nullptr;

  std::size_t element() const { return sizeOf(request); }
};

std::size_t MessageCommunicator::scratchForMove(const Posted &posted) const {
  std::size_t room = 0;
  for (int peer = 0; peer < size(); ++peer) {
    const OutgoingMessage in = outgoingMessageOf(posted.moves, peer, rank()),
                          out = outgoingMessageOf(posted.moves, rank(), peer);
    room += peer == rank() ? 0 : (in.runs > 1 ? in.count : 0) + (out.runs > 1 ? out.count : 0);
  }
  return room * posted.element();
}

// Messages of several runs are packed in scratch memory: first all incoming, then all outgoing
// ones.
void MessageCommunicator::postMove(const Posted &posted) {
  const TransferRuns &moves = posted.moves;
  const std::size_t element = posted.element();
  const char *from = static_cast<const char *>(posted.source);
  char *to = static_cast<char *>(posted.target);
  if (moves.hasGaps(rank()))
    std::memset(to, 0, moves.targetCount() * element);

  char *free = posted.scratch;
  for (int peer = 0; peer < size(); ++peer) {
    const OutgoingMessage in = outgoingMessageOf(moves, peer, rank());
    if (peer == rank() || !in.runs)
      continue;
    receive(in.runs > 1 ? free : to + in.to * element, in.count * element, peer);
    free += in.runs > 1 ? in.count * element : 0;
  }
  const char *packed = nullptr; // the message to all ranks
  for (int step = 1; step < size(); ++step) {
    const int peer = (rank() + step) % size();
    const OutgoingMessage out = outgoingMessageOf(moves, rank(), peer);
    if (!out.runs)
      continue;
    const char *start = from + out.from * element;
    if (out.runs > 1 && packed) {
      start = packed;
    } else if (out.runs > 1) {
      start = free;
      moves.forEach(rank(), peer, [&](std::size_t f, std::size_t, std::size_t count) {
        std::memcpy(free, from + f * element, count * element);
        free += count * element;
      });
      packed = moves.sendsSame() ? start : nullptr;
    }
    send(start, out.count * element, peer);
  }
  moves.forEach(rank(), rank(), [&](std::size_t f, std::size_t t, std::size_t count) {
    if (to + t * element != from + f * element)
      std::memcpy(to + t * element, from + f * element, count * element);
  });
}

void MessageCommunicator::completeMove(const Posted &posted) {
  const std::size_t element = posted.element();
  char *to = static_cast<char *>(posted.target);
  const char *incoming = posted.scratch;
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank() && outgoingMessageOf(posted.moves, peer, rank()).runs > 1)
      posted.moves.forEach(peer, rank(), [&](std::size_t, std::size_t t, std::size_t count) {
        std::memcpy(to + t * element, incoming, count * element);
        incoming += count * element;
      });
}

/// Bytes of the part of `peer` that hold elements.
static std::size_t heldBytes(const Communicator::Request &request, int peer) {
  const ShardLayout layout = layoutOf(request);
  return layout.outer * layout.held(peer) * layout.inner * sizeOf(request);
}

std::size_t MessageCommunicator::scratchForScatter(const Posted &posted) const {
  const ShardLayout layout = layoutOf(posted.request);
  return heldBytes(posted.request, rank()) * static_cast<std::size_t>(size()) +
         (layout.outer == 1 ? 0 : layout.wholeCount() * posted.element());
}

void MessageCommunicator::postScatter(const Posted &posted) {
  const ShardLayout layout = layoutOf(posted.request);
  const std::size_t element = posted.element(), incoming = heldBytes(posted.request, rank());
  const char *from = static_cast<const char *>(posted.source);
  char *packed = posted.scratch + incoming * size();
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank())
      receive(posted.scratch + incoming * peer, incoming, peer);
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank())
      continue;
    const char *start = from + peer * layout.local * layout.inner * element;
    if (layout.outer != 1) {
      start = packed;
      forEachRun(layout, peer, [&](std::size_t, std::size_t w, std::size_t count) {
        std::memcpy(packed, from + w * element, count * element);
        packed += count * element;
      });
    }
    send(start, heldBytes(posted.request, peer), peer);
  }
}

void MessageCommunicator::completeScatter(const Posted &posted, bool padded) {
  const ShardLayout layout = layoutOf(posted.request);
  const std::size_t element = posted.element(), incoming = heldBytes(posted.request, rank());
  const char *from = static_cast<const char *>(posted.source);
  char *piece = static_cast<char *>(posted.target);
  std::size_t at = 0;
  forEachRun(layout, rank(), [&](std::size_t p, std::size_t w, std::size_t count) {
    for (int peer = 0; peer < size(); ++peer)
      sources_[peer] = peer == rank() ? from + w * element : posted.scratch + incoming * peer + at;
    reduceInRankOrder(piece + p * element, sources_.data(), size(), count, posted.request.type,
                      posted.request.op);
    at += count * element;
  });
  if (padded)
    clearPadding(layout, rank(), piece, element);
}

void MessageCommunicator::move(const void *source, void *target, const TransferRuns &moves,
                               const Request &request) {
  Posted posted{request, source, target, moves};
  posted.scratch = scratch(scratchForMove(posted));
  postMove(posted);
  finish(request);
  completeMove(posted);
}

void MessageCommunicator::scatter(const void *whole, void *piece, const Request &request,
                                  bool padded) {
  Posted posted{request, whole, piece, TransferRuns(request, size())};
  posted.scratch = scratch(scratchForScatter(posted));
  postScatter(posted);
  finish(request);
  completeScatter(posted, padded);
}

void MessageCommunicator::doGroup(const Request &request, const GroupedCollective *members,
                                  std::size_t count) {
  open(request);
  const bool moves = request.kind == Kind::AllGather;
  std::array<std::optional<Posted>, limits::kMaxGroupedCollectives> group; // allocates nothing
  const auto scratchOf = [&](const Posted &posted) {
    return ((moves ? scratchForMove(posted) : scratchForScatter(posted)) + 63) / 64 * 64;
  };
  std::size_t room = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Request &own = members[i].request;
    group[i].emplace(Posted{own, members[i].source, members[i].target, TransferRuns(own, size())});
    room += scratchOf(*group[i]);
  }
  char *memory = scratch(room);
  for (std::size_t i = 0; i < count; ++i) {
    group[i]->scratch = std::exchange(memory, memory + scratchOf(*group[i]));
    moves ? postMove(*group[i]) : postScatter(*group[i]);
  }
  finish(request);
  for (std::size_t i = 0; i < count; ++i)
    moves ? completeMove(*group[i]) : completeScatter(*group[i], /*padded=*/true);
}

void MessageCommunicator::doMove(const void *source, void *target, const Request &request,
                                 const int *sources) {
  open(request);
  move(source, target, TransferRuns(request, size(), sources), request);
}

void MessageCommunicator::doReduceScatter(const void *whole, void *piece, const Request &request) {
  open(request);
  scatter(whole, piece, request, /*padded=*/true);
}

void MessageCommunicator::doAllReduce(const void *source, void *target, const Request &request) {
  open(request);
  // Each rank sums a part, then all ranks gather the parts. Sums are per element, so the division
  // changes no bit. The buffers have no padding, so the last parts may be shorter.
  Request parts = request;
  parts.local = (request.total + size() - 1) / size();
  char *mine = static_cast<char *>(target) +
               std::min<std::size_t>(rank() * parts.local, request.total) * sizeOf(request);
  scatter(source, mine, parts, /*padded=*/false);
  parts.kind = Kind::AllGather;
  move(mine, target, TransferRuns(parts, size()), request);
}

void MessageCommunicator::doBarrier(const Request &request) { open(request); }

// The request is sent before the data.
void MessageCommunicator::doSend(const void *source, const Request &request) {
  announced_[rank()] = request;
  send(&announced_[rank()], sizeof(Request), request.root);
  send(source, request.total * sizeOf(request), request.root);
  finish(request);
}

void MessageCommunicator::doReceive(void *target, const Request &request) {
  receive(&announced_[request.root], sizeof(Request), request.root);
  finish(request);
  if (!(announced_[request.root] == request.counterpart(rank())))
    mismatch(request, request.root, announced_[request.root]);
  receive(target, request.total * sizeOf(request), request.root);
  finish(request);
}

} // namespace fsdp::rt
