//===- Collectives.cpp - textbook formulas, with their sources ------------===//
//
// S bytes of the whole value, P ranks, B bytes/s of a rank's link, alpha seconds a step:
//
//   ring          all-gather, reduce-scatter: (P-1)/P * S/B + (P-1) * alpha; all-reduce: twice that
//                 broadcast, in small pieces: S/B + (P-1) * alpha
//                 (Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms, JPDC 2009)
//   recursive     doubling and halving: (P-1)/P * S/B + ceil(log2 P) * alpha; all-reduce: twice
//                 that
//                 (Thakur, Rabenseifner, Gropp: Optimization of collective communication
//                 operations in MPICH, IJHPCA 2005)
//   tree          two binary trees, in small pieces: all-reduce 2 * S/B + 2 * ceil(log2 P) * alpha,
//                 broadcast S/B + ceil(log2 P) * alpha
//                 (Sanders, Speck, Traeff: Two-tree algorithms for full bandwidth broadcast,
//                 reduction and scan, Parallel Computing 2009; NCCL's "Tree")
//   hierarchical  an all-gather by levels, the outermost first: among the n blocks of a level, each
//                 of whose g ranks has a part of the value, (n-1)/n * (S/g)/B + (n-1) * alpha;
//                 a reduce-scatter in reverse; an all-reduce is both
//                 (Thakur, Rabenseifner, Gropp; Karonis et al.: MPICH-G2, JPDC 2003)
//   direct        every rank reads the others' data in shared memory: (P-1)/P * S/B + alpha;
//                 all-reduce as a reduce-scatter and an all-gather
//
// A ring passes the border of a block once for each of the block's ranks that the group has (NCCL
// builds as many rings as there are network cards, one for each GPU), so that it has the bandwidth
// of all of them: B = min over levels i of g(i-1) * B(i). Pairs exchange parts in an all-to-all:
// level i carries (g(i) - g(i-1))/P * S of a rank's bytes.
//
//===----------------------------------------------------------------------===//

#include "passes/cost/Collectives.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>

using namespace mlir::fsdp::cost;

GroupShape mlir::fsdp::cost::shapeOf(llvm::ArrayRef<int64_t> group, const Machine &machine) {
  GroupShape shape;
  for (const Link &link : machine.links) {
    std::map<int64_t, int64_t> blocks;
    for (int64_t rank : group)
      ++blocks[link.ranks ? rank / link.ranks : 0];
    shape.perLevel.push_back(blocks.empty() ? 0
                                            : llvm::min_element(blocks, [](auto &one, auto &other) {
                                                return one.second < other.second;
                                              })->second);
  }
  // A machine that is too small for the group is refused earlier (findMachine).
  if (!shape.perLevel.empty())
    shape.perLevel.back() = static_cast<int64_t>(group.size());
  return shape;
}

GroupShape mlir::fsdp::cost::slowerOf(const GroupShape &one, const GroupShape &other) {
  GroupShape shape = one;
  for (auto [level, ranks] : llvm::enumerate(shape.perLevel))
    ranks = std::min(ranks, other.perLevel[level]);
  return shape;
}

namespace {

/// A level of the links that messages of a group pass: `blocks` of `size` ranks each.
struct PassedLevel {
  const Link *link;
  double size, blocks;
};

} // namespace

static std::vector<PassedLevel> levelsOf(const GroupShape &group, const Machine &machine) {
  std::vector<PassedLevel> levels;
  int64_t size = 1;
  for (auto [level, ranks] : llvm::enumerate(group.perLevel)) {
    if (ranks > size)
      levels.push_back({&machine.links[level], static_cast<double>(size),
                        static_cast<double>(llvm::divideCeil(ranks, size))});
    size = std::max(size, ranks);
  }
  return levels;
}

std::optional<CollectiveTime> mlir::fsdp::cost::timeBy(const std::string &algorithm,
                                                       const std::string &kind, double bytes,
                                                       const GroupShape &group,
                                                       const Machine &machine) {
  const std::vector<PassedLevel> levels = levelsOf(group, machine);
  if (levels.empty())
    return CollectiveTime();
  const double P = static_cast<double>(group.ranks()), S = bytes;
  const double steps = std::ceil(std::log2(P));
  // Of rings, and of all algorithms that send along one path.
  double B = HUGE_VAL, alpha = 0, slowest = HUGE_VAL;
  for (const PassedLevel &level : levels) {
    B = std::min(B, level.size * level.link->bandwidthOf(kind));
    slowest = std::min(slowest, level.link->bandwidthOf(kind));
    alpha = std::max(alpha, level.link->latency);
  }
  const bool reduces = kind == "all_reduce",
             gathers = kind == "all_gather" || kind == "reduce_scatter";
  const double times = reduces ? 2 : 1, part = (P - 1) / P * S;
  auto result = [&](double seconds, double busBytes) {
    return CollectiveTime{seconds, algorithm, busBytes, B};
  };
  if (kind == "all_to_all") {
    double sending = 0;
    for (const PassedLevel &level : levels)
      sending = std::max(sending,
                         (level.blocks - 1) * level.size / P * S / level.link->bandwidthOf(kind));
    return CollectiveTime{sending + (algorithm == "direct" ? 1 : P - 1) * alpha, algorithm, part,
                          sending > 0 ? part / sending : B};
  }
  if (kind == "broadcast") {
    if (algorithm == "ring" || algorithm == "direct")
      return result(S / B + (algorithm == "ring" ? P - 1 : 1) * alpha, S);
    if (algorithm == "tree")
      return result(S / B + steps * alpha, S);
    return std::nullopt;
  }
  // Between pairs of ranks: permutations, sends and receives.
  if (!reduces && !gathers)
    return CollectiveTime{S / slowest + alpha, algorithm, S, slowest};
  if (algorithm == "ring")
    return result(times * (part / B + (P - 1) * alpha), times * part);
  if (algorithm == "recursive")
    return result(times * (part / B + steps * alpha), times * part);
  if (algorithm == "direct")
    return result(times * (part / B + alpha), times * part);
  if (algorithm == "tree" && reduces)
    return result(2 * S / B + 2 * steps * alpha, times * part);
  if (algorithm == "hierarchical") {
    double sending = 0, latencies = 0;
    for (const PassedLevel &level : levels) {
      sending +=
          (level.blocks - 1) / level.blocks * (S / level.size) / level.link->bandwidthOf(kind);
      latencies += (level.blocks - 1) * level.link->latency;
    }
    return CollectiveTime{times * (sending + latencies), algorithm, times * part,
                          sending > 0 ? part / sending : B};
  }
  return std::nullopt;
}

CollectiveTime mlir::fsdp::cost::timeOf(const std::string &kind, double bytes,
                                        const GroupShape &group, const Machine &machine) {
  std::optional<CollectiveTime> best;
  for (const std::string &algorithm : machine.algorithms)
    if (std::optional<CollectiveTime> time = timeBy(algorithm, kind, bytes, group, machine))
      if (!best || time->seconds < best->seconds)
        best = time;
  // Every kind has a ring.
  return best ? *best : *timeBy("ring", kind, bytes, group, machine);
}
