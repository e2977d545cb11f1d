//===- CollectiveRequest.h - what a rank asks of a collective -----*- C++ -*-===//

#ifndef FSDP_RUNTIME_PROGRAM_COLLECTIVEREQUEST_H
#define FSDP_RUNTIME_PROGRAM_COLLECTIVEREQUEST_H

#include "runtime/program/ArenaSpan.h"
#include "runtime/program/ExchangeLayout.h"
#include "runtime/program/ShardLayout.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace fsdp::rt {

enum class CollectiveKind : std::uint32_t {
  AllGather,
  ReduceScatter,
  AllReduce,
  Broadcast,
  AllToAll,
  Repartition,
  Permute,
  Barrier,
  Send,
  Receive
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

  /// Of a collective that cuts a dimension as `tile` says, or that has a total alone.
  static CollectiveRequest make(Kind kind, DType type, ReduceOp op, ShardLayout tile, int root = 0);
  /// Of the calls of these arguments. Errors as theirs.
  static CollectiveRequest allToAll(AllToAllLayout layout, DType type);
  static CollectiveRequest repartition(RecutLayout layout, DType type);
  static CollectiveRequest permute(std::size_t count, DType type, const int *sources, int ranks);
  static CollectiveRequest transfer(Kind kind, std::size_t count, DType type, int peer,
                                    std::uint64_t message);
  bool isTransfer() const { return kind == Kind::Send || kind == Kind::Receive; }

  /// Of a send or a receive: what the peer, which is group rank `root`, says where this rank is
  /// `rank`.
  CollectiveRequest counterpart(int rank) const;
  bool operator==(const CollectiveRequest &other) const;
  /// "all_gather f32 1x617x1 of 1234", "send of f32 x1234 to 1 (message 7)"
  std::string describe() const;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_PROGRAM_COLLECTIVEREQUEST_H
