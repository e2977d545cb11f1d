#include "runtime/comm/SharedMemoryCommunicator.h"
#include "runtime/comm/Reduction.h"
#include "runtime/device/StreamingStores.h"
#include "runtime/comm/Moves.h"
#include "runtime/job/FlightRecord.h"

#include <cstring>

namespace fsdp::rt {

namespace {

// How often a rank that waits looks whether the others are still there.
constexpr double kLook = 0.05;

// An all_reduce of at most this many bytes is summed by every rank for itself: one meeting less.
constexpr std::size_t kSmallBytes = 4096;

std::size_t sizeOf(const Communicator::Request &request) { return sizeInBytes(request.type); }

} // namespace

SharedMemoryCommunicator::SharedMemoryCommunicator(std::string name, const Job &job,
                                                   SharedSegment &segment, int index,
                                                   std::vector<int> group, double timeoutSeconds)
    : Communicator(
          std::move(name),
          static_cast<int>(std::find(group.begin(), group.end(), job.rank()) - group.begin()),
          static_cast<int>(group.size())),
      job_(job), segment_(segment), index_(index), group_(std::move(group)),
      timeout_(timeoutSeconds), meeting_(segment.meeting(index, group_.front())),
      sources_(group_.size()), shifted_(group_.size()) {
  for (int member : group_)
    slots_.push_back(&segment_.slot(index_, member));
}

//===----------------------------------------------------------------------===//
// Meeting
//===----------------------------------------------------------------------===//

bool SharedMemoryCommunicator::open(const Request &request, const void *source,
                                    const void *target) {
  const std::size_t element = sizeOf(request);
  std::size_t sourceBytes = 0, targetBytes = 0;
  switch (request.kind) {
  case Kind::ReduceScatter:
    sourceBytes = layoutOf(request).wholeCount() * element;
    break;
  case Kind::AllReduce:
    sourceBytes = targetBytes = request.total * element;
    break;
  case Kind::Barrier:
    break;
  default:
    if (const Moves moves(request, size()); moves.hasSource(rank()))
      sourceBytes = moves.sourceCount() * element;
  }
  ++opened_;
  CollectiveSlot::Shown &mine = shownBy(rank());
  mine.request = request;
  mine.source = offsetOf(source, sourceBytes);
  mine.target = offsetOf(target, targetBytes);
  meet(request);

  bool outside = false;
  for (int peer = 0; peer < size(); ++peer) {
    const CollectiveSlot::Shown &theirs = shownBy(peer);
    if (!(theirs.request == request))
      mismatch(request, peer, theirs.request);
    outside |= theirs.source == kOutside || theirs.target == kOutside;
  }
  return outside;
}

void SharedMemoryCommunicator::meet(const Request &request) {
  ++meetings_;
  slots_[rank()]->meetings.store(meetings_, std::memory_order_relaxed);
  meeting_.advance();
  const std::uint64_t all = meetings_ * static_cast<std::uint64_t>(size());
  if (meeting_.waitFor(all, kLook))
    return;
  const double deadline = now() + timeout_;
  do {
    segment_.failure().check();
    if (job_.leaving())
      throw Aborted("the rank is leaving");
    bool left = false;
    for (int peer = 0; peer < size(); ++peer)
      left |= segment_.rank(group_[peer]).state == RankRecord::Done &&
              slots_[peer]->meetings.load() < meetings_;
    if (left || now() > deadline)
      reportAbsent(request);
  } while (!meeting_.waitFor(all, kLook));
}

void SharedMemoryCommunicator::reportAbsent(const Request &request) {
  std::string left, late;
  for (int peer = 0; peer < size(); ++peer) {
    if (slots_[peer]->meetings.load() >= meetings_)
      continue;
    const bool ended = segment_.rank(group_[peer]).state == RankRecord::Done;
    std::string &list = ended ? left : late;
    list += (list.empty() ? "" : ", ") + std::to_string(group_[peer]);
    const std::string latest = ended ? "" : describeLatest(segment_, group_[peer]);
    if (!latest.empty())
      list += " (latest action: " + latest + ")";
  }
  const std::string what = describeCurrent(request);
  if (!left.empty())
    throw Error(format("waiting in %s for rank %s, which has ended already", what.c_str(), left.c_str()))
        .byAll();
  throw Error(format("timed out after %g s in %s, waiting for rank %s; --timeout sets the timeout in seconds",
                     timeout_, what.c_str(), late.c_str()))
      .byAll();
}

// No pointer, or nothing behind it, is as good as inside.
std::uint64_t SharedMemoryCommunicator::offsetOf(const void *pointer, std::size_t bytes) const {
  if (!pointer || !bytes)
    return 0;
  auto offset = static_cast<std::uint64_t>(static_cast<const std::byte *>(pointer) - job_.arena());
  return offset <= job_.arenaBytes() && bytes <= job_.arenaBytes() - offset ? offset : kOutside;
}

const char *SharedMemoryCommunicator::sourceOf(int peer) const {
  return reinterpret_cast<const char *>(segment_.arena(group_[peer]) + shownBy(peer).source);
}
char *SharedMemoryCommunicator::targetOf(int peer) const {
  return reinterpret_cast<char *>(segment_.arena(group_[peer]) + shownBy(peer).target);
}
char *SharedMemoryCommunicator::stagingOf(int peer) const {
  return reinterpret_cast<char *>(segment_.staging(index_, group_[peer]));
}

/// target[0, count) = the sum over peers of sources[peer][first, first+count).
void SharedMemoryCommunicator::reduceAll(void *target, const void *const *sources,
                                         std::size_t first, std::size_t count,
                                         const Request &request) {
  for (int peer = 0; peer < size(); ++peer)
    shifted_[peer] = static_cast<const char *>(sources[peer]) + first * sizeOf(request);
  reduceInRankOrder(target, shifted_.data(), size(), count, request.type, request.op);
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

void SharedMemoryCommunicator::doMove(const void *source, void *target, const Request &request,
                                      const int *sources) {
  const Moves moves(request, size(), sources);
  const std::size_t element = sizeOf(request);
  char *to = static_cast<char *>(target);
  const bool staged = open(request, source);
  if (moves.hasGaps(rank()))
    std::memset(to, 0, moves.targetCount() * element);
  if (!staged) {
    // Each rank starts with itself and goes round, so that not all read from one.
    for (int step = 0; step < size(); ++step) {
      int peer = (rank() + step) % size();
      const char *from = peer == rank() ? static_cast<const char *>(source) : sourceOf(peer);
      moves.forEach(peer, rank(), [&](std::size_t f, std::size_t t, std::size_t count) {
        if (to + t * element != from + f * element)
          copyBytes(to + t * element, from + f * element, count * element);
      });
    }
    return meet(request);
  }
  const std::size_t room = kStagingBytes / element, all = moves.sourceCount();
  for (std::size_t low = 0; low < all; low += room) {
    const std::size_t high = std::min(all, low + room);
    if (moves.hasSource(rank()))
      std::memcpy(stagingOf(rank()), static_cast<const char *>(source) + low * element,
                  (high - low) * element);
    meet(request);
    for (int peer = 0; peer < size(); ++peer)
      moves.forEach(peer, rank(), [&](std::size_t f, std::size_t t, std::size_t count) {
        clip(f, count, low, high, [&](std::size_t skipped, std::size_t part) {
          std::memcpy(to + (t + skipped) * element, stagingOf(peer) + (f + skipped - low) * element,
                      part * element);
        });
      });
    meet(request);
  }
}

void SharedMemoryCommunicator::doReduceScatter(const void *whole, void *piece,
                                               const Request &request) {
  const ShardLayout tile = layoutOf(request);
  const std::size_t element = sizeOf(request);
  char *to = static_cast<char *>(piece);
  if (!open(request, whole)) {
    for (int peer = 0; peer < size(); ++peer)
      sources_[peer] = peer == rank() ? whole : sourceOf(peer);
    forEachRun(tile, rank(), [&](std::size_t p, std::size_t w, std::size_t count) {
      reduceAll(to + p * element, sources_.data(), w, count, request);
    });
    clearPadding(tile, rank(), piece, element);
    return meet(request);
  }
  for (int peer = 0; peer < size(); ++peer)
    sources_[peer] = stagingOf(peer);
  const std::size_t room = kStagingBytes / element, all = tile.wholeCount();
  for (std::size_t low = 0; low < all; low += room) {
    const std::size_t high = std::min(all, low + room);
    std::memcpy(stagingOf(rank()), static_cast<const char *>(whole) + low * element,
                (high - low) * element);
    meet(request);
    forEachRun(tile, rank(), [&](std::size_t p, std::size_t w, std::size_t count) {
      clip(w, count, low, high, [&](std::size_t skipped, std::size_t part) {
        reduceAll(to + (p + skipped) * element, sources_.data(), w + skipped - low, part, request);
      });
    });
    meet(request);
  }
  clearPadding(tile, rank(), piece, element);
}

void SharedMemoryCommunicator::doAllReduce(const void *source, void *target,
                                           const Request &request) {
  const std::size_t element = sizeOf(request), all = request.total;
  char *to = static_cast<char *>(target);
  const bool staged = open(request, source, target);

  if (!staged && all * element > kSmallBytes) {
    // Each rank sums its part in place of the result, then takes the others' parts. A part is a
    // multiple of 64 bytes, so that no two ranks write one line.
    const std::size_t part = ((all + size() - 1) / size() + 15) & ~std::size_t(15);
    const ShardLayout parts{1, part, 1, all};
    for (int peer = 0; peer < size(); ++peer)
      sources_[peer] = peer == rank() ? source : sourceOf(peer);
    forEachRun(parts, rank(), [&](std::size_t, std::size_t w, std::size_t count) {
      reduceAll(to + w * element, sources_.data(), w, count, request);
    });
    meet(request);
    for (int step = 1; step < size(); ++step) {
      int peer = (rank() + step) % size();
      forEachRun(parts, peer, [&](std::size_t, std::size_t w, std::size_t count) {
        copyBytes(to + w * element, targetOf(peer) + w * element, count * element);
      });
    }
    return meet(request);
  }

  // Every rank sums everything, in pieces that fit beside the sources.
  alignas(64) char sum[kSmallBytes];
  if (!staged) {
    for (int peer = 0; peer < size(); ++peer)
      sources_[peer] = peer == rank() ? source : sourceOf(peer);
    reduceAll(sum, sources_.data(), 0, all, request);
    meet(request); // all have read before anyone writes: the target may be the source
    std::memcpy(to, sum, all * element);
    return;
  }
  for (int peer = 0; peer < size(); ++peer)
    sources_[peer] = stagingOf(peer);
  const std::size_t room = kStagingBytes / element;
  for (std::size_t low = 0; low < all; low += room) {
    const std::size_t count = std::min(all - low, room);
    std::memcpy(stagingOf(rank()), static_cast<const char *>(source) + low * element,
                count * element);
    meet(request);
    reduceAll(to + low * element, sources_.data(), 0, count, request);
    meet(request);
  }
}

void SharedMemoryCommunicator::doBarrier(const Request &request) { open(request, nullptr); }

} // namespace fsdp::rt
