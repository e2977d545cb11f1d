//===- Layout.h - states and moves of the search ----------------*- C++ -*-===//
//
// [Note: one permute] A permute moves the contents of each rank to another rank, so it can exchange
// any atoms for others of as many ranks. One permute on a path is enough: two with moves between
// them can be replaced by one, at the point where a rank holds least, with the other moves over
// other atoms. So the moves before and after it depend on the sizes of the atoms only, not on their
// identity: few layouts differ in these sizes. Only paths without a permute depend on the atoms
// themselves. The search explores all three kinds of path at once.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_RESHARD_LAYOUT_H
#define PASSES_RESHARD_LAYOUT_H

#include "passes/reshard/SubAxes.h"

#include <functional>

namespace mlir::fsdp::reshard {

/// A short list of atoms.
struct SubAxisList {
  std::array<int8_t, SubAxes::kMax> atoms{};
  int8_t count = 0;

  void push(int atom) { atoms[count++] = static_cast<int8_t>(atom); }
  const int8_t *begin() const { return atoms.data(); }
  const int8_t *end() const { return atoms.data() + count; }
  bool operator==(const SubAxisList &other) const {
    return count == other.count && std::equal(begin(), end(), other.begin());
  }
};

/// The number of dimensions in the search: those that either sharding splits, and one more for
/// sums.
constexpr int kMaxDims = SubAxes::kMaxDims + 1;

/// The part of a path to which a layout belongs, see [Note: one permute].
enum class Stage : int8_t {
  direct, ///< on a path without a permute
  before, ///< a permute follows
  after   ///< after the permute; each atom represents an equal one, which the target determines
};

/// The layout of a value on ranks: for each dimension its atoms and the size of its parts (see
/// [Note: uneven parts]).
struct Layout {
  std::array<SubAxisList, kMaxDims> dims{};
  std::array<int64_t, kMaxDims> block{};
  uint16_t partial = 0; ///< a bit for each atom
  Stage stage = Stage::direct;

  bool operator==(const Layout &other) const {
    return partial == other.partial && stage == other.stage && block == other.block &&
           dims == other.dims;
  }
};

struct LayoutHash {
  size_t operator()(const Layout &layout) const;
};

/// A step of the search.
struct Move {
  Kind kind = Kind::slice;
  int8_t dim = -1, split = -1; ///< among the dimensions of the search
  SubAxisList atoms{};
  int64_t bytes = 0;
  double seconds = 0;
};

/// For each atom, the one that takes its place.
using Renaming = std::array<int8_t, SubAxes::kMax>;

/// The dimensions of the search, and every move out of a layout.
class LayoutTransitions {
public:
  LayoutTransitions(const Problem &problem, const SubAxes &atoms);

  /// The start of the search.
  std::vector<Layout> first() const;
  /// Whether `layout` is the target.
  bool isLast(const Layout &layout) const { return keyOf(layout) == keyOf(last(layout.stage)); }
  /// The representative of all layouts that are equivalent in their stage.
  Layout keyOf(const Layout &layout) const;
  /// The renaming of the atoms of stage `after` on a path that ends with `layout`.
  Renaming namesFrom(const Layout &layout) const;
  static void rename(const Renaming &names, Layout &layout, Move &move);

  /// The dimensions of the tensor that are in the search.
  const std::vector<int> &dims() const { return active; }
  /// The bytes that a rank holds.
  int64_t localBytes(const Layout &layout) const;
  /// The bytes that a rank may hold on the path: as many as at its start or its end; twice that if
  /// atoms do not divide a dimension, because parts have padding then.
  int64_t mostBytes() const;
  /// A lower bound on the seconds of every path to the target.
  double leastSeconds(const Layout &layout) const;
  /// The cost of a permute.
  void costPermute(Move &move, const Layout &before, const Layout &after) const;
  /// Calls `visit(move, result)` for each move out of `layout`.
  template <class Visit> void forEach(const Layout &layout, Visit visit) const;

private:
  using Visitor = std::function<void(Move &, const Layout &)>;

  void slices(const Layout &layout, const Visitor &visit) const;
  void gathersAndExchanges(const Layout &layout, const Visitor &visit) const;
  void sums(const Layout &layout, const Visitor &visit) const;
  void repartitions(const Layout &layout, const Visitor &visit) const;
  void permutes(const Layout &layout, const Visitor &visit) const;
  void permuteFrom(const Layout &layout, Layout &result, int dim, int used,
                   const Visitor &visit) const;

  bool hasRankApart(const Layout &layout, int dim) const;
  Layout layoutOf(const AtomSharding &sharding) const;
  Layout last(Stage stage) const;
  int64_t sizeOf(const SubAxisList &list) const;
  int64_t sizeOf(int mask) const;
  /// Adds the atoms of `list` to dimension `dim` of `layout`; false if parts are uneven.
  bool split(Layout &layout, int dim, const SubAxisList &list) const;
  /// Lists of some of `mask`'s atoms, none of more than `most` ranks. On a path without a permute:
  /// lists of two atoms, lists in the order of a dimension of the target, and one order of any
  /// others, which are gathered or moved again. Otherwise every order, and one of several equal
  /// lists.
  void forEachList(int mask, Stage stage, int64_t most,
                   const std::function<void(const SubAxisList &)> &visit) const;
  void cost(Move &move, int64_t bytes, int messages, int mask) const;
  /// Whether `list` is a prefix of the target's atoms of dimension `dim`.
  bool leadsOn(const SubAxisList &list, int dim, Stage stage) const;

  const Problem &problem;
  const SubAxes &atoms;
  std::vector<int> active;
  std::vector<int64_t> sizes;    ///< of the active dimensions
  std::vector<int64_t> products; ///< of the sizes of some of the atoms, each once
  std::vector<int> alike;        ///< of each atom, the first one of its size and link
  Renaming behind;               ///< of each atom, the one that follows it in the target, or -1
  Layout from, to;
  int64_t otherBytes = 1;    ///< bytes of one element of the active dimensions
  int64_t elements = 1;      ///< of the active dimensions
  int64_t shortestBytes = 0; ///< the fewest that a rank has at the end
  bool isEven = true;        ///< all atoms together divide each active dimension
  double bytesPerSecond = 0; ///< of the fastest link
};

template <class Visit> void LayoutTransitions::forEach(const Layout &layout, Visit visit) const {
  const Visitor visitor = visit;
  slices(layout, visitor);
  gathersAndExchanges(layout, visitor);
  sums(layout, visitor);
  repartitions(layout, visitor);
  if (layout.stage == Stage::before)
    permutes(layout, visitor);
}

} // namespace mlir::fsdp::reshard

#endif // PASSES_RESHARD_LAYOUT_H
