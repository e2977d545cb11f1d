#include "runtime/comm/Communicator.h"
#include "runtime/Error.h"

#include <cstring>

namespace fsdp::rt {

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
  case Communicator::Kind::Barrier:
    return "barrier";
  }
  return "?";
}

Communicator::Request makeRequest(Communicator::Kind kind, DType type, ReduceOp op, ShardLayout tile,
                                  int root = 0) {
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
         total == other.total;
}

std::string Communicator::Request::describe() const {
  std::string text = kindName(kind);
  if (kind == Kind::Barrier)
    return text;
  if (kind == Kind::Broadcast)
    return text + format(" of %zu bytes from %d", std::size_t(total), int(root));
  text += format(" %s %s",
                 op == ReduceOp::Max       ? "max"
                 : kind == Kind::AllGather ? "of"
                                           : "sum",
                 rt::nameOf(type));
  if (kind == Kind::AllReduce)
    return text + format(" x%zu", std::size_t(total));
  return text + format(" %zux%zux%zu of %zu", std::size_t(outer), std::size_t(local),
                       std::size_t(inner), std::size_t(total));
}

void Communicator::mismatch(const Request &mine, int other, const Request &theirs) const {
  throw Error(format("collectives over '%s' do not match: rank %d of the group called '%s', rank "
                     "%d called '%s'",
                     name_.c_str(), rank_, mine.describe().c_str(), other,
                     theirs.describe().c_str()))
      .byAll();
}

void Communicator::allGather(const void *piece, void *whole, ShardLayout tile, DType type) {
  checkLayout(*this, Kind::AllGather, tile);
  if (size_ > 1)
    return doAllGather(piece, whole, makeRequest(Kind::AllGather, type, ReduceOp::Sum, tile));
  const std::size_t row = tile.total * tile.inner * sizeInBytes(type);
  const std::size_t stride = tile.local * tile.inner * sizeInBytes(type);
  for (std::size_t o = 0; o < tile.outer && row; ++o)
    std::memmove(static_cast<char *>(whole) + o * row,
                 static_cast<const char *>(piece) + o * stride, row);
}

void Communicator::reduceScatter(const void *whole, void *piece, ShardLayout tile, DType type,
                                 ReduceOp op) {
  checkLayout(*this, Kind::ReduceScatter, tile);
  checkReducible(Kind::ReduceScatter, type);
  if (size_ > 1)
    return doReduceScatter(whole, piece, makeRequest(Kind::ReduceScatter, type, op, tile));
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
  if (size_ > 1)
    return doAllReduce(source, target,
                       makeRequest(Kind::AllReduce, type, op, ShardLayout{1, 0, 1, count}));
  if (count)
    std::memmove(target, source, count * sizeInBytes(type));
}

void Communicator::broadcast(void *buffer, std::size_t bytes, int root) {
  if (root < 0 || root >= size_)
    throw Error(
        format("broadcast over '%s' got root %d, expected 0..%d", name_.c_str(), root, size_ - 1));
  if (size_ > 1)
    doBroadcast(buffer, makeRequest(Kind::Broadcast, DType::Bool, ReduceOp::Sum,
                                    ShardLayout{1, 0, 1, bytes}, root));
}

void Communicator::barrier() {
  if (size_ > 1)
    doBarrier(makeRequest(Kind::Barrier, DType::Bool, ReduceOp::Sum, ShardLayout{0, 0, 0, 0}));
}

} // namespace fsdp::rt
