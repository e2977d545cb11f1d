//===- SharedMemoryCommunicator.cpp - collectives in shared memory --------===//
//
// Ranks synchronize, read their data directly from the arenas of their peers, and synchronize again
// before a peer may change it. Data outside the arenas (of the driver) is copied through a staging
// area in pieces.
//
//===----------------------------------------------------------------------===//

#include "base/WaitedTime.h"
#include "runtime/comm/Communicator.h"
#include "runtime/comm/PeerContext.h"
#include "runtime/comm/RankActions.h"
#include "runtime/comm/Reduction.h"
#include "runtime/comm/SharedSegment.h"
#include "runtime/comm/TransferRuns.h"
#include "runtime/device/StreamingStores.h"

#include <cstring>
#include <memory>

namespace fsdp::rt {

using namespace base;

namespace {

// Interval at which a waiting rank checks the state of the others, in seconds.
constexpr double kPollInterval = 0.05;

// Every rank computes the whole sum of an all_reduce of at most this many bytes, which saves a
// barrier.
constexpr std::size_t kSmallBytes = 4096;

std::size_t sizeOf(const Communicator::Request &request) { return sizeInBytes(request.type); }

class SharedMemoryCommunicator final : public Communicator {
public:
  SharedMemoryCommunicator(std::string name, const PeerContext &peer, SharedSegment &segment,
                           int index, std::vector<int> group, int peerIndex)
      : Communicator(std::move(name), group, peer.rank), peer_(peer), segment_(segment),
        index_(index), peerIndex_(peerIndex < 0 ? index : peerIndex), group_(std::move(group)),
        barrier_(segment.barrier(index, group_.front())), sources_(group_.size()) {
    for (int member : group_)
      slots_.push_back(&segment_.slot(member == peer.rank ? index_ : peerIndex_, member));
  }

private:
  //===----------------------------------------------------------------------===//
  // The barrier of the group
  //===----------------------------------------------------------------------===//

  /// Bytes of the source of this rank.
  std::size_t sourceBytes(const Request &request) const {
    const std::size_t element = sizeOf(request);
    switch (request.kind) {
    case Kind::ReduceScatter:
      return layoutOf(request).wholeCount() * element;
    case Kind::AllReduce:
      return request.total * element;
    case Kind::Barrier:
      return 0;
    default:
      const TransferRuns moves(request, size());
      return moves.hasSource(rank()) ? moves.sourceCount() * element : 0;
    }
  }

  /// Checks that all ranks have published `request`; true if one of them uses staging.
  bool compare(const Request &request) const {
    bool outside = false;
    for (int peer = 0; peer < size(); ++peer) {
      const CollectiveSlot::PublishedBuffer &theirs = publishedBy(peer);
      if (!(theirs.request == request))
        mismatch(request, peer, theirs.request);
      outside |= theirs.source == kOutside || theirs.target == kOutside;
    }
    return outside;
  }

  /// Publishes `request`, that of a group, waits for all ranks, and checks that all requests are
  /// equal. True if a rank's data is outside its arena, so that all ranks must use staging.
  bool open(const Request &request, const GroupedCollective *members, std::size_t count) {
    ++opened_;
    CollectiveSlot::PublishedBuffer &mine = publishedBy(rank());
    mine.request = request;
    mine.source = 0;
    const bool reads = request.kind == Kind::AllReduce; // the target of another rank
    mine.target = reads ? offsetOf(members->target, sourceBytes(request)) : 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t source = offsetOf(members[i].source, sourceBytes(members[i].request));
      slots_[rank()]->sources[opened_ & 1][i] = source;
      if (source == kOutside)
        mine.source = kOutside;
    }
    awaitAll(request);
    return compare(request);
  }

  /// The same of a collective alone.
  bool open(const Request &request, const void *source, void *target) {
    const GroupedCollective alone{request, source, target};
    return open(request, &alone, 1);
  }

