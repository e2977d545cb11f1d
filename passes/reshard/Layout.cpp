//===- Layout.cpp - every move out of a layout ----------------------------===//

#include "passes/reshard/Layout.h"

#include <algorithm>

using namespace mlir::fsdp::reshard;

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

size_t LayoutHash::operator()(const Layout &layout) const {
  uint64_t hash = 14695981039346656037u ^ layout.partial ^ (layout.moved ? 256u : 0u);
  auto add = [&](uint64_t value) { hash = (hash ^ value) * 1099511628211u; };
  for (int d = 0; d < kMaxDims; ++d) {
    for (int8_t atom : layout.dims[d])
      add(static_cast<uint64_t>(atom + 1 + 16 * d));
    add(static_cast<uint64_t>(layout.block[d]));
  }
  return hash;
}

LayoutTransitions::LayoutTransitions(const Problem &problem, const SubAxes &atoms)
    : problem(problem), atoms(atoms), exhaustive(atoms.atoms.size() <= SubAxes::kExhaustive) {
  // Sums are scattered along any dimension: of those that nothing splits, one stands for all, the
  // longest.
  int longest = -1;
  for (int d = 0; d < static_cast<int>(problem.shape.size()); ++d) {
    if (!atoms.from.dims[d].empty() || !atoms.to.dims[d].empty())
      active.push_back(d);
    else if (longest < 0 || problem.shape[d] > problem.shape[longest])
      longest = d;
  }
  if (longest >= 0 && active.size() < kMaxDims)
    active.push_back(longest);
  otherBytes = problem.elementBytes;
  for (int d = 0; d < static_cast<int>(problem.shape.size()); ++d)
    if (std::find(active.begin(), active.end(), d) == active.end())
      otherBytes *= problem.shape[d];
  for (int d : active)
    sizes.push_back(problem.shape[d]);
}

int64_t LayoutTransitions::sizeOf(const SubAxisList &list) const {
  int64_t size = 1;
  for (int8_t atom : list)
    size *= atoms.atoms[atom].size;
  return size;
}

int64_t LayoutTransitions::localBytes(const Layout &layout) const {
  int64_t bytes = otherBytes;
  for (size_t d = 0; d < active.size(); ++d)
    bytes *= layout.block[d];
  return bytes;
}

Layout LayoutTransitions::first() const {
  Layout layout;
  for (size_t d = 0; d < active.size(); ++d) {
    for (int atom : atoms.from.dims[active[d]])
      layout.dims[d].push(atom);
    layout.block[d] = ceilDiv(sizes[d], sizeOf(layout.dims[d]));
  }
  for (int atom : atoms.from.partial)
    layout.partial |= 1 << atom;
  layout.moved = problem.fromOrder == problem.toOrder;
  return layout;
}

bool LayoutTransitions::isLast(const Layout &layout) const {
  int partial = 0;
  for (int atom : atoms.to.partial)
    partial |= 1 << atom;
  if (!layout.moved || layout.partial != partial)
    return false;
  for (size_t d = 0; d < active.size(); ++d) {
    const std::vector<int> &wanted = atoms.to.dims[active[d]];
    if (!std::equal(layout.dims[d].begin(), layout.dims[d].end(), wanted.begin(), wanted.end()) ||
        layout.block[d] != ceilDiv(sizes[d], sizeOf(layout.dims[d])))
      return false;
  }
  return true;
}

void LayoutTransitions::cost(Move &move, int64_t bytes, int messages, int mask) const {
  double latency = 0, bandwidth = 0;
  for (size_t atom = 0; atom < atoms.atoms.size(); ++atom)
    if (mask >> atom & 1) {
      const Link &link = atoms.atoms[atom].link;
      latency = std::max(latency, link.latency);
      bandwidth = bandwidth ? std::min(bandwidth, link.bytesPerSecond) : link.bytesPerSecond;
    }
  move.bytes = bytes;
  move.seconds = messages * latency + (bytes ? static_cast<double>(bytes) / bandwidth : 0);
}

static int maskOf(const SubAxisList &list) {
  int mask = 0;
  for (int8_t atom : list)
    mask |= 1 << atom;
  return mask;
}

/// The atoms that split no dimension and over which nothing is to be summed.
static int replicatedIn(const Layout &layout, size_t atoms) {
  int mask = (1 << atoms) - 1;
  for (const SubAxisList &list : layout.dims)
    mask &= ~maskOf(list);
  return mask & ~layout.partial;
}

