//===- Layout.h - states and moves of the search ----------------*- C++ -*-===//

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

/// The number of dimensions in the search: those that are split, and one more if there are sums.
constexpr int kMaxDims = SubAxes::kMax + 1;

/// The layout of a value on ranks: for each dimension its atoms and the size of its parts (see
/// [Note: uneven parts]).
struct Layout {
  std::array<SubAxisList, kMaxDims> dims{};
  std::array<int64_t, kMaxDims> block{};
  uint8_t partial = 0; ///< a bit for each atom
  bool moved = true;   ///< the devices are in their target order

  bool operator==(const Layout &other) const {
    return partial == other.partial && moved == other.moved && block == other.block &&
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

/// The dimensions of the search, and every move out of a layout.
class LayoutTransitions {
public:
  LayoutTransitions(const Problem &problem, const SubAxes &atoms);

  Layout first() const;
  /// Whether `layout` is the target.
  bool isLast(const Layout &layout) const;
  /// The dimensions of the tensor that are in the search.
  const std::vector<int> &dims() const { return active; }
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

  int64_t sizeOf(const SubAxisList &list) const;
  int64_t localBytes(const Layout &layout) const;
  /// Adds the atoms of `list` to dimension `dim` of `layout`; false if parts are uneven.
  bool split(Layout &layout, int dim, const SubAxisList &list) const;
  /// Every list of some of `mask`'s atoms, in every order.
  void forEachList(int mask, const std::function<void(const SubAxisList &)> &visit) const;
  void cost(Move &move, int64_t bytes, int messages, int mask) const;
  /// Whether a search that is not exhaustive continues with `list` for dimension `dim`: a prefix of
  /// the target's atoms.
  bool leadsOn(const SubAxisList &list, int dim) const {
    const std::vector<int> &last = atoms.to.dims[active[dim]];
    return list.count <= static_cast<int>(last.size()) &&
           std::equal(list.begin(), list.end(), last.begin());
  }

  const Problem &problem;
  const SubAxes &atoms;
  std::vector<int> active;
  std::vector<int64_t> sizes; ///< of the active dimensions
  int64_t otherBytes = 1;     ///< bytes of one element of the active dimensions
  bool exhaustive;            ///< see SubAxes::kExhaustive
};

template <class Visit> void LayoutTransitions::forEach(const Layout &layout, Visit visit) const {
  const Visitor visitor = visit;
  slices(layout, visitor);
  gathersAndExchanges(layout, visitor);
  sums(layout, visitor);
  repartitions(layout, visitor);
  permutes(layout, visitor);
}

} // namespace mlir::fsdp::reshard

#endif // PASSES_RESHARD_LAYOUT_H
