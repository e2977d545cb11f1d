//===- Communicator.h - collectives over a group of ranks -------------------===//
//
// One interface, one conformance suite (test/unit/runtime/comm/CommunicatorTest.cpp) that every
// backend passes. Sums run in rank order on every backend, so results are the same bits everywhere.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_COMM_COMMUNICATOR_H
#define FSDP_RUNTIME_COMM_COMMUNICATOR_H

#include "runtime/program/ArenaSpan.h"
#include "runtime/program/CollectiveRequest.h"
#include "runtime/program/ExchangeLayout.h"
#include "runtime/program/ShardLayout.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fsdp::rt {

class FlightTrack;

/// A group of ranks that meet in collectives. Every rank of the group issues the same collectives
/// with the same arguments in the same order, but for transfers, in which one rank sends and one
/// receives: between two ranks and in one direction, the n-th send meets the n-th receive. A
/// mismatch, a rank that dies or a wait that is too long is an `Error` on every rank. Used by one
/// thread at a time; different communicators may be used at once. Sum and Max take f32, f64, bf16,
/// i32, i64; data that only moves may have any type.
class Communicator {
public:
  virtual ~Communicator() = default;

  /// Rank within the group and size of the group.
  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string &name() const { return name_; }
  /// Keeps collectives in `track`, that of the thread that uses the communicator, from now on.
  void keepIn(FlightTrack *track) { track_ = track; }

  /// Every rank's piece (`tile.pieceCount()` elements at `piece`) into `whole` on every rank.
  /// In place when `piece` is its own part of `whole` and outer == 1.
  void allGather(const void *piece, void *whole, ShardLayout tile, DType type);
  /// Sum (or max) over the ranks of `whole`, in rank order; each rank keeps its own part in
  /// `piece`, padding is zero. In place as above.
  void reduceScatter(const void *whole, void *piece, ShardLayout tile, DType type,
                     ReduceOp op = ReduceOp::Sum);
  /// Sum or max of `count` elements in rank order, on every rank. `source` may be `target`.
  void allReduce(const void *source, void *target, std::size_t count, DType type,
                 ReduceOp op = ReduceOp::Sum);
  /// `bytes` of `buffer` from group rank `root` to every rank.
  void broadcast(void *buffer, std::size_t bytes, int root) {
    broadcast(buffer, buffer, bytes, root);
  }
  /// `source` of group rank `root` into `target` of every rank; they may be one.
  void broadcast(const void *source, void *target, std::size_t bytes, int root);
  /// The split of a value from one dimension to another; see AllToAllLayout. Not in place.
  void allToAll(const void *source, void *target, AllToAllLayout layout, DType type);
  /// Parts of another size; see RecutLayout. Not in place.
  void repartition(const void *source, void *target, RecutLayout layout, DType type);
  /// `count` elements of `source` of group rank `sources[rank()]` into `target`, zeros where that
  /// is -1. Every rank gives all `size()` entries of `sources`, in which no rank stands twice; it
  /// reads them until the call returns. Not in place.
  void permute(const void *source, void *target, std::size_t count, DType type, const int *sources);
  /// `count` elements of `source` to group rank `peer`, another one, which receives as many of the
  /// same type. Returns when `source` may be changed: at the latest when they are received, and
  /// with shared memory not before.
  void send(const void *source, std::size_t count, DType type, int peer);
  /// `count` elements that group rank `peer` sends, into `target`.
  void receive(void *target, std::size_t count, DType type, int peer);
  /// Returns when every rank has come.
  void barrier();

  template <class T> void allGather(const T *piece, T *whole, ShardLayout tile) {
    allGather(piece, whole, tile, dtypeOf<T>);
  }
  template <class T>
  void reduceScatter(const T *whole, T *piece, ShardLayout tile, ReduceOp op = ReduceOp::Sum) {
    reduceScatter(whole, piece, tile, dtypeOf<T>, op);
  }
  template <class T>
  void allReduce(const T *source, T *target, std::size_t count, ReduceOp op = ReduceOp::Sum) {
    allReduce(source, target, count, dtypeOf<T>, op);
  }
  template <class T> void allToAll(const T *source, T *target, AllToAllLayout layout) {
    allToAll(source, target, layout, dtypeOf<T>);
  }
  template <class T> void repartition(const T *source, T *target, RecutLayout layout) {
    repartition(source, target, layout, dtypeOf<T>);
  }
  template <class T>
  void permute(const T *source, T *target, std::size_t count, const int *sources) {
    permute(source, target, count, dtypeOf<T>, sources);
  }

  template <class T> void send(const T *source, std::size_t count, int peer) {
    send(source, count, dtypeOf<T>, peer);
  }
  template <class T> void receive(T *target, std::size_t count, int peer) {
    receive(target, count, dtypeOf<T>, peer);
  }

  using Kind = CollectiveKind;
  using Request = CollectiveRequest;

protected:
  Communicator(std::string name, int rank, int size)
      : name_(std::move(name)), rank_(rank), size_(size) {}

  // Arguments are checked, the group has at least two ranks.
  /// Moves what runtime/comm/TransferRuns.h says; `sources` is that of a permutation.
  virtual void doMove(const void *source, void *target, const Request &request,
                      const int *sources) = 0;
  virtual void doReduceScatter(const void *whole, void *piece, const Request &request) = 0;
  virtual void doAllReduce(const void *source, void *target, const Request &request) = 0;
  virtual void doBarrier(const Request &request) = 0;
  /// To and from group rank `request.root`.
  virtual void doSend(const void *source, const Request &request) = 0;
  virtual void doReceive(void *target, const Request &request) = 0;

  /// "'all_gather f32 1x617x1 of 1234', collective 17 over 'all ranks'": the one that runs.
  /// Collectives of a communicator are numbered from 1, the same on every rank.
  std::string describeCurrent(const Request &request) const;
  /// Throws the error of two ranks that issue different collectives.
  [[noreturn]] void mismatch(const Request &mine, int other, const Request &theirs) const;

private:
  /// Numbers and keeps `collective()`.
  template <class Collective> void perform(const Request &request, Collective collective);
  /// As doMove; a rank by itself copies.
  void move(const void *source, void *target, const Request &request, const int *sources = nullptr);

  /// The next transfer of `kind` with `peer`; throws where there is no such rank.
  Request transfer(Kind kind, std::size_t count, DType type, int peer);

  std::string name_;
  int rank_, size_;
  std::int64_t collectives_ = 0;
  std::vector<std::uint64_t> sent_, received_; ///< messages, by peer
  FlightTrack *track_ = nullptr;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_COMMUNICATOR_H
