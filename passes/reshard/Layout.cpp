//===- Layout.cpp - every move out of a layout ----------------------------===//

#include "passes/reshard/Layout.h"

#include <algorithm>

using namespace mlir::fsdp::reshard;

static int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

size_t LayoutHash::operator()(const Layout &layout) const {
  uint64_t hash = 14695981039346656037u ^ layout.partial ^ (uint64_t(layout.stage) << 32);
  auto add = [&](uint64_t value) { hash = (hash ^ value) * 1099511628211u; };
  for (int d = 0; d < kMaxDims && layout.block[d] >= 0; ++d) {
    for (int8_t atom : layout.dims[d])
      add(static_cast<uint64_t>(atom + 1 + 16 * d));
    add(static_cast<uint64_t>(layout.block[d]));
  }
  return hash;
}

LayoutTransitions::LayoutTransitions(const Problem &problem, const SubAxes &atoms)
    : problem(problem), atoms(atoms) {
  // Sums are scattered along any dimension: of the unsplit dimensions, the longest represents all.
  int longest = -1;
  for (int d = 0; d < static_cast<int>(problem.shape.size()); ++d) {
    if (!atoms.from.dims[d].empty() || !atoms.to.dims[d].empty())
      active.push_back(d);
    else if (longest < 0 || problem.shape[d] > problem.shape[longest])
      longest = d;
  }
  if (longest >= 0)
    active.push_back(longest);
  otherBytes = problem.elementBytes;
  for (int d = 0; d < static_cast<int>(problem.shape.size()); ++d)
    if (std::find(active.begin(), active.end(), d) == active.end())
      otherBytes *= problem.shape[d];
  products = {1};
  for (size_t atom = 0; atom < atoms.atoms.size(); ++atom) {
    const Atom &own = atoms.atoms[atom];
    for (size_t i = 0, count = products.size(); i < count; ++i)
      products.push_back(products[i] * own.size);
    std::sort(products.begin(), products.end());
    products.erase(std::unique(products.begin(), products.end()), products.end());
    bytesPerSecond = std::max(bytesPerSecond, own.link.bytesPerSecond);
    int first = 0;
    while (atoms.atoms[first].size != own.size || !(atoms.atoms[first].link == own.link))
      ++first;
    alike.push_back(first);
  }
  if (atoms.atoms.empty())
    bytesPerSecond = 1;
  behind.fill(-1);
  for (const std::vector<int> &list : atoms.to.dims)
    for (size_t i = 1; i < list.size(); ++i)
      behind[list[i - 1]] = static_cast<int8_t>(list[i]);
  for (int d : active) {
    sizes.push_back(problem.shape[d]);
    isEven &= problem.shape[d] % products.back() == 0;
  }
  from = layoutOf(atoms.from);
  to = layoutOf(atoms.to);
  shortestBytes = otherBytes;
  for (size_t d = 0; d < active.size(); ++d) {
    elements *= sizes[d];
    const int64_t others = (sizeOf(to.dims[d]) - 1) * to.block[d];
    shortestBytes *= std::max<int64_t>(sizes[d] - others, 0);
  }
}

int64_t LayoutTransitions::sizeOf(const SubAxisList &list) const {
  int64_t size = 1;
  for (int8_t atom : list)
    size *= atoms.atoms[atom].size;
  return size;
}

int64_t LayoutTransitions::sizeOf(int mask) const {
  int64_t size = 1;
  for (size_t atom = 0; atom < atoms.atoms.size(); ++atom)
    if (mask >> atom & 1)
      size *= atoms.atoms[atom].size;
  return size;
}

int64_t LayoutTransitions::localBytes(const Layout &layout) const {
  int64_t bytes = otherBytes;
  for (size_t d = 0; d < active.size(); ++d)
    bytes *= layout.block[d];
  return bytes;
}

int64_t LayoutTransitions::mostBytes() const {
  const int64_t ends = std::max({localBytes(from), localBytes(to), int64_t(1)});
  return isEven ? ends : 2 * ends;
}

Layout LayoutTransitions::layoutOf(const AtomSharding &sharding) const {
  Layout layout;
  layout.block.fill(-1);
  for (size_t d = 0; d < active.size(); ++d) {
    for (int atom : sharding.dims[active[d]])
      layout.dims[d].push(atom);
    layout.block[d] = ceilDiv(sizes[d], sizeOf(layout.dims[d]));
  }
  for (int atom : sharding.partial)
    layout.partial |= static_cast<uint16_t>(1 << atom);
  return layout;
}

std::vector<Layout> LayoutTransitions::first() const {
  std::vector<Layout> layouts(2, from);
  layouts[1].stage = Stage::before;
  if (problem.fromOrder != problem.toOrder) // nothing but a permute moves devices
    layouts.erase(layouts.begin());
  return layouts;
}

Layout LayoutTransitions::last(Stage stage) const {
  Layout layout = to;
  if (stage != Stage::direct)
    layout.stage = Stage::after;
  return layout;
}

