//===- CollectiveRequest.h - requests for collectives -----------*- C++ -*-===//

#ifndef FSDP_RUNTIME_PROGRAM_COLLECTIVEREQUEST_H
#define FSDP_RUNTIME_PROGRAM_COLLECTIVEREQUEST_H

#include "runtime/program/ArenaSpan.h"
#include "runtime/program/ShardLayout.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace fsdp::rt {

//===----------------------------------------------------------------------===//
// Requests of programs, see Collectives.def
//===----------------------------------------------------------------------===//

/// A value whose split moves from one dimension to another. Each rank holds `concatLocal` of
/// `concatTotal` indices of one dimension and all `splitTotal` of the other; it gets all of the one
/// and `splitLocal` of the other. The elements and the padding of a rank's part are as in
/// ShardLayout for both. In memory, the source is
///   outer x splitTotal x middle x concatLocal x inner   where `splitFirst`, else
///   outer x concatLocal x middle x splitTotal x inner
/// and the target has splitLocal and concatTotal in the same places.
struct AllToAllLayout {
  std::size_t outer = 1, middle = 1, inner = 1;
  std::size_t splitLocal = 0, splitTotal = 0, concatLocal = 0, concatTotal = 0;
  bool splitFirst = true;

  constexpr std::size_t sourceCount() const {
    return outer * splitTotal * middle * concatLocal * inner;
  }
  constexpr std::size_t targetCount() const {
    return outer * splitLocal * middle * concatTotal * inner;
  }
  /// Data that one rank sends to another one.
  constexpr std::size_t pairCount() const {
    return outer * splitLocal * middle * concatLocal * inner;
  }
  /// How a rank splits its data for the ranks to which it sends.
  constexpr ShardLayout split() const {
    return splitFirst ? ShardLayout{outer, splitLocal, middle * concatLocal * inner, splitTotal}
                      : ShardLayout{outer * concatLocal * middle, splitLocal, inner, splitTotal};
  }
  /// How it joins the data that it receives from them.
  constexpr ShardLayout concat() const {
    return splitFirst ? ShardLayout{outer * splitLocal * middle, concatLocal, inner, concatTotal}
                      : ShardLayout{outer, concatLocal, middle * splitLocal * inner, concatTotal};
  }
};

/// A dimension whose parts change their size: rank r holds indices [r*given, (r+1)*given) and gets
/// [r*received, (r+1)*received), zeros where no rank holds any. Both are `outer x part x inner` in
/// memory.
struct RepartitionLayout {
  std::size_t outer = 1, given = 0, inner = 1, received = 0;
};

/// From which rank of the group each of its `count` ranks receives, -1 from none; no rank is there
/// twice. Read until the call returns.
struct SourceRanks {
  const int *table;
  int count;

  template <int... From> static constexpr SourceRanks of() {
    return {Table<From...>::ranks, sizeof...(From)};
  }

private:
  template <int... From> struct Table {
    static constexpr int ranks[sizeof...(From)] = {From...};
  };
};

/// The rank of the group whose data every rank receives.
struct Root {
  int rank;
};

/// The rank `offset` further in the group.
struct Peer {
  int offset;
};

//===----------------------------------------------------------------------===//
// Compared between ranks
//===----------------------------------------------------------------------===//

enum class CollectiveKind : std::uint32_t {
#define FSDP_COLLECTIVE(name, Kind, Request) Kind,
#define FSDP_SEND(name, Kind, Request) Kind,
#define FSDP_RECEIVE(name, Kind, Request) Kind,
#include "runtime/program/Collectives.def"
  Barrier, ///< only the host requests one
};

/// The name of the op: "all_gather".
const char *nameOf(CollectiveKind kind);

/// Kind of collective, and everything that must be the same on every rank of the group. Plain data
/// that ranks send to one another.
struct CollectiveRequest {
  using Kind = CollectiveKind;

  Kind kind;
  DType type;
  ReduceOp op;
  std::uint16_t root; ///< send, receive: the peer
  /// The cut dimension. all_reduce, broadcast, permute, send, receive: total only; repartition:
  /// local is given, total received; all_to_all: of `split`.
  std::uint64_t outer, local, inner, total;
  std::uint64_t middle, concatLocal, concatTotal, splitFirst; ///< all_to_all
  std::uint64_t sources;                                      ///< permute: a hash of the table
  std::uint64_t message; ///< send, receive: number, from 1, of those from the one rank to the other

  static CollectiveRequest transfer(Kind kind, std::size_t count, DType type, int peer,
                                    std::uint64_t message);
  /// The request of `kind` (Collectives.def) for which a rank has `count` elements of the
  /// source.
  template <class Asked>
  static CollectiveRequest of(Kind kind, const Asked &asked, std::size_t count, DType type) {
    CollectiveRequest request{kind, type, ReduceOp::Sum, 0, 1, 0, 1, count, 0, 0, 0, 0, 0, 0};
    encode(asked, request);
    return request;
  }

  /// Throws its errors in the group `name` of `ranks` ranks.
  void check(int ranks, const char *name) const;
  bool isTransfer() const { return kind == Kind::Send || kind == Kind::Receive; }

  /// Of a send or a receive: the request of the peer, which is group rank `root`, where this rank
  /// is `rank`.
  CollectiveRequest counterpart(int rank) const;
  bool operator==(const CollectiveRequest &other) const;
  /// "all_gather f32 1x617x1 of 1234", "send of f32 x1234 to 1 (message 7)"
  std::string describe() const;
};

// Writes a request of Collectives.def into `r`, which has the total number of elements alone.
inline void encode(const ShardLayout &tile, CollectiveRequest &r) {
  r.outer = tile.outer, r.local = tile.local, r.inner = tile.inner, r.total = tile.total;
}
inline void encode(ReduceOp op, CollectiveRequest &r) { r.op = op; }
inline void encode(Root root, CollectiveRequest &r) {
  r.root = static_cast<std::uint16_t>(root.rank);
}
inline void encode(const AllToAllLayout &layout, CollectiveRequest &r) {
  encode(ShardLayout{layout.outer, layout.splitLocal, layout.inner, layout.splitTotal}, r);
  r.middle = layout.middle;
  r.concatLocal = layout.concatLocal, r.concatTotal = layout.concatTotal;
  r.splitFirst = layout.splitFirst;
}
inline void encode(const RepartitionLayout &layout, CollectiveRequest &r) {
  encode(ShardLayout{layout.outer, layout.given, layout.inner, layout.received}, r);
}
/// Throws if `sources` is not part of a permutation.
void encode(const SourceRanks &sources, CollectiveRequest &r);

/// The table of a permutation; null for other collectives.
template <class Request> constexpr const int *sourcesOf(const Request &) { return nullptr; }
constexpr const int *sourcesOf(const SourceRanks &sources) { return sources.table; }

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_PROGRAM_COLLECTIVEREQUEST_H
