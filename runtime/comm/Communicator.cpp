#include "runtime/comm/Communicator.h"
#include "base/Error.h"
#include "runtime/comm/TransferRuns.h"
#include "runtime/device/FlightTrack.h"

#include <chrono>
#include <cstring>
#include <thread>

namespace fsdp::rt {

using namespace base;

std::string Communicator::describeCurrent(const Request &request) const {
  return format("'%s', collective %lld over '%s'", request.describe().c_str(),
                static_cast<long long>(collectives_), name_.c_str());
}

template <class Collective>
void Communicator::track(const Request &request, Collective collective) {
  ++collectives_;
  const std::uint64_t kept =
      track_ ? track_->begin(FlightAction::Collective, "", name_.c_str(), collectives_, &request)
             : 0;
  collective(); // one that throws stays under way
  if (linkBandwidth_ > 0)
    occupyLink(request);
  if (track_)
    track_->end(kept);
}

void Communicator::occupyLink(const Request &request) const {
  // Bytes that a rank of a ring sends (docs/cost-model.md, collectives).
  double elements = 0;
  switch (request.kind) {
  case Kind::ReduceScatter:
    elements = static_cast<double>(layoutOf(request).wholeCount()) * (size_ - 1) / size_;
    break;
  case Kind::AllReduce:
    elements = static_cast<double>(request.total) * 2 * (size_ - 1) / size_;
    break;
  case Kind::AllGather:
    elements = static_cast<double>(layoutOf(request).pieceCount()) * (size_ - 1);
    break;
  case Kind::AllToAll:
    elements = static_cast<double>(exchangeOf(request).pairCount()) * (size_ - 1);
    break;
  case Kind::Barrier:
    break;
  default:
    elements = static_cast<double>(TransferRuns(request, size_).sourceCount());
  }
  const double bytes = elements * static_cast<double>(sizeInBytes(request.type));
  std::this_thread::sleep_for(std::chrono::duration<double>(bytes / linkBandwidth_));
}

void Communicator::mismatch(const Request &mine, int other, const Request &theirs) const {
  throw Error(format("collectives over '%s' do not match: rank %d of the group called '%s', rank "
                     "%d called '%s', as collective %lld",
                     name_.c_str(), rank_, mine.describe().c_str(), other,
                     theirs.describe().c_str(), static_cast<long long>(collectives_)))
      .byAll();
}

void Communicator::perform(const Request &request, const void *source, void *target,
                           const int *sources) {
  request.check(size_, name_.c_str());
  if (size_ == 1)
    return copy(request, source, target, sources);
  track(request, [&] {
    if (request.kind == Kind::ReduceScatter)
      doReduceScatter(source, target, request);
    else if (request.kind == Kind::AllReduce)
      doAllReduce(source, target, request);
    else
      doMove(source, target, request, sources);
  });
}

namespace {

/// A hash of the requests of a group, not 0.
std::uint64_t hashOf(const GroupedCollective *members, std::size_t count) {
  std::uint64_t hash = count;
  for (const GroupedCollective *member = members; member != members + count; ++member) {
    std::uint64_t words[sizeof member->request / sizeof hash];
    std::memcpy(words, &member->request, sizeof words);
    for (std::uint64_t word : words) {
      hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 29;
    }
  }
  return hash ? hash : 1;
}

} // namespace

void Communicator::performGroup(const GroupedCollective *members, std::size_t count) {
  if (count == 0 || count > limits::kMaxGroupedCollectives)
    throw Error(format("a group over '%s' got %zu collectives, expected 1..%zu; perform the others "
                       "in another group",
                       name_.c_str(), count, limits::kMaxGroupedCollectives));
  const Kind kind = members->request.kind;
  for (std::size_t i = 0; i < count; ++i) {
    members[i].request.check(size_, name_.c_str());
    if (members[i].request.kind != kind || (kind != Kind::AllGather && kind != Kind::ReduceScatter))
      throw Error(format("a group over '%s' got '%s' after '%s', expected only all_gather or only "
                         "reduce_scatter; perform the others apart",
                         name_.c_str(), members[i].request.describe().c_str(),
                         members->request.describe().c_str()));
  }
  if (size_ == 1) {
    for (std::size_t i = 0; i < count; ++i)
      copy(members[i].request, members[i].source, members[i].target, nullptr);
    return;
  }
  Request group = members->request;
  group.message = count;
  group.sources = hashOf(members, count);
  track(group, [&] {
    doGroup(group, members, count);
    for (std::size_t i = 1; i < count && linkBandwidth_ > 0; ++i)
      occupyLink(members[i].request);
  });
}

void Communicator::copy(const Request &request, const void *source, void *target,
                        const int *sources) const {
  const std::size_t element = sizeInBytes(request.type);
  const auto move = [&](std::size_t from, std::size_t to, std::size_t count) {
    if (count)
      std::memmove(static_cast<char *>(target) + to * element,
                   static_cast<const char *>(source) + from * element, count * element);
  };
  if (request.kind == Kind::AllReduce)
    return move(0, 0, request.total);
  if (request.kind == Kind::ReduceScatter) {
    const ShardLayout tile = layoutOf(request);
    forEachRun(tile, 0, [&](std::size_t inPiece, std::size_t inWhole, std::size_t count) {
      move(inWhole, inPiece, count);
    });
    return clearPadding(tile, 0, target, element);
  }
  const TransferRuns moves(request, 1, sources);
  if (moves.hasGaps(0) && moves.targetCount())
    std::memset(target, 0, moves.targetCount() * element);
  moves.forEach(0, 0, move);
}

Communicator::Request Communicator::transfer(Kind kind, std::size_t count, DType type, int peer) {
  if (peer < 0 || peer >= size_ || peer == rank_)
    throw Error(
        format("%s over '%s' on rank %d of the group got peer %d, expected another rank of 0..%d",
               nameOf(kind), name_.c_str(), rank_, peer, size_ - 1));
  std::vector<std::uint64_t> &messages = kind == Kind::Send ? sent_ : received_;
  messages.resize(static_cast<std::size_t>(size_));
  return Request::transfer(kind, count, type, peer, ++messages[static_cast<std::size_t>(peer)]);
}

void Communicator::send(const void *source, std::size_t count, DType type, int peer) {
  const Request request = transfer(Kind::Send, count, type, peer);
  track(request, [&] { doSend(source, request); });
}

void Communicator::receive(void *target, std::size_t count, DType type, int peer) {
  const Request request = transfer(Kind::Receive, count, type, peer);
  track(request, [&] { doReceive(target, request); });
}

void Communicator::barrier() {
  if (size_ == 1)
    return;
  const Request request = Request::of(Kind::Barrier, ShardLayout{0, 0, 0, 0}, 0, DType::Bool);
  track(request, [&] { doBarrier(request); });
}

} // namespace fsdp::rt