void LayoutTransitions::rename(const Renaming &names, Layout &layout, Move &move) {
  auto renameList = [&](SubAxisList &list) {
    for (int i = 0; i < list.count; ++i)
      list.atoms[i] = names[list.atoms[i]];
  };
  for (SubAxisList &list : layout.dims)
    renameList(list);
  renameList(move.atoms);
  int partial = 0;
  for (int atom = 0; atom < SubAxes::kMax; ++atom)
    if (layout.partial >> atom & 1)
      partial |= 1 << names[atom];
  layout.partial = static_cast<uint16_t>(partial);
}

/// Calls `visit` for each atom, in the order of its place: dimensions, sums, replicated.
template <class Visit>
static void forEachPlace(const Layout &layout, size_t atoms, size_t dims, Visit visit) {
  int rest = (1 << atoms) - 1;
  for (size_t d = 0; d < dims; ++d)
    for (int8_t atom : layout.dims[d]) {
      visit(atom);
      rest &= ~(1 << atom);
    }
  for (int mask : {rest & layout.partial, rest & ~layout.partial})
    for (size_t atom = 0; atom < atoms; ++atom)
      if (mask >> atom & 1)
        visit(static_cast<int>(atom));
}

Layout LayoutTransitions::keyOf(const Layout &layout) const {
  if (layout.stage == Stage::direct)
    return layout;
  Renaming names{}, next{};
  for (size_t atom = 0; atom < atoms.atoms.size(); ++atom)
    next[atom] = static_cast<int8_t>(atom);
  forEachPlace(layout, atoms.atoms.size(), active.size(), [&](int atom) {
    int8_t &number = next[alike[atom]];
    names[atom] = number++;
    while (number < static_cast<int8_t>(alike.size()) && alike[number] != alike[atom])
      ++number;
  });
  Layout key = layout;
  Move none;
  rename(names, key, none);
  return key;
}

Renaming LayoutTransitions::namesFrom(const Layout &layout) const {
  // Equal atoms keep the order of their positions.
  std::array<std::vector<int>, SubAxes::kMax> wanted;
  Renaming names{};
  std::array<size_t, SubAxes::kMax> seen{};
  forEachPlace(to, atoms.atoms.size(), active.size(),
               [&](int atom) { wanted[alike[atom]].push_back(atom); });
  forEachPlace(layout, atoms.atoms.size(), active.size(), [&](int atom) {
    names[atom] = static_cast<int8_t>(wanted[alike[atom]][seen[alike[atom]]++]);
  });
  return names;
}

double LayoutTransitions::leastSeconds(const Layout &layout) const {
  // Some rank has to receive the elements of its result that it does not hold. It holds no elements
  // of a sum that is to be completed.
  int64_t kept = sizeOf(layout.partial) == sizeOf(to.partial) ? otherBytes : 0;
  bool isApart = false;
  for (size_t d = 0; d < active.size(); ++d) {
    kept *= std::min(layout.block[d], to.block[d]);
    isApart |= layout.stage == Stage::direct && hasRankApart(layout, static_cast<int>(d));
  }
  int64_t bytes = localBytes(to) - kept;
  if (isApart)
    bytes = std::max(bytes, shortestBytes);
  // A permute changes no size, so its bytes are added.
  if (layout.stage == Stage::before)
    bytes += otherBytes * elements / products.back();
  return static_cast<double>(bytes) / bytesPerSecond;
}

