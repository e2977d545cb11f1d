//===- Communicator.h - collectives over a group of ranks -------------------===//
//
// One interface, one conformance suite (test/unit/runtime/comm/CommunicatorTest.cpp) that every
// backend passes. Sums run in rank order on every backend, so results are the same bits everywhere.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_COMM_COMMUNICATOR_H
#define FSDP_RUNTIME_COMM_COMMUNICATOR_H

#include "runtime/program/ArenaSpan.h"
#include "runtime/program/CollectiveGroup.h"
#include "runtime/program/ShardLayout.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fsdp::rt {

class FlightTrack;

/// A group of ranks that perform collectives together. Every rank of the group issues the same
/// collectives with the same arguments in the same order, except transfers, in which one rank sends
/// and one receives: between two ranks and in one direction, the n-th send matches the n-th
/// receive. A mismatch, a rank that dies or a wait that is too long is an `Error` on every rank.
/// Used by one thread at a time; different communicators may be used at once. Sum and Max take f32,
/// f64, bf16, i32, i64; data that only moves may have any type.
class Communicator {
public:
  virtual ~Communicator() = default;

  /// Rank within the group and size of the group.
  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string &name() const { return name_; }
  /// Records the following collectives in `track`, which belongs to the thread that uses the
  /// communicator.
  void keepIn(FlightTrack *track) { track_ = track; }
  /// Simulates a link on which a rank sends `bytesPerSecond` without using a core: after moving its
  /// data, each following collective sleeps for the time of the link. 0: no limit.
  void limitLink(double bytesPerSecond) { linkBandwidth_ = bytesPerSecond; }

  using Kind = CollectiveKind;
  using Request = CollectiveRequest;

  /// Performs `request`, a collective with a source and a target; see Collectives.def. `sources`:
  /// of a permutation.
  void perform(const Request &request, const void *source, void *target,
               const int *sources = nullptr);
  /// Performs the `count` collectives of a group: the ranks wait for one another as often as in one
  /// of them. The group counts as one collective.
  void performGroup(const GroupedCollective *members, std::size_t count);
  /// The same of `kind`, where a rank has `count` elements of the source.
  template <class Asked>
  void perform(Kind kind, const Asked &asked, std::size_t count, DType type, const void *source,
               void *target) {
    perform(Request::of(kind, asked, count, type), source, target, sourcesOf(asked));
  }
  /// `count` elements of `source` to group rank `peer`, another one, which receives as many of the
  /// same type. Returns when `source` may be changed: at the latest when they are received, and
  /// with shared memory only then.
  void send(const void *source, std::size_t count, DType type, int peer);
  /// `count` elements that group rank `peer` sends, into `target`.
  void receive(void *target, std::size_t count, DType type, int peer);
  /// Returns when every rank has arrived.
  void barrier();

  // Collectives of the host.
  template <class T> void allGather(const T *piece, T *whole, ShardLayout tile) {
    perform(Kind::AllGather, tile, tile.pieceCount(), dtypeOf<T>, piece, whole);
  }
  template <class T>
  void allReduce(const T *source, T *target, std::size_t count, ReduceOp op = ReduceOp::Sum) {
    perform(Kind::AllReduce, op, count, dtypeOf<T>, source, target);
  }
  /// `bytes` of `buffer` from group rank `root` to every rank.
  void broadcast(void *buffer, std::size_t bytes, int root) {
    perform(Kind::Broadcast, Root{root}, bytes, DType::Bool, buffer, buffer);
  }

protected:
  Communicator(std::string name, int rank, int size)
      : name_(std::move(name)), rank_(rank), size_(size) {}
  /// Of world rank `world`, one of `group`.
  Communicator(std::string name, const std::vector<int> &group, int world)
      : Communicator(std::move(name),
                     static_cast<int>(std::find(group.begin(), group.end(), world) - group.begin()),
                     static_cast<int>(group.size())) {}

  // Arguments are checked, the group has at least two ranks.
  /// Moves the runs of runtime/comm/TransferRuns.h; `sources` is that of a permutation.
  virtual void doMove(const void *source, void *target, const Request &request,
                      const int *sources) = 0;
  virtual void doReduceScatter(const void *whole, void *piece, const Request &request) = 0;
  /// `request` is that of the group: the first member's, with the number of members as `message`
  /// and a hash of all their requests as `sources`.
  virtual void doGroup(const Request &request, const GroupedCollective *members,
                       std::size_t count) = 0;
  virtual void doAllReduce(const void *source, void *target, const Request &request) = 0;
  virtual void doBarrier(const Request &request) = 0;
  /// To and from group rank `request.root`.
  virtual void doSend(const void *source, const Request &request) = 0;
  virtual void doReceive(void *target, const Request &request) = 0;

  /// "'all_gather f32 1x617x1 of 1234', collective 17 over 'all ranks'": the current collective.
  /// Collectives of a communicator are numbered from 1, the same on every rank.
  std::string describeCurrent(const Request &request) const;
  /// Throws the error of two ranks that issue different collectives.
  [[noreturn]] void mismatch(const Request &mine, int other, const Request &theirs) const;

private:
  /// Numbers and keeps `collective()`.
  template <class Collective> void track(const Request &request, Collective collective);
  /// Sleeps as long as the link of `limitLink` takes for `request`.
  void occupyLink(const Request &request) const;
  /// As `perform`, for a group of one rank.
  void copy(const Request &request, const void *source, void *target, const int *sources) const;

  /// The next transfer of `kind` with `peer`; throws if there is no such rank.
  Request transfer(Kind kind, std::size_t count, DType type, int peer);

  std::string name_;
  int rank_, size_;
  std::int64_t collectives_ = 0;
  std::vector<std::uint64_t> sent_, received_; ///< messages, by peer
  FlightTrack *track_ = nullptr;
  double linkBandwidth_ = 0;
};

// The function that launches perform (runtime/launches/Collectives.h).
template <class Request, class T>
void perform(Communicator &comm, CollectiveKind kind, const Request &request, std::size_t count,
             const T *source, T *target) {
  comm.perform(kind, request, count, dtypeOf<T>, source, target);
}
template <std::size_t N>
void performGroup(Communicator &comm, const std::array<GroupedCollective, N> &members) {
  comm.performGroup(members.data(), N);
}
template <class T> void send(Communicator &comm, Peer peer, std::size_t count, const T *source) {
  if (const int rank = comm.rank() + peer.offset; rank >= 0 && rank < comm.size())
    comm.send(source, count, dtypeOf<T>, rank);
}
template <class T> void receive(Communicator &comm, Peer peer, std::size_t count, T *target) {
  if (const int rank = comm.rank() + peer.offset; rank >= 0 && rank < comm.size())
    comm.receive(target, count, dtypeOf<T>, rank);
  else
    std::fill_n(target, count, T());
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_COMMUNICATOR_H
