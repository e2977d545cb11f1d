#include "runtime/comm/Communicator.h"
#include "base/Error.h"
#include "runtime/comm/Moves.h"
#include "runtime/device/FlightTrack.h"

#include <cstring>

namespace fsdp::rt {

using namespace base;

namespace {

const char *kindName(Communicator::Kind kind) {
  switch (kind) {
  case Communicator::Kind::AllGather:
    return "all_gather";
  case Communicator::Kind::ReduceScatter:
    return "reduce_scatter";
  case Communicator::Kind::AllReduce:
    return "all_reduce";
  case Communicator::Kind::Broadcast:
    return "broadcast";
  case Communicator::Kind::AllToAll:
    return "all_to_all";
  case Communicator::Kind::Recut:
    return "recut";
  case Communicator::Kind::Permute:
    return "permute";
  case Communicator::Kind::Barrier:
    return "barrier";
  case Communicator::Kind::Send:
    return "send";
  case Communicator::Kind::Receive:
    return "receive";
  }
  return "?";
}

Communicator::Request makeRequest(Communicator::Kind kind, DType type, ReduceOp op,
                                  ShardLayout tile, int root = 0) {
  Communicator::Request request;
  std::memset(&request, 0, sizeof request);
  request.kind = kind;
  request.type = type;
  request.op = op;
  request.root = static_cast<std::uint16_t>(root);
  request.outer = tile.outer;
  request.local = tile.local;
  request.inner = tile.inner;
  request.total = tile.total;
  return request;
}

void checkLayout(const Communicator &comm, Communicator::Kind kind, ShardLayout tile) {
  if (tile.local * comm.size() < tile.total)
    throw Error(format("%s over '%s' got %zu elements on each of %d ranks, expected at least %zu "
                       "together",
                       kindName(kind), comm.name().c_str(), tile.local, comm.size(), tile.total));
}

void checkReducible(Communicator::Kind kind, DType type) {
  if (type == DType::Bool)
    throw Error(format("%s got elements of type %s, expected f32, f64, bf16, i32 or i64",
                       kindName(kind), nameOf(type)));
}

} // namespace

bool Communicator::Request::operator==(const Request &other) const {
  return kind == other.kind && type == other.type && op == other.op && root == other.root &&
         outer == other.outer && local == other.local && inner == other.inner &&
         total == other.total && middle == other.middle && concatLocal == other.concatLocal &&
         concatTotal == other.concatTotal && splitFirst == other.splitFirst &&
         sources == other.sources && message == other.message;
}

Communicator::Request Communicator::Request::counterpart(int rank) const {
  Request theirs = *this;
  theirs.kind = kind == Kind::Send ? Kind::Receive : Kind::Send;
  theirs.root = static_cast<std::uint16_t>(rank);
  return theirs;
}

std::string Communicator::Request::describe() const {
  std::string text = kindName(kind);
  if (kind == Kind::Barrier)
    return text;
  if (kind == Kind::Broadcast)
    return text + format(" of %zu bytes from %d", std::size_t(total), int(root));
  const bool reduces = kind == Kind::ReduceScatter || kind == Kind::AllReduce;
  text += format(" %s %s", !reduces ? "of" : op == ReduceOp::Max ? "max" : "sum", rt::nameOf(type));
  if (kind == Kind::Permute)
    return text + format(" x%zu by table %016zx", std::size_t(total), std::size_t(sources));
  if (kind == Kind::Recut)
    return text + format(" %zux%zux%zu to %zu", std::size_t(outer), std::size_t(local),
                         std::size_t(inner), std::size_t(total));
  if (kind == Kind::AllToAll) {
    const auto cut = format("%zu of %zu", std::size_t(local), std::size_t(total)),
               joined = format("%zu to %zu", std::size_t(concatLocal), std::size_t(concatTotal));
    return text + format(" %zux(%s)x%zux(%s)x%zu", std::size_t(outer),
                         (splitFirst ? cut : joined).c_str(), std::size_t(middle),
                         (splitFirst ? joined : cut).c_str(), std::size_t(inner));
  }
  if (isTransfer())
    return text + format(" x%zu %s %d (message %zu)", std::size_t(total),
                         kind == Kind::Send ? "to" : "from", int(root), std::size_t(message));
  if (kind == Kind::AllReduce)
    return text + format(" x%zu", std::size_t(total));
  return text + format(" %zux%zux%zu of %zu", std::size_t(outer), std::size_t(local),
                       std::size_t(inner), std::size_t(total));
}

std::string Communicator::describeCurrent(const Request &request) const {
  return format("'%s', collective %lld over '%s'", request.describe().c_str(),
                static_cast<long long>(collectives_), name_.c_str());
}

template <class Collective>
void Communicator::perform(const Request &request, Collective collective) {
  ++collectives_;
  if (!track_)
    return collective();
  const std::uint64_t kept =
      track_->begin(FlightAction::Collective, "", name_.c_str(), collectives_, &request);
  collective(); // one that throws stays under way
  track_->end(kept);
}

void Communicator::mismatch(const Request &mine, int other, const Request &theirs) const {
  throw Error(format("collectives over '%s' do not match: rank %d of the group called '%s', rank "
                     "%d called '%s', as collective %lld",
                     name_.c_str(), rank_, mine.describe().c_str(), other,
                     theirs.describe().c_str(), static_cast<long long>(collectives_)))
      .byAll();
}

void Communicator::move(const void *source, void *target, const Request &request,
                        const int *sources) {
  if (size_ > 1)
    return perform(request, [&] { doMove(source, target, request, sources); });
  const Moves moves(request, 1, sources);
  const std::size_t element = sizeInBytes(request.type);
  if (moves.hasGaps(0) && moves.targetCount())
    std::memset(target, 0, moves.targetCount() * element);
  moves.forEach(0, 0, [&](std::size_t from, std::size_t to, std::size_t count) {
    std::memmove(static_cast<char *>(target) + to * element,
                 static_cast<const char *>(source) + from * element, count * element);
  });
}

void Communicator::allGather(const void *piece, void *whole, ShardLayout tile, DType type) {
  checkLayout(*this, Kind::AllGather, tile);
  move(piece, whole, makeRequest(Kind::AllGather, type, ReduceOp::Sum, tile));
}

void Communicator::reduceScatter(const void *whole, void *piece, ShardLayout tile, DType type,
                                 ReduceOp op) {
  checkLayout(*this, Kind::ReduceScatter, tile);
  checkReducible(Kind::ReduceScatter, type);
  if (size_ > 1) {
    const Request request = makeRequest(Kind::ReduceScatter, type, op, tile);
    return perform(request, [&] { doReduceScatter(whole, piece, request); });
  }
  const std::size_t row = tile.total * tile.inner * sizeInBytes(type);
  const std::size_t stride = tile.local * tile.inner * sizeInBytes(type);
  for (std::size_t o = 0; o < tile.outer && stride; ++o) {
    char *to = static_cast<char *>(piece) + o * stride;
    if (row)
      std::memmove(to, static_cast<const char *>(whole) + o * row, row);
    std::memset(to + row, 0, stride - row);
  }
}

void Communicator::allReduce(const void *source, void *target, std::size_t count, DType type,
                             ReduceOp op) {
  checkReducible(Kind::AllReduce, type);
  if (size_ > 1) {
    const Request request = makeRequest(Kind::AllReduce, type, op, ShardLayout{1, 0, 1, count});
    return perform(request, [&] { doAllReduce(source, target, request); });
  }
  if (count)
    std::memmove(target, source, count * sizeInBytes(type));
}

void Communicator::broadcast(const void *source, void *target, std::size_t bytes, int root) {
  if (root < 0 || root >= size_)
    throw Error(
        format("broadcast over '%s' got root %d, expected 0..%d", name_.c_str(), root, size_ - 1));
  move(source, target,
       makeRequest(Kind::Broadcast, DType::Bool, ReduceOp::Sum, ShardLayout{1, 0, 1, bytes}, root));
}

Communicator::Request Communicator::Request::allToAll(AllToAllLayout layout, DType type) {
  Request request = makeRequest(Kind::AllToAll, type, ReduceOp::Sum,
                                {layout.outer, layout.splitLocal, layout.inner, layout.splitTotal});
  request.middle = layout.middle;
  request.concatLocal = layout.concatLocal;
  request.concatTotal = layout.concatTotal;
  request.splitFirst = layout.splitFirst;
  return request;
}

Communicator::Request Communicator::Request::recut(RecutLayout layout, DType type) {
  return makeRequest(Kind::Recut, type, ReduceOp::Sum,
                     {layout.outer, layout.given, layout.inner, layout.received});
}

Communicator::Request Communicator::Request::permute(std::size_t count, DType type,
                                                     const int *sources, int ranks) {
  Request request = makeRequest(Kind::Permute, type, ReduceOp::Sum, ShardLayout{1, 0, 1, count});
  request.sources = 14695981039346656037u; // FNV-1a
  for (int receiver = 0; receiver < ranks; ++receiver) {
    if (sources[receiver] < -1 || sources[receiver] >= ranks)
      throw Error(format("permute got rank %d as the source of rank %d, expected -1..%d",
                         sources[receiver], receiver, ranks - 1));
    for (int before = 0; before < receiver; ++before)
      if (sources[receiver] >= 0 && sources[before] == sources[receiver])
        throw Error(
            format("permute got rank %d as the source of ranks %d and %d, expected of one at most",
                   sources[receiver], before, receiver));
    request.sources =
        (request.sources ^ static_cast<std::uint32_t>(sources[receiver])) * 1099511628211u;
  }
  return request;
}

Communicator::Request Communicator::Request::transfer(Kind kind, std::size_t count, DType type,
                                                      int peer, std::uint64_t message) {
  Request request = makeRequest(kind, type, ReduceOp::Sum, ShardLayout{1, 0, 1, count}, peer);
  request.message = message;
  return request;
}

void Communicator::allToAll(const void *source, void *target, AllToAllLayout layout, DType type) {
  checkLayout(*this, Kind::AllToAll, layout.split());
  checkLayout(*this, Kind::AllToAll, layout.concat());
  move(source, target, Request::allToAll(layout, type));
}

void Communicator::recut(const void *source, void *target, RecutLayout layout, DType type) {
  move(source, target, Request::recut(layout, type));
}

void Communicator::permute(const void *source, void *target, std::size_t count, DType type,
                           const int *sources) {
  move(source, target, Request::permute(count, type, sources, size_), sources);
}

Communicator::Request Communicator::transfer(Kind kind, std::size_t count, DType type, int peer) {
  if (peer < 0 || peer >= size_ || peer == rank_)
    throw Error(
        format("%s over '%s' on rank %d of the group got peer %d, expected another rank of 0..%d",
               kindName(kind), name_.c_str(), rank_, peer, size_ - 1));
  std::vector<std::uint64_t> &messages = kind == Kind::Send ? sent_ : received_;
  messages.resize(static_cast<std::size_t>(size_));
  return Request::transfer(kind, count, type, peer, ++messages[static_cast<std::size_t>(peer)]);
}

void Communicator::send(const void *source, std::size_t count, DType type, int peer) {
  const Request request = transfer(Kind::Send, count, type, peer);
  perform(request, [&] { doSend(source, request); });
}

void Communicator::receive(void *target, std::size_t count, DType type, int peer) {
  const Request request = transfer(Kind::Receive, count, type, peer);
  perform(request, [&] { doReceive(target, request); });
}

void Communicator::barrier() {
  if (size_ == 1)
    return;
  const Request request =
      makeRequest(Kind::Barrier, DType::Bool, ReduceOp::Sum, ShardLayout{0, 0, 0, 0});
  perform(request, [&] { doBarrier(request); });
}

} // namespace fsdp::rt