  /// Returns when all ranks of the group have arrived at the barrier as often as this rank.
  void awaitAll(const Request &request) {
    ++arrivals_;
    slots_[rank()]->arrivals.store(arrivals_, std::memory_order_relaxed);
    barrier_.advance();
    const std::uint64_t all = arrivals_ * static_cast<std::uint64_t>(size());
    if (barrier_.waitFor(all, kPollInterval))
      return;
    WaitedTime waited;
    do {
      peer_.check();
      bool ended = false;
      for (int peer = 0; peer < size(); ++peer)
        ended |= segment_.rank(group_[peer]).state == RankRecord::Done &&
                 slots_[peer]->arrivals.load() < arrivals_;
      if (waited.look() > peer_.timeoutSeconds || ended)
        reportAbsent(request);
    } while (!barrier_.waitFor(all, kPollInterval));
  }

  void reportAbsent(const Request &request) {
    std::string gone, late;
    std::vector<int> named;
    for (int peer = 0; peer < size(); ++peer) {
      if (slots_[peer]->arrivals.load() >= arrivals_)
        continue;
      const bool ended = segment_.rank(group_[peer]).state == RankRecord::Done;
      std::string &list = ended ? gone : late;
      list += (list.empty() ? "" : ", ") + std::to_string(group_[peer]) +
              (ended ? "" : describeState(segment_, group_[peer]));
      named.push_back(group_[peer]);
    }
    if (gone.empty() && late.empty()) // the last rank has arrived since the wait
      return;
    const std::string collective = describeCurrent(request);
    if (!gone.empty())
      throw Error(format("waiting in %s for rank %s, which has ended already", collective.c_str(),
                         gone.c_str()))
          .byAll();
    timeOut(collective, late, named);
  }

  /// Throws the error of a wait in `collective` for the ranks `named`, which `late` describes.
  [[noreturn]]
  void timeOut(const std::string &collective, const std::string &late,
               const std::vector<int> &named) const {
    throw Error(
        format("timed out after %g s in %s, waiting for rank %s%s; --timeout sets the "
               "timeout in seconds",
               peer_.timeoutSeconds, collective.c_str(), late.c_str(),
               describeBusyRanks(segment_, named, busySeconds(peer_.timeoutSeconds)).c_str()))
        .byAll();
  }

  // A null pointer and empty data count as inside the arena.
  std::uint64_t offsetOf(const void *pointer, std::size_t bytes) const {
    if (!pointer || !bytes)
      return 0;
    auto offset = static_cast<std::uint64_t>(static_cast<const std::byte *>(pointer) - peer_.arena);
    return offset <= peer_.arenaBytes && bytes <= peer_.arenaBytes - offset ? offset : kOutside;
  }

  /// The source of a peer that has opened, in member `member` of a group.
  const char *sourceOf(int peer, std::size_t member) const {
    return reinterpret_cast<const char *>(segment_.arena(group_[peer]) +
                                          slots_[peer]->sources[opened_ & 1][member]);
  }
  CollectiveSlot::PublishedBuffer &publishedBy(int peer) const {
    return slots_[peer]->published[opened_ & 1];
  }
  char *targetOf(int peer) const {
    return reinterpret_cast<char *>(segment_.arena(group_[peer]) + publishedBy(peer).target);
  }
  char *stagingOf(int peer) const {
    return reinterpret_cast<char *>(segment_.staging(index_, group_[peer]));
  }

  /// target[0, count) = the sum over peers of sourceOf(peer)[first, first+count).
  template <class SourceOf>
  void reduceAll(void *target, SourceOf sourceOf, std::size_t first, std::size_t count,
                 const Request &request) {
    for (int peer = 0; peer < size(); ++peer)
      sources_[peer] = static_cast<const char *>(sourceOf(peer)) + first * sizeOf(request);
    reduceInRankOrder(target, sources_.data(), size(), count, request.type, request.op);
  }

