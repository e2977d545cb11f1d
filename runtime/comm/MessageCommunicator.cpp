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

bool sums(const Communicator::Request &request) {
  return request.kind == CollectiveKind::ReduceScatter || request.kind == CollectiveKind::AllReduce;
}

/// The transfers of a collective. A rank that sums gets the pieces of all ranks, one after another.
TransferRuns movesOf(const Communicator::Request &request, int ranks, const int *sources) {
  if (!sums(request))
    return TransferRuns(request, ranks, sources);
  const auto all = static_cast<std::size_t>(ranks);
  // Ranks split the dimension that is cut, and join pieces before it.
  const AllToAllLayout exchange{
      1, 1, request.inner, request.local, request.total, request.outer, request.outer * all, false};
  return TransferRuns(
      Communicator::Request::of(CollectiveKind::AllToAll, exchange, 0, request.type), ranks);
}

} // namespace

/// A collective whose messages are under way.
struct MessageCommunicator::Posted {
  const GroupedCollective &member;
  TransferRuns moves;
  char *scratch = nullptr; ///< of scratchFor() bytes: pieces to be summed, then packed messages

  std::size_t element() const { return sizeOf(member.request); }
  char *target() const { return static_cast<char *>(member.target); }
  /// Where the moved elements arrive.
  char *arrived() const { return sums(member.request) ? scratch : target(); }
  std::size_t bytesOfPieces() const {
    return sums(member.request) ? moves.targetCount() * element() : 0;
  }
};

std::size_t MessageCommunicator::scratchFor(const Posted &posted) const {
  std::size_t room = 0;
  for (int peer = 0; peer < size(); ++peer) {
    const OutgoingMessage in = outgoingMessageOf(posted.moves, peer, rank()),
                          out = outgoingMessageOf(posted.moves, rank(), peer);
    room += peer == rank() ? 0 : (in.runs > 1 ? in.count : 0) + (out.runs > 1 ? out.count : 0);
  }
  return (posted.bytesOfPieces() + room * posted.element() + 63) / 64 * 64;
}

// Messages of several runs are packed in scratch memory: first all incoming, then all outgoing
// ones.
void MessageCommunicator::post(const Posted &posted) {
  const TransferRuns &moves = posted.moves;
  const std::size_t element = posted.element();
  const char *from = static_cast<const char *>(posted.member.source);
  char *to = posted.arrived();
  if (moves.hasGaps(rank()))
    std::memset(to, 0, moves.targetCount() * element);

  char *free = posted.scratch + posted.bytesOfPieces();
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

void MessageCommunicator::complete(const Posted &posted, bool padded) {
  const std::size_t element = posted.element();
  char *to = posted.arrived();
  const char *incoming = posted.scratch + posted.bytesOfPieces();
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank() && outgoingMessageOf(posted.moves, peer, rank()).runs > 1)
      posted.moves.forEach(peer, rank(), [&](std::size_t, std::size_t t, std::size_t count) {
        std::memcpy(to + t * element, incoming, count * element);
        incoming += count * element;
      });
  const Request &request = posted.member.request;
  if (!sums(request))
    return;
  const ShardLayout layout = layoutOf(request);
  forEachRun(layout, rank(), [&](std::size_t p, std::size_t, std::size_t count) {
    for (int peer = 0; peer < size(); ++peer)
      sources_[peer] = to + (peer * layout.pieceCount() + p) * element;
    reduceInRankOrder(posted.target() + p * element, sources_.data(), size(), count, request.type,
                      request.op);
  });
  if (padded)
    clearPadding(layout, rank(), posted.target(), element);
}

void MessageCommunicator::performAll(const Request &request, const GroupedCollective *members,
                                     std::size_t count, const int *sources, bool padded) {
  std::array<std::optional<Posted>, limits::kMaxGroupedCollectives> group; // allocates nothing
  std::size_t room = 0;
  for (std::size_t i = 0; i < count; ++i) {
    group[i].emplace(Posted{members[i], movesOf(members[i].request, size(), sources)});
    room += scratchFor(*group[i]);
  }
  char *memory = scratch(room);
  for (std::size_t i = 0; i < count; ++i) {
    group[i]->scratch = std::exchange(memory, memory + scratchFor(*group[i]));
    post(*group[i]);
  }
  finish(request);
  for (std::size_t i = 0; i < count; ++i)
    complete(*group[i], padded);
}

void MessageCommunicator::doGroup(const Request &request, const GroupedCollective *members,
                                  std::size_t count) {
  open(request);
  performAll(request, members, count);
}

void MessageCommunicator::doMove(const void *source, void *target, const Request &request,
                                 const int *sources) {
  open(request);
  const GroupedCollective alone{request, source, target};
  performAll(request, &alone, 1, sources);
}

void MessageCommunicator::doReduceScatter(const void *whole, void *piece, const Request &request) {
  doMove(whole, piece, request, nullptr);
}

void MessageCommunicator::doAllReduce(const void *source, void *target, const Request &request) {
  open(request);
  // Each rank sums a part, then all ranks gather the parts. Sums are per element, so the division
  // changes no bit. The buffers have no padding, so the last parts may be shorter.
  Request parts = request;
  parts.local = (request.total + size() - 1) / size();
  char *mine = static_cast<char *>(target) +
               std::min<std::size_t>(rank() * parts.local, request.total) * sizeOf(request);
  const GroupedCollective sum{parts, source, mine};
  performAll(request, &sum, 1, nullptr, /*padded=*/false);
  parts.kind = Kind::AllGather;
  const GroupedCollective gather{parts, mine, target};
  performAll(request, &gather, 1);
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
