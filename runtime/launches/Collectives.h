//===- Collectives.h - collectives as launches ------------------------------===//
//
// For each row of Collectives.def `name(c, stream, "action", over, Request{...}, source, target)`.
// A group of them, over which the ranks meet once: `collective_group(c, stream, "action", over,
// name(Request{...}, source, target)...)`. As runtime/launches/Kernels.h for all targets.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_LAUNCHES_COLLECTIVES_H
#define FSDP_RUNTIME_LAUNCHES_COLLECTIVES_H

#include "runtime/program/CollectiveGroup.h"

#include <array>
#include <tuple>
#include <utility>

namespace fsdp::rt {

/// A collective of a group.
template <class T> struct GroupMember {
  CollectiveKind kind;
  ShardLayout layout;
  ArenaSpan<T> source, target;
};
template <class T>
GroupMember<T> all_gather(ShardLayout layout, ArenaSpan<T> source, ArenaSpan<T> target) {
  return {CollectiveKind::AllGather, layout, source, target};
}
template <class T>
GroupMember<T> reduce_scatter(ShardLayout layout, ArenaSpan<T> source, ArenaSpan<T> target) {
  return {CollectiveKind::ReduceScatter, layout, source, target};
}

namespace detail {
/// `p`: the sources, the targets, and the stream of a device.
template <class... T, class Comm, std::size_t... I, class... P>
auto performMembers(Comm &comm, CollectiveKind kind,
                    const std::array<ShardLayout, sizeof...(T)> &layouts, std::index_sequence<I...>,
                    std::tuple<P...> p) {
  constexpr std::size_t n = sizeof...(T);
  const std::array<GroupedCollective, n> members = {
      {{CollectiveRequest::of(kind, layouts[I], layouts[I].total, dtypeOf<T>), std::get<I>(p),
        std::get<n + I>(p)}...}};
  if constexpr (sizeof...(P) == 2 * n)
    return performGroup(comm, members);
  else
    return performGroup(comm, members, std::get<2 * n>(p));
}
} // namespace detail

/// All collectives of one kind.
template <class... T>
void collective_group(Context &c, int stream, ActionName action, int over,
                      GroupMember<T>... members) {
  static_assert(sizeof...(T) <= limits::kMaxGroupedCollectives, "too many collectives of a group");
  const CollectiveKind kind = std::get<0>(std::make_tuple(members...)).kind;
  launchCollective(
      c, stream, action, kind == CollectiveKind::AllGather ? "all_gather" : "reduce_scatter", over,
      reads(members.source...), writes(members.target...),
      [kind, layouts = std::array<ShardLayout, sizeof...(T)>{{members.layout...}}](auto &&comm,
                                                                                   auto... p) {
        return detail::performMembers<T...>(comm, kind, layouts, std::index_sequence_for<T...>(),
                                            std::make_tuple(p...));
      });
}

#define FSDP_COLLECTIVE(name, Kind, Request)                                                       \
  template <class T>                                                                               \
  void name(Context &c, int stream, ActionName action, int over, Request request,                  \
            ArenaSpan<T> source, ArenaSpan<T> target) {                                            \
    launchCollective(c, stream, action, #name, over, reads(source), writes(target),                \
                     [request, count = source.count](auto &&comm, auto... p) {                     \
                       return perform(comm, CollectiveKind::Kind, request, count, p...);           \
                     });                                                                           \
  }
#define FSDP_TRANSFER(name, Request, read, written)                                                \
  template <class T>                                                                               \
  void name(Context &c, int stream, ActionName action, int over, Request request,                  \
            ArenaSpan<T> buffer) {                                                                 \
    launchCollective(c, stream, action, #name, over, read, written,                                \
                     [request, count = buffer.count](auto &&comm, auto... p) {                     \
                       return name(comm, request, count, p...);                                    \
                     });                                                                           \
  }
#define FSDP_SEND(name, Kind, Request) FSDP_TRANSFER(name, Request, reads(buffer), writes())
#define FSDP_RECEIVE(name, Kind, Request) FSDP_TRANSFER(name, Request, reads(), writes(buffer))
#include "runtime/program/Collectives.def"
#undef FSDP_TRANSFER

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCHES_COLLECTIVES_H
