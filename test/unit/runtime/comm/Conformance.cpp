#include "test/unit/runtime/comm/Conformance.h"

#include "test/Extent.h"

#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

using namespace base;
using namespace fsdp::rt;

namespace {

// What rank `r` of a group holds at index i. `rough` values do not add up exactly in floating
// point, so that only the same order of summation gives the same bits; the others are small whole
// numbers.
template <class T> T valueAt(int r, std::size_t i, bool rough) {
  long whole = static_cast<long>((i * 7 + static_cast<std::size_t>(r) * 13) % 101) - 50;
  if (std::is_integral_v<T> || !rough)
    return static_cast<T>(whole * (r + 1));
  const auto exponent = (static_cast<std::size_t>(r) * 5 + i % 17) % 23;
  return static_cast<T>((1.0 / 3 + static_cast<double>(whole)) *
                        static_cast<double>(1L << exponent));
}

// Sums of bf16 are rounded once.
template <class T> T combined(ReduceOp op, int ranks, std::size_t i, bool rough) {
  using Sum = std::conditional_t<std::is_same_v<T, bf16>, float, T>;
  Sum result = valueAt<T>(0, i, rough);
  for (int r = 1; r < ranks; ++r) {
    Sum next = valueAt<T>(r, i, rough);
    result =
        op == ReduceOp::Sum ? static_cast<Sum>(result + next) : (next > result ? next : result);
  }
  return static_cast<T>(result);
}

/// Where the suite's buffers lie: in the arena, on the heap, or (badly mixed) by the parity of the
/// rank.
enum class Place { Arena, Heap, Mixed };

template <class T> class Suite {
public:
  Suite(Job &job, Communicator &comm, Place place)
      : job_(job), comm_(comm),
        heap_(place == Place::Heap || (place == Place::Mixed && comm.rank() % 2)) {}

  std::size_t run() {
    for (ShardLayout tile : tiles()) {
      gather(tile);
      for (bool rough : {false, true})
        for (ReduceOp op : {ReduceOp::Sum, ReduceOp::Max})
          scatter(tile, op, rough);
    }
    for (std::size_t count : {0, 1, 5, 1023, 1024, 1025, 5000})
      for (bool rough : {false, true})
        for (ReduceOp op : {ReduceOp::Sum, ReduceOp::Max})
          for (bool inPlace : {false, true})
            reduce(count, op, rough, inPlace);
    for (std::size_t count : {0, 1, 333, 5000})
      for (int root = 0; root < comm_.size(); root += comm_.size() - 1 ? comm_.size() - 1 : 1) {
        broadcast(count, root);
        broadcastInto(count, root);
      }
    inPlaceParts();
    groups();
    for (const AllToAllLayout &layout : exchanges())
      exchange(layout);
    for (const RepartitionLayout &layout : repartitions())
      repartition(layout);
    refuseTransfers();
    for (std::size_t count : {0, 1, 333, 5000}) {
      ring(count);
      chain(count);
      inOrder(count);
    }
    refusePermutations();
    for (const std::vector<int> &sources : permutations())
      for (std::size_t count : {0, 1, 333, 5000})
        permute(sources, count);
    return compared_;
  }

  /// Sizes beyond the capacity of the staging area.
  std::size_t runLarge() {
    const std::size_t n = comm_.size(), local = (std::size_t(1) << 20) / sizeof(T) + 777;
    const ShardLayout tile{1, local, 1, local * n - 5}, rows{2, local / 2 + 1, 1, local / 2 * n};
    for (ShardLayout large : {tile, rows}) {
      gather(large);
      scatter(large, ReduceOp::Sum, true);
    }
    reduce(local, ReduceOp::Sum, true, false);
    reduce(local, ReduceOp::Sum, true, true);
    group({tile, rows});
    broadcast(local, comm_.size() - 1);
    exchange({2, 1, 3, local / 6 / n, local / 6 / n * n - 1, 2, 2 * n - 1, true});
    exchange({1, 1, 1, local / 2, local / 2 * n, 2, 2 * n, false});
    repartition({1, local, 1, local - 1000});
    for (const std::vector<int> &sources : permutations())
      permute(sources, local);
    ring(local);
    chain(local);
    inOrder(local);
    return compared_;
  }

private:
  static constexpr std::size_t kGuard = 16;

  // Flat and in the middle of a tensor; sizes that divide, that do not, that leave ranks with
  // nothing, and with more padding than needed.
  std::vector<ShardLayout> tiles() const {
    const std::size_t n = comm_.size();
    std::vector<ShardLayout> tiles;
    std::vector<std::size_t> totals = {0, n + 1, 1000};
    if (std::is_same_v<T, float>) // other types differ in their arithmetic only
      totals = {0, 1, n - 1, n, n + 1, 5 * n, 5 * n + 3, 1000};
    for (std::size_t total : totals)
      for (std::size_t outer : {1, 3})
        for (std::size_t inner : {1, 4}) {
          std::size_t local = (total + n - 1) / n;
          tiles.push_back({outer, local, inner, total});
          tiles.push_back({outer, local + 16, inner, total});
        }
    tiles.push_back({0, 2, 3, 2});
    return tiles;
  }

  // Sizes that divide, that do not, that leave ranks with nothing, on either side; none at all.
  std::vector<AllToAllLayout> exchanges() const {
    const std::size_t n = comm_.size();
    std::vector<AllToAllLayout> layouts;
    std::vector<std::size_t> totals = {1, n + 1, 3 * n};
    if (std::is_same_v<T, float>)
      totals = {0, 1, n, n + 1, 3 * n, 5 * n - 1};
    for (std::size_t split : totals)
      for (std::size_t concat : totals)
        for (bool first : {true, false})
          for (std::size_t rest : {1, 2}) // all three beside 1, or outer 2, middle 4, inner 5
            layouts.push_back({rest, rest * rest, rest == 1 ? 1 : std::size_t(5),
                               (split + n - 1) / n, split, (concat + n - 1) / n, concat, first});
    return layouts;
  }
  // Parts that grow, shrink (the rest is dropped), stay, begin or end empty.
  std::vector<RepartitionLayout> repartitions() const {
    std::vector<RepartitionLayout> layouts;
    for (std::size_t given : {0, 1, 5, 6, 64})
      for (std::size_t received : {0, 1, 5, 6, 64})
        for (std::size_t outer : {1, 3})
          layouts.push_back({outer, given, outer == 1 ? std::size_t(1) : std::size_t(4), received});
    return layouts;
  }
  // All stay; all turn round; a shift, a rank receiving nothing; none receives anything.
  std::vector<std::vector<int>> permutations() const {
    const int n = comm_.size();
    std::vector<std::vector<int>> all(4);
    for (int r = 0; r < n; ++r) {
      all[0].push_back(r);
      all[1].push_back(n - 1 - r);
      all[2].push_back(r - 1);
      all[3].push_back(-1);
    }
    return all;
  }

  /// `count` elements between two guards, all `garbage` at first.
  template <class Asked>
  void perform(CollectiveKind kind, const Asked &asked, std::size_t count, const T *source,
               T *target) {
    comm_.perform(kind, asked, count, dtypeOf<T>, source, target);
  }
  static SourceRanks tableOf(const std::vector<int> &sources) {
    return {sources.data(), static_cast<int>(sources.size())};
  }

  T *buffer(int which, std::size_t count) {
    const std::size_t bytes = (count + 2 * kGuard) * sizeof(T);
    T *start;
    if (heap_) {
      heapBuffers_[which].assign(count + 2 * kGuard, garbage());
      start = heapBuffers_[which].data();
    } else {
      const std::size_t half = job_.arenaBytes() / 2;
      if (bytes > half)
        throw Error("the suite's arena is too small");
      start = reinterpret_cast<T *>(job_.arena() + which * half);
      std::fill(start, start + count + 2 * kGuard, garbage());
    }
    counts_[which] = count;
    starts_[which] = start;
    return start + kGuard;
  }
  static T garbage() { return static_cast<T>(std::is_integral_v<T> ? -77777 : NAN); }

  void checkGuards(const char *what) {
    for (int which : {0, 1})
      for (std::size_t i = 0; i < kGuard; ++i)
        for (T *at : {starts_[which] + i, starts_[which] + kGuard + counts_[which] + i}) {
          T expected = garbage();
          if (std::memcmp(at, &expected, sizeof(T)))
            throw Error(format("%s touched memory beside its buffers", what));
        }
  }
  void check(const char *what, std::size_t i, T got, T expected) {
    ++compared_;
    if (std::memcmp(&got, &expected, sizeof(T)))
      throw Error(format("%s over '%s' (%s): element %zu got %.17g, expected %.17g", what,
                         comm_.name().c_str(), nameOf(dtypeOf<T>), i, static_cast<double>(got),
                         static_cast<double>(expected)));
  }

  // Element (o, t, k) of the whole, t in this rank's part, is element (o, t - first, k) of the
  // piece.
  void fillPiece(ShardLayout tile, T *piece) {
    const std::size_t me = comm_.rank();
    for (std::size_t o = 0; o < tile.outer; ++o)
      for (std::size_t l = 0; l < tile.held(me); ++l)
        for (std::size_t k = 0; k < tile.inner; ++k) {
          std::size_t at = (o * tile.total + me * tile.local + l) * tile.inner + k;
          piece[(o * tile.local + l) * tile.inner + k] = valueAt<T>(3, at, true);
        }
  }
  void checkGathered(const char *name, ShardLayout tile, const T *whole) {
    for (std::size_t i = 0; i < tile.wholeCount(); ++i)
      check(name, i, whole[i], valueAt<T>(3, i, true));
  }

  void gather(ShardLayout tile) {
    T *piece = buffer(0, tile.pieceCount()), *whole = buffer(1, tile.wholeCount());
    fillPiece(tile, piece);
    comm_.allGather(piece, whole, tile);
    checkGathered("all_gather", tile, whole);
    checkGuards("all_gather");
  }

  void fillWhole(ShardLayout tile, bool rough, T *whole) {
    for (std::size_t i = 0; i < tile.wholeCount(); ++i)
      whole[i] = valueAt<T>(comm_.rank(), i, rough);
  }
  Communicator::Request scatterOf(ShardLayout tile, ReduceOp op) const {
    auto request = Communicator::Request::of(CollectiveKind::ReduceScatter, tile, 0, dtypeOf<T>);
    request.op = op;
    return request;
  }
  void checkScattered(const char *name, ShardLayout tile, ReduceOp op, bool rough, const T *piece) {
    const std::size_t me = comm_.rank();
    for (std::size_t o = 0; o < tile.outer; ++o)
      for (std::size_t l = 0; l < tile.local; ++l)
        for (std::size_t k = 0; k < tile.inner; ++k) {
          std::size_t at = (o * tile.total + me * tile.local + l) * tile.inner + k;
          std::size_t in = (o * tile.local + l) * tile.inner + k;
          bool padding = l >= tile.held(me);
          check(name, in, piece[in], padding ? T(0) : combined<T>(op, comm_.size(), at, rough));
        }
  }

  void scatter(ShardLayout tile, ReduceOp op, bool rough) {
    T *piece = buffer(0, tile.pieceCount()), *whole = buffer(1, tile.wholeCount());
    fillWhole(tile, rough, whole);
    comm_.perform(scatterOf(tile, op), whole, piece);
    checkScattered("reduce_scatter", tile, op, rough, piece);
    checkGuards("reduce_scatter");
  }

  // Pieces and wholes of a group stand one after another, each aligned as in an arena.
  void group(const std::vector<ShardLayout> &tiles) {
    const auto padded = [](std::size_t count) { return (count + 31) / 32 * 32; };
    std::size_t pieces = 0, wholes = 0;
    for (ShardLayout tile : tiles)
      pieces += padded(tile.pieceCount()), wholes += padded(tile.wholeCount());
    for (bool gathers : {true, false}) {
      T *piece = buffer(0, pieces), *whole = buffer(1, wholes);
      std::vector<GroupedCollective> members;
      for (ShardLayout tile : tiles) {
        if (gathers) {
          fillPiece(tile, piece);
          members.push_back(
              {Communicator::Request::of(CollectiveKind::AllGather, tile, 0, dtypeOf<T>), piece,
               whole});
        } else {
          fillWhole(tile, true, whole);
          members.push_back({scatterOf(tile, ReduceOp::Sum), whole, piece});
        }
        piece += padded(tile.pieceCount()), whole += padded(tile.wholeCount());
      }
      comm_.performGroup(members.data(), members.size());
      for (std::size_t i = 0; i < tiles.size(); ++i)
        if (gathers)
          checkGathered("all_gather of a group", tiles[i], static_cast<T *>(members[i].target));
        else
          checkScattered("reduce_scatter of a group", tiles[i], ReduceOp::Sum, true,
                         static_cast<T *>(members[i].target));
      checkGuards("group");
    }
  }

  void groups() {
    const std::size_t n = comm_.size();
    const ShardLayout even{1, 40, 1, 40 * n}, uneven{1, 48, 1, 48 * n - 9}, small{1, 16, 1, n},
        rows{3, 5, 4, 5 * n - 1}, none{1, 0, 1, 0};
    group({uneven});
    group({even, uneven});
    group({small, rows, uneven, none, even});
    group(std::vector<ShardLayout>(limits::kMaxGroupedCollectives, uneven));
    const GroupedCollective gathers{
        Communicator::Request::of(CollectiveKind::AllGather, even, 0, dtypeOf<T>), nullptr,
        nullptr},
        scatters{scatterOf(even, ReduceOp::Sum), nullptr, nullptr};
    refuse({gathers, scatters},
           "expected only all_gather or only reduce_scatter; perform the others apart");
    refuse(std::vector<GroupedCollective>(limits::kMaxGroupedCollectives + 1, gathers),
           "got 9 collectives, expected 1..8; perform the others in another group");
  }

  void refuse(const std::vector<GroupedCollective> &members, const char *expected) {
    try {
      comm_.performGroup(members.data(), members.size());
    } catch (const Error &error) {
      if (std::string(error.what()).find(expected) == std::string::npos)
        throw;
      ++compared_;
      return;
    }
    throw Error(format("a group was not refused: %s", expected));
  }

  void reduce(std::size_t count, ReduceOp op, bool rough, bool inPlace) {
    T *source = buffer(0, count), *target = buffer(1, count);
    for (std::size_t i = 0; i < count; ++i)
      source[i] = valueAt<T>(comm_.rank(), i, rough);
    T *result = inPlace ? source : target;
    comm_.allReduce(source, result, count, op);
    for (std::size_t i = 0; i < count; ++i)
      check(inPlace ? "all_reduce in place" : "all_reduce", i, result[i],
            combined<T>(op, comm_.size(), i, rough));
    checkGuards("all_reduce");
  }

  void broadcast(std::size_t count, int root) {
    T *data = buffer(0, count);
    for (std::size_t i = 0; i < count; ++i)
      data[i] = valueAt<T>(comm_.rank(), i, true);
    comm_.broadcast(data, count * sizeof(T), root);
    for (std::size_t i = 0; i < count; ++i)
      check("broadcast", i, data[i], valueAt<T>(root, i, true));
  }

  void refusePermutations() {
    const struct {
      std::vector<int> sources;
      std::string text;
    } cases[] = {
        {{0, 2}, "collective_permute got rank 2 as the source of rank 1, expected -1..1"},
        {{-2, 0}, "collective_permute got rank -2 as the source of rank 0, expected -1..1"},
        {{1, 1},
         "collective_permute got rank 1 as the source of ranks 0 and 1, expected of one at most"}};
    for (const auto &wrong : cases) {
      std::string got;
      try {
        Communicator::Request::of(CollectiveKind::Permute, tableOf(wrong.sources), 1, dtypeOf<T>);
      } catch (const Error &error) {
        got = error.what();
      }
      if (got.find(wrong.text) == std::string::npos)
        throw Error(format("a permute of wrong sources says '%s', expected '%s'", got.c_str(),
                           wrong.text.c_str()));
    }
  }

  void broadcastInto(std::size_t count, int root) {
    T *source = buffer(0, count), *target = buffer(1, count);
    for (std::size_t i = 0; i < count; ++i)
      source[i] = valueAt<T>(comm_.rank(), i, true);
    perform(CollectiveKind::Broadcast, Root{root}, count, source, target);
    for (std::size_t i = 0; i < count; ++i)
      check("broadcast into another buffer", i, target[i], valueAt<T>(root, i, true));
    checkGuards("broadcast");
  }

  // Element (o, s, m, c, k) of the whole for dimensions in this order, or with s and c swapped.
  void exchange(const AllToAllLayout &l) {
    T *source = buffer(0, l.sourceCount()), *target = buffer(1, l.targetCount());
    const std::size_t me = comm_.rank();
    const auto at = [&](std::size_t splits, std::size_t concats, std::size_t o, std::size_t s,
                        std::size_t m, std::size_t c, std::size_t k) {
      return l.splitFirst ? (((o * splits + s) * l.middle + m) * concats + c) * l.inner + k
                          : (((o * concats + c) * l.middle + m) * splits + s) * l.inner + k;
    };
    for (std::size_t o = 0; o < l.outer; ++o)
      for (std::size_t s = 0; s < l.splitTotal; ++s)
        for (std::size_t m = 0; m < l.middle; ++m)
          for (std::size_t c = 0; c < l.concat().held(me); ++c)
            for (std::size_t k = 0; k < l.inner; ++k)
              source[at(l.splitTotal, l.concatLocal, o, s, m, c, k)] = valueAt<T>(
                  3, at(l.splitTotal, l.concatTotal, o, s, m, me * l.concatLocal + c, k), true);
    perform(CollectiveKind::AllToAll, l, 0, source, target);
    for (std::size_t o = 0; o < l.outer; ++o)
      for (std::size_t s = 0; s < l.splitLocal; ++s)
        for (std::size_t m = 0; m < l.middle; ++m)
          for (std::size_t c = 0; c < l.concatTotal; ++c)
            for (std::size_t k = 0; k < l.inner; ++k) {
              const std::size_t in = at(l.splitLocal, l.concatTotal, o, s, m, c, k);
              const bool padding = s >= l.split().held(me);
              check("all_to_all", in, target[in],
                    padding
                        ? T(0)
                        : valueAt<T>(
                              3, at(l.splitTotal, l.concatTotal, o, me * l.splitLocal + s, m, c, k),
                              true));
            }
    checkGuards("all_to_all");
  }

  // Every index of the cut dimension that a rank holds is global.
  void repartition(const RepartitionLayout &l) {
    T *source = buffer(0, l.outer * l.given * l.inner),
      *target = buffer(1, l.outer * l.received * l.inner);
    const std::size_t me = comm_.rank(), total = l.given * comm_.size();
    const auto value = [&](std::size_t o, std::size_t i, std::size_t k) {
      return valueAt<T>(3, (o * total + i) * l.inner + k, true);
    };
    for (std::size_t o = 0; o < l.outer; ++o)
      for (std::size_t i = 0; i < l.given; ++i)
        for (std::size_t k = 0; k < l.inner; ++k)
          source[(o * l.given + i) * l.inner + k] = value(o, me * l.given + i, k);
    perform(CollectiveKind::Repartition, l, 0, source, target);
    for (std::size_t o = 0; o < l.outer; ++o)
      for (std::size_t i = 0; i < l.received; ++i)
        for (std::size_t k = 0; k < l.inner; ++k) {
          const std::size_t in = (o * l.received + i) * l.inner + k, index = me * l.received + i;
          check("repartition", in, target[in], index < total ? value(o, index, k) : T(0));
        }
    checkGuards("repartition");
  }

  void permute(const std::vector<int> &sources, std::size_t count) {
    T *source = buffer(0, count), *target = buffer(1, count);
    for (std::size_t i = 0; i < count; ++i)
      source[i] = valueAt<T>(comm_.rank(), i, true);
    perform(CollectiveKind::Permute, tableOf(sources), count, source, target);
    const int from = sources[static_cast<std::size_t>(comm_.rank())];
    for (std::size_t i = 0; i < count; ++i)
      check("permute", i, target[i], from < 0 ? T(0) : valueAt<T>(from, i, true));
    checkGuards("permute");
  }

  // What rank `r` sends as its message `number`; messages of two ranks differ in size.
  static std::size_t sizeOf(std::size_t count, int r) {
    return count ? count + static_cast<std::size_t>(r) : 0;
  }
  void send(std::size_t count, int to, int number = 0) {
    const std::size_t size = sizeOf(count, comm_.rank());
    T *source = buffer(0, size);
    for (std::size_t i = 0; i < size; ++i)
      source[i] = valueAt<T>(comm_.rank() + number, i, true);
    comm_.send(source, size, dtypeOf<T>, to);
    checkGuards("send");
  }
  void receive(std::size_t count, int from, int number = 0) {
    const std::size_t size = sizeOf(count, from);
    T *target = buffer(1, size);
    comm_.receive(target, size, dtypeOf<T>, from);
    for (std::size_t i = 0; i < size; ++i)
      check("receive", i, target[i], valueAt<T>(from + number, i, true));
    checkGuards("receive");
  }
  // Every rank sends to the next one, the last one to the first.
  void ring(std::size_t count) {
    const int n = comm_.size(), me = comm_.rank(), next = (me + 1) % n, before = (me + n - 1) % n;
    if (n == 1)
      return;
    if (me % 2 == 0)
      send(count, next);
    receive(count, before);
    if (me % 2)
      send(count, next);
  }
  // As a program of all ranks does it: send up, then receive; the last rank only receives.
  void chain(std::size_t count) {
    if (comm_.rank() + 1 < comm_.size())
      send(count, comm_.rank() + 1);
    if (comm_.rank())
      receive(count, comm_.rank() - 1);
  }
  // Several from one rank to another one, on which others do not wait, and one back.
  void inOrder(std::size_t count) {
    const int last = comm_.size() - 1, me = comm_.rank();
    for (int number = 0; number < 3 && last; ++number) {
      if (me == 0)
        send(number == 1 ? 0 : count, last, number);
      if (me == last)
        receive(number == 1 ? 0 : count, 0, number);
    }
    if (me == 0 && last)
      receive(7, last);
    if (me == last && last)
      send(7, 0);
  }
  void refuseTransfers() {
    T value{};
    for (int peer : {-1, comm_.rank(), comm_.size()})
      for (bool sends : {true, false}) {
        std::string got;
        try {
          if (sends)
            comm_.send(&value, 1, dtypeOf<T>, peer);
          else
            comm_.receive(&value, 1, dtypeOf<T>, peer);
        } catch (const Error &error) {
          got = error.what();
        }
        const std::string expected = format(
            "%s over '%s' on rank %d of the group got peer %d, expected another rank of 0..%d",
            sends ? "send" : "receive", comm_.name().c_str(), comm_.rank(), peer, comm_.size() - 1);
        if (got.find(expected) == std::string::npos)
          throw Error(format("a transfer with rank %d says '%s', expected '%s'", peer, got.c_str(),
                             expected.c_str()));
      }
  }

  // A piece that is its own part of the whole.
  void inPlaceParts() {
    const std::size_t local = 1234, me = comm_.rank();
    ShardLayout tile{1, local, 1, local * comm_.size()};
    T *whole = buffer(0, tile.total);
    for (std::size_t i = 0; i < tile.total; ++i)
      whole[i] = valueAt<T>(comm_.rank(), i, true);
    perform(CollectiveKind::ReduceScatter, tile, 0, whole, whole + me * local);
    for (std::size_t l = 0; l < local; ++l)
      check("reduce_scatter in place", l, whole[me * local + l],
            combined<T>(ReduceOp::Sum, comm_.size(), me * local + l, true));
    comm_.allGather(whole + me * local, whole, tile);
    for (std::size_t i = 0; i < tile.total; ++i)
      check("all_gather in place", i, whole[i], combined<T>(ReduceOp::Sum, comm_.size(), i, true));
  }

  Job &job_;
  Communicator &comm_;
  bool heap_;
  std::size_t compared_ = 0;
  std::vector<T> heapBuffers_[2];
  T *starts_[2] = {};
  std::size_t counts_[2] = {};
};

} // namespace