  /// Calls `body(low, high)` for one part [low, high) of `all` elements after another, which every
  /// rank has in its staging area then: this one of `source`, unless it is null.
  template <class Body>
  void forEachStaged(const Request &request, const void *source, std::size_t all, Body body) {
    const std::size_t element = sizeOf(request), room = kStagingBytes / element;
    for (std::size_t low = 0; low < all; low += room) {
      const std::size_t high = std::min(all, low + room);
      if (source)
        std::memcpy(stagingOf(rank()), static_cast<const char *>(source) + low * element,
                    (high - low) * element);
      awaitAll(request);
      body(low, high);
      awaitAll(request);
    }
  }

  //===----------------------------------------------------------------------===//
  // Collectives
  //===----------------------------------------------------------------------===//

  /// Reads the sources of the peers, after all ranks have opened.
  void moveFrom(std::size_t member, const Request &request, const int *sources, const void *source,
                void *target) {
    const TransferRuns moves(request, size(), sources);
    const std::size_t element = sizeOf(request);
    char *to = static_cast<char *>(target);
    if (moves.hasGaps(rank()))
      std::memset(to, 0, moves.targetCount() * element);
    // Each rank starts with itself, so that the ranks read from different peers.
    for (int step = 0; step < size(); ++step) {
      int peer = (rank() + step) % size();
      const char *from =
          peer == rank() ? static_cast<const char *>(source) : sourceOf(peer, member);
      moves.forEach(peer, rank(), [&](std::size_t f, std::size_t t, std::size_t count) {
        if (to + t * element != from + f * element)
          copyBytes(to + t * element, from + f * element, count * element);
      });
    }
  }

  void scatterFrom(std::size_t member, const Request &request, const void *whole, void *piece) {
    const ShardLayout layout = layoutOf(request);
    const std::size_t element = sizeOf(request);
    const auto from = [&](int peer) { return peer == rank() ? whole : sourceOf(peer, member); };
    forEachRun(layout, rank(), [&](std::size_t p, std::size_t w, std::size_t count) {
      reduceAll(static_cast<char *>(piece) + p * element, from, w, count, request);
    });
    clearPadding(layout, rank(), piece, element);
  }

  void doGroup(const Request &request, const GroupedCollective *members,
               std::size_t count) override {
    const bool staged = open(request, members, count), moves = request.kind == Kind::AllGather;
    for (std::size_t i = 0; i < count; ++i) {
      const GroupedCollective &member = members[i];
      if (staged && moves)
        doMove(member.source, member.target, member.request, nullptr);
      else if (staged)
        doReduceScatter(member.source, member.target, member.request);
      else if (moves)
        moveFrom(i, member.request, nullptr, member.source, member.target);
      else
        scatterFrom(i, member.request, member.source, member.target);
    }
    if (!staged)
      awaitAll(request);
  }

  void doMove(const void *source, void *target, const Request &request,
              const int *sources) override {
    if (!open(request, source, target)) {
      moveFrom(0, request, sources, source, target);
      return awaitAll(request);
    }
    const TransferRuns moves(request, size(), sources);
    const std::size_t element = sizeOf(request);
    char *to = static_cast<char *>(target);
    if (moves.hasGaps(rank()))
      std::memset(to, 0, moves.targetCount() * element);
    const void *own = moves.hasSource(rank()) ? source : nullptr;
    forEachStaged(request, own, moves.sourceCount(), [&](std::size_t low, std::size_t high) {
      for (int peer = 0; peer < size(); ++peer)
        moves.forEach(peer, rank(), [&](std::size_t f, std::size_t t, std::size_t count) {
          clip(f, count, low, high, [&](std::size_t skipped, std::size_t part) {
            std::memcpy(to + (t + skipped) * element,
                        stagingOf(peer) + (f + skipped - low) * element, part * element);
          });
        });
    });
  }

