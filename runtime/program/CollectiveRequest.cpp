#include "runtime/program/CollectiveRequest.h"

#include "base/Error.h"

#include <cstring>
#include <type_traits>

namespace fsdp::rt {

using namespace base;

const char *nameOf(CollectiveKind kind) {
  switch (kind) {
#define FSDP_COLLECTIVE(name, Kind, Request)                                                       \
  case CollectiveKind::Kind:                                                                       \
    return #name;
#define FSDP_SEND(name, Kind, Request) FSDP_COLLECTIVE(name, Kind, Request)
#define FSDP_RECEIVE(name, Kind, Request) FSDP_COLLECTIVE(name, Kind, Request)
#include "runtime/program/Collectives.def"
  case CollectiveKind::Barrier:
    return "barrier";
  }
  return "?";
}

bool CollectiveRequest::operator==(const CollectiveRequest &other) const {
  static_assert(std::has_unique_object_representations_v<CollectiveRequest>, "without padding");
  return std::memcmp(this, &other, sizeof other) == 0;
}

CollectiveRequest CollectiveRequest::counterpart(int rank) const {
  CollectiveRequest theirs = *this;
  theirs.kind = kind == Kind::Send ? Kind::Receive : Kind::Send;
  theirs.root = static_cast<std::uint16_t>(rank);
  return theirs;
}

static bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllReduce;
}

std::string CollectiveRequest::describe() const {
  std::string text = nameOf(kind);
  if (kind == Kind::Barrier)
    return text;
  if (kind == Kind::Broadcast)
    return text +
           format(" of %zu bytes from %d", std::size_t(total) * sizeInBytes(type), int(root));
  text += format(" %s %s",
                 !reduces(kind)        ? "of"
                 : op == ReduceOp::Max ? "max"
                                       : "sum",
                 rt::nameOf(type));
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
    return text + format(" x%zu %s rank %d of the group (message %zu)", std::size_t(total),
                         kind == Kind::Send ? "to" : "from", int(root), std::size_t(message));
  text += local == 0 ? format(" x%zu", std::size_t(total))
                     : format(" %zux%zux%zu of %zu", std::size_t(outer), std::size_t(local),
                              std::size_t(inner), std::size_t(total));
  if (root)
    text += format(" with root %d", int(root));
  if (message) // Communicator::performGroup
    text += format(", first of a group of %zu with hash %016zx", std::size_t(message),
                   std::size_t(sources));
  return text;
}

void encode(const SourceRanks &sources, CollectiveRequest &request) {
  const char *name = nameOf(request.kind);
  request.sources = 14695981039346656037u; // FNV-1a
  for (int receiver = 0; receiver < sources.count; ++receiver) {
    const int source = sources.table[receiver];
    if (source < -1 || source >= sources.count)
      throw Error(format("%s got rank %d as the source of rank %d, expected -1..%d", name, source,
                         receiver, sources.count - 1));
    for (int before = 0; before < receiver; ++before)
      if (source >= 0 && sources.table[before] == source)
        throw Error(format("%s got rank %d as the source of ranks %d and %d, expected of one at "
                           "most",
                           name, source, before, receiver));
    request.sources = (request.sources ^ static_cast<std::uint32_t>(source)) * 1099511628211u;
  }
}

static void checkParts(const CollectiveRequest &request, std::size_t local, std::size_t total,
                       int ranks, const char *name) {
  if (local * static_cast<std::size_t>(ranks) < total)
    throw Error(format("%s over '%s' got %zu elements on each of %d ranks, expected at least %zu "
                       "together",
                       nameOf(request.kind), name, local, ranks, total));
}

/// Whether ranks have parts of a dimension, as the request of `kind` is a ShardLayout.
static bool cutsDimension(CollectiveKind kind) {
  switch (kind) {
#define FSDP_COLLECTIVE(name, Kind, Request)                                                       \
  case CollectiveKind::Kind:                                                                       \
    return std::is_base_of_v<ShardLayout, Request>;
#include "runtime/program/Collectives.def"
  default:
    return false;
  }
}

void CollectiveRequest::check(int ranks, const char *name) const {
  if (cutsDimension(kind) || kind == Kind::AllToAll)
    checkParts(*this, local, total, ranks, name);
  if (kind == Kind::AllToAll)
    checkParts(*this, concatLocal, concatTotal, ranks, name);
  if (reduces(kind) && type == DType::Bool)
    throw Error(format("%s got elements of type %s, expected f32, f64, bf16, i32 or i64",
                       rt::nameOf(kind), rt::nameOf(type)));
  if (!isTransfer() && root >= ranks)
    throw Error(format("%s over '%s' got root %d, expected 0..%d", rt::nameOf(kind), name,
                       int(root), ranks - 1));
}

CollectiveRequest CollectiveRequest::transfer(Kind kind, std::size_t count, DType type, int peer,
                                              std::uint64_t message) {
  CollectiveRequest request = of(kind, Root{peer}, count, type);
  request.message = message;
  return request;
}

} // namespace fsdp::rt
