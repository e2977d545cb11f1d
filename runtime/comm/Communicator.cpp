#include "runtime/comm/Communicator.h"
#include "base/Error.h"
#include "runtime/comm/TransferRuns.h"
#include "runtime/device/FlightTrack.h"

#include <cstring>

namespace fsdp::rt {

using namespace base;

namespace {

void checkLayout(const Communicator &comm, Communicator::Kind kind, ShardLayout tile) {
  if (tile.local * comm.size() < tile.total)
    throw Error(format("%s over '%s' got %zu elements on each of %d ranks, expected at least %zu "
                       "together",
                       nameOf(kind), comm.name().c_str(), tile.local, comm.size(), tile.total));
}

void checkReducible(Communicator::Kind kind, DType type) {
  if (type == DType::Bool)
    throw Error(format("%s got elements of type %s, expected f32, f64, bf16, i32 or i64",
                       nameOf(kind), nameOf(type)));
}

} // namespace

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
  const TransferRuns moves(request, 1, sources);
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
  move(piece, whole, Request::make(Kind::AllGather, type, ReduceOp::Sum, tile));
}

void Communicator::reduceScatter(const void *whole, void *piece, ShardLayout tile, DType type,
                                 ReduceOp op) {
  checkLayout(*this, Kind::ReduceScatter, tile);
  checkReducible(Kind::ReduceScatter, type);
  if (size_ > 1) {
    const Request request = Request::make(Kind::ReduceScatter, type, op, tile);
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
    const Request request = Request::make(Kind::AllReduce, type, op, ShardLayout{1, 0, 1, count});
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
       Request::make(Kind::Broadcast, DType::Bool, ReduceOp::Sum, ShardLayout{1, 0, 1, bytes},
                     root));
}

void Communicator::allToAll(const void *source, void *target, AllToAllLayout layout, DType type) {
  checkLayout(*this, Kind::AllToAll, layout.split());
  checkLayout(*this, Kind::AllToAll, layout.concat());
  move(source, target, Request::allToAll(layout, type));
}

void Communicator::repartition(const void *source, void *target, RecutLayout layout, DType type) {
  move(source, target, Request::repartition(layout, type));
}

void Communicator::permute(const void *source, void *target, std::size_t count, DType type,
                           const int *sources) {
  move(source, target, Request::permute(count, type, sources, size_), sources);
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
      Request::make(Kind::Barrier, DType::Bool, ReduceOp::Sum, ShardLayout{0, 0, 0, 0});
  perform(request, [&] { doBarrier(request); });
}

} // namespace fsdp::rt