void LayoutTransitions::forEachList(int mask,
                                    const std::function<void(const SubAxisList &)> &visit) const {
  SubAxisList list;
  auto extend = [&](auto &self, int rest) -> void {
    for (size_t atom = 0; atom < atoms.atoms.size(); ++atom)
      if (rest >> atom & 1) {
        list.push(static_cast<int>(atom));
        visit(list);
        self(self, rest & ~(1 << atom));
        --list.count;
      }
  };
  extend(extend, mask);
}

bool LayoutTransitions::split(Layout &layout, int dim, const SubAxisList &list) const {
  const int64_t ranks = sizeOf(list);
  const bool whole = layout.dims[dim].count == 0;
  if (!whole && layout.block[dim] % ranks)
    return false;
  layout.block[dim] = ceilDiv(layout.block[dim], ranks);
  for (int8_t atom : list)
    layout.dims[dim].push(atom);
  return true;
}

void LayoutTransitions::slices(const Layout &layout, const Visitor &visit) const {
  forEachList(replicatedIn(layout, atoms.atoms.size()), [&](const SubAxisList &list) {
    for (size_t d = 0; d < active.size(); ++d) {
      Layout result = layout;
      if (!split(result, static_cast<int>(d), list) ||
          !(exhaustive || leadsOn(result.dims[d], static_cast<int>(d))))
        continue;
      Move move{Kind::slice, static_cast<int8_t>(d), -1, list};
      visit(move, result);
    }
  });
}

void LayoutTransitions::gathersAndExchanges(const Layout &layout, const Visitor &visit) const {
  const int64_t bytes = localBytes(layout);
  for (size_t d = 0; d < active.size(); ++d) {
    const SubAxisList &list = layout.dims[d];
    for (int keep = 0; keep < list.count; ++keep) {
      SubAxisList taken;
      for (int i = keep; i < list.count; ++i)
        taken.push(list.atoms[i]);
      const int64_t ranks = sizeOf(taken), part = layout.block[d];
      if (!keep && part != ceilDiv(sizes[d], ranks))
        continue; // more padding than the whole one's parts have: to be cut first
      Layout result = layout;
      result.dims[d].count = static_cast<int8_t>(keep);
      result.block[d] = keep ? part * ranks : sizes[d];
      Move gather{Kind::gather, static_cast<int8_t>(d), -1, taken};
      cost(gather, bytes * (ranks - 1), static_cast<int>(ranks - 1), maskOf(taken));
      visit(gather, result);
      for (size_t other = 0; other < active.size(); ++other) {
        Layout exchanged = result;
        if (other == d || !split(exchanged, static_cast<int>(other), taken))
          continue;
        Move move{Kind::allToAll, static_cast<int8_t>(d), static_cast<int8_t>(other), taken};
        const int64_t joined = exchanged.block[d];
        cost(move,
             joined ? localBytes(exchanged) / joined * std::min(joined, (ranks - 1) * part) : 0,
             static_cast<int>(ranks - 1), maskOf(taken));
        visit(move, exchanged);
      }
    }
  }
}

void LayoutTransitions::sums(const Layout &layout, const Visitor &visit) const {
  if (!layout.partial)
    return;
  const int64_t bytes = localBytes(layout);
  for (int mask = layout.partial; mask; mask = (mask - 1) & layout.partial) {
    SubAxisList list;
    for (size_t atom = 0; atom < atoms.atoms.size(); ++atom)
      if (mask >> atom & 1)
        list.push(static_cast<int>(atom));
    Layout result = layout;
    result.partial &= static_cast<uint8_t>(~mask);
    const int64_t ranks = sizeOf(list);
    Move move{Kind::allReduce, -1, -1, list};
    cost(move,
         2 * (ranks - 1) * ceilDiv(bytes / problem.elementBytes, ranks) * problem.elementBytes,
         static_cast<int>(2 * (ranks - 1)), mask);
    visit(move, result);
  }
  forEachList(layout.partial, [&](const SubAxisList &list) {
    for (size_t d = 0; d < active.size(); ++d) {
      Layout result = layout;
      result.partial &= static_cast<uint8_t>(~maskOf(list));
      if (!split(result, static_cast<int>(d), list) ||
          !(exhaustive || leadsOn(result.dims[d], static_cast<int>(d))))
        continue;
      const int64_t ranks = sizeOf(list);
      Move move{Kind::reduceScatter, static_cast<int8_t>(d), -1, list};
      cost(move, localBytes(result) * (ranks - 1), static_cast<int>(ranks - 1), maskOf(list));
      visit(move, result);
    }
  });
}