  void doReduceScatter(const void *whole, void *piece, const Request &request) override {
    if (!open(request, whole, piece)) {
      scatterFrom(0, request, whole, piece);
      return awaitAll(request);
    }
    const ShardLayout layout = layoutOf(request);
    const std::size_t element = sizeOf(request);
    char *to = static_cast<char *>(piece);
    const auto staging = [&](int peer) { return stagingOf(peer); };
    forEachStaged(request, whole, layout.wholeCount(), [&](std::size_t low, std::size_t high) {
      forEachRun(layout, rank(), [&](std::size_t p, std::size_t w, std::size_t count) {
        clip(w, count, low, high, [&](std::size_t skipped, std::size_t part) {
          reduceAll(to + (p + skipped) * element, staging, w + skipped - low, part, request);
        });
      });
    });
    clearPadding(layout, rank(), piece, element);
  }

  void doAllReduce(const void *source, void *target, const Request &request) override {
    const std::size_t element = sizeOf(request), all = request.total;
    char *to = static_cast<char *>(target);
    const bool staged = open(request, source, target);
    const auto from = [&](int peer) { return peer == rank() ? source : sourceOf(peer, 0); };

    if (!staged && all * element > kSmallBytes) {
      // Each rank sums its part into the result, then copies the parts of the others. A part is a
      // multiple of 64 bytes, so that no two ranks write to the same cache line.
      const std::size_t part = ((all + size() - 1) / size() + 15) & ~std::size_t(15);
      const ShardLayout parts{1, part, 1, all};
      forEachRun(parts, rank(), [&](std::size_t, std::size_t w, std::size_t count) {
        reduceAll(to + w * element, from, w, count, request);
      });
      awaitAll(request);
      for (int step = 1; step < size(); ++step) {
        int peer = (rank() + step) % size();
        forEachRun(parts, peer, [&](std::size_t, std::size_t w, std::size_t count) {
          copyBytes(to + w * element, targetOf(peer) + w * element, count * element);
        });
      }
      return awaitAll(request);
    }

    // Every rank sums all elements, in pieces of the size of the staging area.
    alignas(64) char sum[kSmallBytes];
    if (!staged) {
      reduceAll(sum, from, 0, all, request);
      awaitAll(request); // all ranks have read before one writes, as the target may be the source
      std::memcpy(to, sum, all * element);
      return;
    }
    const auto staging = [&](int peer) { return stagingOf(peer); };
    forEachStaged(request, source, all, [&](std::size_t low, std::size_t high) {
      reduceAll(to + low * element, staging, 0, high - low, request);
    });
  }

  void doBarrier(const Request &request) override { open(request, nullptr, nullptr); }

  //===----------------------------------------------------------------------===//
  // Transfers
  //===----------------------------------------------------------------------===//

  // A transfer uses the slot of the sender: the receiver copies the data published there, and the
  // sender waits for that. Both publish their transfer, so that two ranks that wait for each other
  // detect it.

  /// Publishes the transfer `request` and its data for the peer.
  void publishTransfer(const Request &request, std::uint64_t source) {
    CollectiveSlot::Transfer &mine = slots_[rank()]->transfer;
    mine.published.request = request;
    mine.published.source = source;
    mine.published.target = ++posted_;
    mine.partner.store(CollectiveSlot::Transfer::transferKey(request.kind, request.root));
    mine.posted.advance();
  }

  /// Waits for `counter`, which the peer of `request` advances, to reach `target`; false if it has
  /// not after kPollInterval. Throws if the peer has ended or the timeout has passed.
  bool awaitPeer(WaitCounter &counter, std::uint64_t target, const Request &request,
                 WaitedTime &waited) {
    if (counter.waitFor(target, kPollInterval))
      return true;
    peer_.check();
    const int world = group_[request.root];
    const bool ended = segment_.rank(world).state == RankRecord::Done;
    if (counter.value() >= target) // before the peer ended
      return true;
    const std::string collective = describeCurrent(request);
    if (ended)
      throw Error(
          format("waiting in %s for rank %d, which has ended already", collective.c_str(), world))
          .byAll();
    if (waited.look() < peer_.timeoutSeconds)
      return false;
    timeOut(collective, std::to_string(world) + describeState(segment_, world), {world});
  }