/// Whether some rank holds no elements of its result along dimension `dim`: if the lists differ
/// before either ends, the rank that has the last part and gets the first part.
bool LayoutTransitions::hasRankApart(const Layout &layout, int dim) const {
  const SubAxisList &has = layout.dims[dim], &gets = to.dims[dim];
  int64_t begin = layout.block[dim], end = to.block[dim];
  const auto [first, second] = std::mismatch(has.begin(), has.end(), gets.begin(), gets.end());
  if (first == has.end() || second == gets.end())
    return false;
  for (const int8_t *atom = first + 1; atom < has.end(); ++atom)
    begin *= atoms.atoms[*atom].size;
  for (const int8_t *atom = second + 1; atom < gets.end(); ++atom)
    end *= atoms.atoms[*atom].size;
  return begin * (atoms.atoms[*first].size - 1) >= end;
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
  move.seconds =
      messages * latency + (bytes && bandwidth ? static_cast<double>(bytes) / bandwidth : 0);
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

void LayoutTransitions::forEachList(int mask, Stage stage, int64_t most,
                                    const std::function<void(const SubAxisList &)> &visit) const {
  SubAxisList list;
  auto extend = [&](auto &self, int rest, int64_t most, bool isSorted, bool isRun) -> void {
    int seen = 0; // the first of equal atoms
    for (int atom = 0; atom < static_cast<int>(atoms.atoms.size()); ++atom) {
      if (!(rest >> atom & 1) || (stage != Stage::direct && seen >> alike[atom] & 1) ||
          most / atoms.atoms[atom].size == 0)
        continue;
      seen |= 1 << alike[atom];
      const int last = list.count ? list.atoms[list.count - 1] : -1;
      const bool staysSorted = isSorted && last < atom,
                 staysRun = isRun && (last < 0 || behind[last] == atom);
      if (stage == Stage::direct && list.count >= 2 && !staysSorted && !staysRun)
        continue;
      list.push(atom);
      visit(list);
      self(self, rest & ~(1 << atom), most / atoms.atoms[atom].size, staysSorted, staysRun);
      --list.count;
    }
  };
  extend(extend, mask, most, true, true);
}

bool LayoutTransitions::leadsOn(const SubAxisList &list, int dim, Stage stage) const {
  const SubAxisList &last = to.dims[dim];
  return list.count <= last.count &&
         std::equal(list.begin(), list.end(), last.begin(), [&](int8_t a, int8_t b) {
           return a == b || (stage != Stage::direct && alike[a] == alike[b]);
         });
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
  forEachList(replicatedIn(layout, atoms.atoms.size()), layout.stage, products.back(),
              [&](const SubAxisList &list) {
                for (size_t d = 0; d < active.size(); ++d) {
                  Layout result = layout;
                  if (!split(result, static_cast<int>(d), list))
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
    result.partial &= static_cast<uint16_t>(~mask);
    const int64_t ranks = sizeOf(list);
    Move move{Kind::allReduce, -1, -1, list};
    cost(move,
         2 * (ranks - 1) * ceilDiv(bytes / problem.elementBytes, ranks) * problem.elementBytes,
         static_cast<int>(2 * (ranks - 1)), mask);
    visit(move, result);
  }
  forEachList(layout.partial, layout.stage, products.back(), [&](const SubAxisList &list) {
    for (size_t d = 0; d < active.size(); ++d) {
      Layout result = layout;
      result.partial &= static_cast<uint16_t>(~maskOf(list));
      if (!split(result, static_cast<int>(d), list))
        continue;
      const int64_t ranks = sizeOf(list);
      Move move{Kind::reduceScatter, static_cast<int8_t>(d), -1, list};
      cost(move, localBytes(result) * (ranks - 1), static_cast<int>(ranks - 1), maskOf(list));
      visit(move, result);
    }
  });
}

/// Parts of the size given by the sharding itself, by the target sharding if that splits further,
/// and of sizes that other atoms split evenly.
void LayoutTransitions::repartitions(const Layout &layout, const Visitor &visit) const {
  const int64_t everything = products.back();
  for (size_t d = 0; d < active.size(); ++d) {
    const SubAxisList &list = layout.dims[d];
    if (!list.count || !sizes[d])
      continue;
    const int64_t ranks = sizeOf(list), given = layout.block[d];
    std::vector<int64_t> wanted = {ceilDiv(sizes[d], ranks)};
    if (leadsOn(list, static_cast<int>(d), layout.stage)) {
      const int64_t last = sizeOf(to.dims[d]);
      wanted.push_back(ceilDiv(sizes[d], last) * (last / ranks));
    }
    if (sizes[d] % everything && atoms.atoms.size() <= SubAxes::kAllBlocks)
      for (int64_t others : products)
        if (everything / ranks % others == 0)
          wanted.push_back(ceilDiv(sizes[d], ranks * others) * others);
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
  result.stage = Stage::after;
  permuteFrom(layout, result, 0, 0, visit);
}

void LayoutTransitions::permuteFrom(const Layout &layout, Layout &result, int dim, int used,
                                    const Visitor &visit) const {
  const int all = (1 << atoms.atoms.size()) - 1;
  auto visitWith = [&](int partial) {
    result.partial = static_cast<uint16_t>(partial);
    Move move{Kind::permute, -1, -1, {}};
    cost(move, localBytes(layout), 1, all);
    visit(move, result);
  };
  const bool isSum = dim == static_cast<int>(active.size());
  const int64_t wanted = isSum ? sizeOf(layout.partial) : sizeOf(layout.dims[dim]);
  if (!isSum)
    result.dims[dim].count = 0;
  if (wanted == 1)
    return isSum ? visitWith(0) : permuteFrom(layout, result, dim + 1, used, visit);
  forEachList(all & ~used, Stage::after, wanted, [&](const SubAxisList &list) {
    if (sizeOf(list) != wanted)
      return;
    if (isSum) {
      if (std::is_sorted(list.begin(), list.end()))
        visitWith(maskOf(list));
      return;
    }
    result.dims[dim] = list;
    permuteFrom(layout, result, dim + 1, used | maskOf(list), visit);
  });
}

void LayoutTransitions::costPermute(Move &move, const Layout &before, const Layout &after) const {
  int changed = before.partial ^ after.partial;
  for (size_t d = 0; d < active.size(); ++d)
    if (!(before.dims[d] == after.dims[d]))
      changed |= maskOf(before.dims[d]) | maskOf(after.dims[d]);
  if (problem.fromOrder != problem.toOrder)
    changed = (1 << atoms.atoms.size()) - 1;
  cost(move, changed ? localBytes(before) : 0, 1, changed);
}