std::size_t runConformance(Job &job) {
  std::size_t compared = 0;
  const int programs = static_cast<int>(job.options().communicators.size());
  for (int index = 0; index <= programs; ++index) {
    std::unique_ptr<Communicator> comm = job.communicator(index);
    const AxisList axes = index < programs ? job.options().communicators[index].axes : AxisList{};
    if (index < programs) {
      int expected = 0;
      for (int axis : axes)
        expected = expected * job.mesh().axisSize(axis) + job.mesh().coordinate(job.rank(), axis);
      if (comm->rank() != expected)
        throw Error(format("communicator '%s' got rank %d, expected %d", comm->name().c_str(),
                           comm->rank(), expected));
    }
    for (Place place : {Place::Arena, Place::Heap, Place::Mixed}) {
      compared += Suite<float>(job, *comm, place).run();
      // Other types differ in their arithmetic, which does not depend on the group.
      if (place == Place::Mixed || (index > 0 && !fsdp::test::isWhole()))
        continue;
      compared += Suite<double>(job, *comm, place).run();
      compared += Suite<bf16>(job, *comm, place).run();
      compared += Suite<std::int32_t>(job, *comm, place).run();
      compared += Suite<std::int64_t>(job, *comm, place).run();
      if (index == 0)
        compared += Suite<double>(job, *comm, place).runLarge();
    }
    // One kind directly after another: no rank may mistake a peer's next request for its last.
    for (std::uint64_t i = 0; i < 400; ++i) {
      std::int64_t value = 1;
      comm->barrier();
      if (i % 4 == 0)
        comm->allReduce(&value, &value, 0);
    }
  }
  return compared;
}