  /// Throws if the peer of `request` and this rank wait for each other.
  void checkCrossing(const Request &request) const {
    const std::uint64_t crossing = CollectiveSlot::Transfer::transferKey(request.kind, rank());
    if (slots_[request.root]->transfer.partner.load() == crossing)
      throw Error(format("%s waits for rank %d, which is in a %s %s this rank itself: neither "
                         "continues; let one of them %s first, or use two streams",
                         describeCurrent(request).c_str(), group_[request.root],
                         request.kind == Kind::Send ? "send" : "receive",
                         request.kind == Kind::Send ? "to" : "from",
                         request.kind == Kind::Send ? "receive" : "send"))
          .byAll();
  }

  void doSend(const void *source, const Request &request) override {
    const std::size_t bytes = request.total * sizeOf(request);
    const char *from = static_cast<const char *>(source);
    CollectiveSlot::Transfer &mine = slots_[rank()]->transfer;
    const std::uint64_t offset = offsetOf(source, bytes);
    const std::size_t room = offset == kOutside ? kStagingBytes : std::max<std::size_t>(bytes, 1);
    WaitedTime waited;
    for (std::size_t low = 0; low < std::max<std::size_t>(bytes, 1); low += room) {
      if (offset == kOutside)
        std::memcpy(stagingOf(rank()), from + low, std::min(room, bytes - low));
      if (low == 0) {
        publishTransfer(request, offset);
      } else {
        ++posted_;
        mine.posted.advance();
      }
      ++taken_;
      while (!awaitPeer(mine.taken, taken_, request, waited))
        if (low == 0)
          checkCrossing(request);
    }
  }

  void doReceive(void *target, const Request &request) override {
    CollectiveSlot::Transfer &mine = slots_[rank()]->transfer,
                             &theirs = slots_[request.root]->transfer;
    const std::uint64_t sending = CollectiveSlot::Transfer::transferKey(Kind::Send, rank());
    WaitedTime waited;
    publishTransfer(request, 0);
    for (;;) {
      const std::uint64_t seen = theirs.posted.value();
      if (theirs.partner.load() == sending)
        break;
      checkCrossing(request);
      awaitPeer(theirs.posted, seen + 1, request, waited);
    }
    mine.partner.store(0);
    const CollectiveSlot::PublishedBuffer &published = theirs.published;
    if (!(published.request == request.counterpart(rank())))
      mismatch(request, request.root, published.request);
    const std::size_t bytes = request.total * sizeOf(request);
    char *to = static_cast<char *>(target);
    const bool staged = published.source == kOutside;
    const std::size_t room = staged ? kStagingBytes : std::max<std::size_t>(bytes, 1);
    const std::byte *from = staged ? segment_.staging(peerIndex_, group_[request.root])
                                   : segment_.arena(group_[request.root]) + published.source;
    std::uint64_t piece = published.target;
    for (std::size_t low = 0; low < std::max<std::size_t>(bytes, 1); low += room, ++piece) {
      while (!awaitPeer(theirs.posted, piece, request, waited)) {
      }
      if (bytes)
        std::memcpy(to + low, from, std::min(room, bytes - low));
      if (low + room >= std::max<std::size_t>(bytes, 1))
        theirs.partner.store(0); // before the sender continues
      theirs.taken.advance();
    }
  }

  const PeerContext &peer_;
  SharedSegment &segment_;
  int index_, peerIndex_;
  std::vector<int> group_;
  WaitCounter &barrier_;
  std::vector<CollectiveSlot *> slots_;
  std::vector<const void *>
      sources_; ///< of each peer; a member, so that collectives allocate nothing
  std::uint64_t opened_ = 0, arrivals_ = 0;
  std::uint64_t posted_ = 0, taken_ = 0; // of transfers
};

} // namespace

std::unique_ptr<Communicator> sharedMemoryCommunicator(std::string name, const PeerContext &peer,
                                                       SharedSegment &segment, int index,
                                                       std::vector<int> group, int peerIndex) {
  return std::make_unique<SharedMemoryCommunicator>(std::move(name), peer, segment, index,
                                                    std::move(group), peerIndex);
}

} // namespace fsdp::rt
