#include "runtime/program/CollectiveRequest.h"

#include "base/Error.h"

#include <cstring>

namespace fsdp::rt {

using namespace base;

const char *nameOf(CollectiveKind kind) {
  switch (kind) {
  case CollectiveKind::AllGather:
    return "all_gather";
  case CollectiveKind::ReduceScatter:
    return "reduce_scatter";
  case CollectiveKind::AllReduce:
    return "all_reduce";
  case CollectiveKind::Broadcast:
    return "broadcast";
  case CollectiveKind::AllToAll:
    return "all_to_all";
  case CollectiveKind::Repartition:
    return "repartition";
  case CollectiveKind::Permute:
    return "permute";
  case CollectiveKind::Barrier:
    return "barrier";
  case CollectiveKind::Send:
    return "send";
  case CollectiveKind::Receive:
    return "receive";
  }
  return "?";
}

CollectiveRequest CollectiveRequest::make(Kind kind, DType type, ReduceOp op, ShardLayout tile,
                                          int root) {
  CollectiveRequest request;
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

bool CollectiveRequest::operator==(const CollectiveRequest &other) const {
  return kind == other.kind && type == other.type && op == other.op && root == other.root &&
         outer == other.outer && local == other.local && inner == other.inner &&
         total == other.total && middle == other.middle && concatLocal == other.concatLocal &&
         concatTotal == other.concatTotal && splitFirst == other.splitFirst &&
         sources == other.sources && message == other.message;
}

CollectiveRequest CollectiveRequest::counterpart(int rank) const {
  CollectiveRequest theirs = *this;
  theirs.kind = kind == Kind::Send ? Kind::Receive : Kind::Send;
  theirs.root = static_cast<std::uint16_t>(rank);
  return theirs;
}

std::string CollectiveRequest::describe() const {
  std::string text = nameOf(kind);
  if (kind == Kind::Barrier)
    return text;
  if (kind == Kind::Broadcast)
    return text + format(" of %zu bytes from %d", std::size_t(total), int(root));
  const bool reduces = kind == Kind::ReduceScatter || kind == Kind::AllReduce;
  text += format(" %s %s", !reduces ? "of" : op == ReduceOp::Max ? "max" : "sum", rt::nameOf(type));
  if (kind == Kind::Permute)
    return text + format(" x%zu by table %016zx", std::size_t(total), std::size_t(sources));
  if (kind == Kind::Repartition)
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

CollectiveRequest CollectiveRequest::allToAll(AllToAllLayout layout, DType type) {
  CollectiveRequest request =
      make(Kind::AllToAll, type, ReduceOp::Sum,
           {layout.outer, layout.splitLocal, layout.inner, layout.splitTotal});
  request.middle = layout.middle;
  request.concatLocal = layout.concatLocal;
  request.concatTotal = layout.concatTotal;
  request.splitFirst = layout.splitFirst;
  return request;
}

CollectiveRequest CollectiveRequest::repartition(RecutLayout layout, DType type) {
  return make(Kind::Repartition, type, ReduceOp::Sum,
              {layout.outer, layout.given, layout.inner, layout.received});
}

CollectiveRequest CollectiveRequest::permute(std::size_t count, DType type, const int *sources,
                                             int ranks) {
  CollectiveRequest request = make(Kind::Permute, type, ReduceOp::Sum, ShardLayout{1, 0, 1, count});
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

CollectiveRequest CollectiveRequest::transfer(Kind kind, std::size_t count, DType type, int peer,
                                              std::uint64_t message) {
  CollectiveRequest request = make(kind, type, ReduceOp::Sum, ShardLayout{1, 0, 1, count}, peer);
  request.message = message;
  return request;
}

} // namespace fsdp::rt
