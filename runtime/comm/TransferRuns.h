//===- TransferRuns.h - which elements a collective moves between which ranks -------===//
//
// The one table of collectives that only move data. Transports read it: they move bytes between
// ranks and do not distinguish collectives. A new collective of this class is a kind of request and
// a case here.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_COMM_TRANSFERRUNS_H
#define FSDP_RUNTIME_COMM_TRANSFERRUNS_H

#include "runtime/comm/ShardRuns.h"

namespace fsdp::rt {

class TransferRuns {
public:
  using Kind = CollectiveKind;

  /// `sources`: of a permutation, the rank that each rank receives from, or -1; null for other
  /// kinds. The caller owns it.
  TransferRuns(const CollectiveRequest &request, int ranks, const int *sources = nullptr)
      : request_(request), ranks_(static_cast<std::size_t>(ranks)), sources_(sources) {}

  const CollectiveRequest &request() const { return request_; }

  /// Elements of a rank's source, if it has one, and of its target.
  std::size_t sourceCount() const {
    switch (request_.kind) {
    case Kind::AllGather:
      return layoutOf(request_).pieceCount();
    case Kind::AllToAll:
      return exchangeOf(request_).sourceCount();
    case Kind::Repartition:
      return request_.outer * request_.local * request_.inner;
    default:
      return request_.total;
    }
  }
  std::size_t targetCount() const {
    switch (request_.kind) {
    case Kind::AllGather:
      return layoutOf(request_).wholeCount();
    case Kind::AllToAll:
      return exchangeOf(request_).targetCount();
    case Kind::Repartition:
      return request_.outer * request_.total * request_.inner;
    default:
      return request_.total;
    }
  }
  /// Whether anybody reads the source of `rank`: of a broadcast only the root's.
  bool hasSource(int rank) const {
    return request_.kind != Kind::Broadcast || rank == static_cast<int>(request_.root);
  }
  /// Whether a rank sends the same to all.
  bool sendsSame() const {
    return request_.kind == Kind::AllGather || request_.kind == Kind::Broadcast;
  }
  /// Whether `rank` has elements in its target that no rank sends: these are zero.
  bool hasGaps(int rank) const {
    switch (request_.kind) {
    case Kind::AllToAll: {
      const AllToAllLayout layout = exchangeOf(request_);
      return layout.split().held(static_cast<std::size_t>(rank)) < layout.splitLocal;
    }
    case Kind::Repartition:
      return (static_cast<std::size_t>(rank) + 1) * request_.total > ranks_ * request_.local;
    case Kind::Permute:
      return sources_[rank] < 0;
    default:
      return false;
    }
  }

  /// Calls `run(from, to, count)` for each contiguous run of elements that `sender` sends to
  /// `receiver`: it is at `from` in the sender's source and at `to` in the receiver's target.
  template <class Run> void forEach(int sender, int receiver, Run run) const {
    const auto s = static_cast<std::size_t>(sender), r = static_cast<std::size_t>(receiver);
    switch (request_.kind) {
    case Kind::AllGather:
      return forEachRun(layoutOf(request_), s, run);
    case Kind::Broadcast:
      if (sender == static_cast<int>(request_.root) && request_.total)
        run(std::size_t(0), std::size_t(0), std::size_t(request_.total));
      return;
    case Kind::Permute:
      if (sources_[receiver] == sender && request_.total)
        run(std::size_t(0), std::size_t(0), std::size_t(request_.total));
      return;
    case Kind::AllToAll:
      return forEachOfAllToAll(s, r, run);
    case Kind::Repartition: {
      const std::size_t low = std::max(s * request_.local, r * request_.total),
                        high = std::min((s + 1) * request_.local, (r + 1) * request_.total);
      if (low >= high || !request_.inner)
        return;
      for (std::size_t o = 0; o < request_.outer; ++o)
        run((o * request_.local + low - s * request_.local) * request_.inner,
            (o * request_.total + low - r * request_.total) * request_.inner,
            (high - low) * request_.inner);
      return;
    }
    // These combine, have one peer or only synchronize. No default: the compiler then warns about a
    // kind without a case.
    case Kind::ReduceScatter:
    case Kind::AllReduce:
    case Kind::Send:
    case Kind::Receive:
    case Kind::Barrier:
      return;
    }
  }

private:
  template <class Run>
  void forEachOfAllToAll(std::size_t sender, std::size_t receiver, Run run) const {
    const AllToAllLayout l = exchangeOf(request_);
    const std::size_t split = l.split().held(receiver), concat = l.concat().held(sender);
    const std::size_t first = l.splitFirst ? split : concat, last = l.splitFirst ? concat : split;
    if (!last || !l.inner)
      return;
    for (std::size_t o = 0; o < l.outer; ++o)
      for (std::size_t i = 0; i < first; ++i)
        for (std::size_t m = 0; m < l.middle; ++m)
          if (l.splitFirst)
            run((((o * l.splitTotal + receiver * l.splitLocal + i) * l.middle + m) *
                 l.concatLocal) *
                    l.inner,
                (((o * l.splitLocal + i) * l.middle + m) * l.concatTotal + sender * l.concatLocal) *
                    l.inner,
                last * l.inner);
          else
            run((((o * l.concatLocal + i) * l.middle + m) * l.splitTotal +
                 receiver * l.splitLocal) *
                    l.inner,
                (((o * l.concatTotal + sender * l.concatLocal + i) * l.middle + m) * l.splitLocal) *
                    l.inner,
                last * l.inner);
  }

  const CollectiveRequest request_;
  const std::size_t ranks_;
  const int *sources_;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_TRANSFERRUNS_H