/// Parts of the size that the sharding itself says, of the last sharding's where that splits
/// further, and of sizes that other atoms split evenly.
void LayoutTransitions::repartitions(const Layout &layout, const Visitor &visit) const {
  int64_t everything = 1;
  for (const Atom &atom : atoms.atoms)
    everything *= atom.size;
  for (size_t d = 0; d < active.size(); ++d) {
    const SubAxisList &list = layout.dims[d];
    if (!list.count || !sizes[d])
      continue;
    const int64_t ranks = sizeOf(list), given = layout.block[d];
    std::vector<int64_t> wanted = {ceilDiv(sizes[d], ranks)};
    const std::vector<int> &last = atoms.to.dims[active[d]];
    if (static_cast<int>(last.size()) > list.count &&
        std::equal(list.begin(), list.end(), last.begin()))
      wanted.push_back(ceilDiv(sizes[d], atoms.sizeOf(last)) * (atoms.sizeOf(last) / ranks));
    if (exhaustive && sizes[d] % everything)
      for (int mask = 1; mask < 1 << atoms.atoms.size(); ++mask) {
        SubAxisList others;
        for (size_t atom = 0; atom < atoms.atoms.size(); ++atom)
          if (mask >> atom & 1)
            others.push(static_cast<int>(atom));
        if (!(maskOf(others) & maskOf(list)))
          wanted.push_back(ceilDiv(sizes[d], ranks * sizeOf(others)) * sizeOf(others));
      }
    std::sort(wanted.begin(), wanted.end());
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    for (int64_t block : wanted) {
      if (block == given)
        continue;
      Layout result = layout;
      result.block[d] = block;
      int64_t most = 0;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const int64_t low = rank * block, high = std::min((rank + 1) * block, ranks * given);
        const int64_t own = std::min(high, (rank + 1) * given) - std::max(low, rank * given);
        most = std::max(most, std::max<int64_t>(high - low, 0) - std::max<int64_t>(own, 0));
      }
      Move move{Kind::repartition, static_cast<int8_t>(d), -1, list};
      cost(move, localBytes(result) / block * most,
           static_cast<int>(std::min<int64_t>(ranks - 1, 2)), maskOf(list));
      visit(move, result);
    }
  }
}

/// Other atoms of the same number of ranks for each dimension and for the sums.
void LayoutTransitions::permutes(const Layout &layout, const Visitor &visit) const {
  Layout result = layout;
  result.moved = true;
  permuteFrom(layout, result, 0, 0, visit);
}

void LayoutTransitions::permuteFrom(const Layout &layout, Layout &result, int dim, int used,
                                    const Visitor &visit) const {
  const int all = (1 << atoms.atoms.size()) - 1;
  auto sizeOfMask = [&](int mask) {
    int64_t size = 1;
    for (size_t atom = 0; atom < atoms.atoms.size(); ++atom)
      size *= mask >> atom & 1 ? atoms.atoms[atom].size : 1;
    return size;
  };
  if (dim < static_cast<int>(active.size())) {
    const int64_t wanted = sizeOf(layout.dims[dim]);
    result.dims[dim].count = 0;
    if (wanted == 1)
      return permuteFrom(layout, result, dim + 1, used, visit);
    if (!exhaustive) {
      // The last sharding's first atoms, or as it is.
      SubAxisList last;
      for (int atom : atoms.to.dims[active[dim]])
        if (sizeOf(last) < wanted)
          last.push(atom);
      for (const SubAxisList &list : {last, layout.dims[dim]})
        if (sizeOf(list) == wanted && !(maskOf(list) & used)) {
          result.dims[dim] = list;
          permuteFrom(layout, result, dim + 1, used | maskOf(list), visit);
          if (last == layout.dims[dim])
            break;
        }
      return;
    }
    forEachList(all & ~used, [&](const SubAxisList &list) {
      if (sizeOf(list) != wanted)
        return;
      result.dims[dim] = list;
      permuteFrom(layout, result, dim + 1, used | maskOf(list), visit);
    });
    return;
  }
  const int64_t sums = sizeOfMask(layout.partial), rest = all & ~used;
  for (int64_t mask = rest;; mask = (mask - 1) & rest) {
    if (sizeOfMask(static_cast<int>(mask)) == sums) {
      result.partial = static_cast<uint8_t>(mask);
      if (!(result == layout)) {
        int changed = result.partial ^ layout.partial;
        for (size_t d = 0; d < active.size(); ++d)
          if (!(result.dims[d] == layout.dims[d]))
            changed |= maskOf(result.dims[d]) | maskOf(layout.dims[d]);
        if (result.moved != layout.moved)
          changed = all;
        Move move{Kind::permute, -1, -1, {}};
        cost(move, localBytes(layout), 1, changed);
        visit(move, result);
      }
    }
    if (!mask)
      break;
  }
}
