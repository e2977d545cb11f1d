//===- PairProduct.h - a large product of bf16, by blocks -------*- C++ -*-===//

#ifndef FSDP_RUNTIME_PAIRPRODUCT_H
#define FSDP_RUNTIME_PAIRPRODUCT_H

#include "runtime/Gemm.h"
#include "runtime/PairTiles.h"
#include "runtime/Slice.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

/// c = a * b (+ c) of bf16 on a processor that multiplies pairs, to bf16 or float.
///
/// Both sides are packed into tiles, whichever way they lie: rows of a, as many as the cache holds,
/// and one panel of columns of b after the other, or all of b before where several blocks of rows
/// use it. A sum too long for that is taken in parts, which are added up in float. How a product is
/// cut hangs on its shape alone, so that equal products are equal bit by bit.
class PairProduct {
public:
  struct Shape {
    std::int64_t rows, columns, terms;
    PairLines left, right; ///< rows of a and columns of b
    std::int64_t stride;   ///< between rows of c, whose elements are neighbours
    DType out;
    bool add;
  };

  /// Whether the product is large enough to be packed.
  static bool repays(const Shape &shape);
  PairProduct() = default;
  explicit PairProduct(const Shape &shape, PairInstructions instructions = pairInstructions());

  std::size_t workspaceBytes() const;
  /// Calls `done` as blocks of rows become complete. `workspace` is aligned to 64 bytes; what it
  /// held does not matter.
  void run(const bf16 *a, const bf16 *b, void *c, void *workspace, RowsDone done) const;

private:
  struct Block;
  void multiply(const Block &block) const;

  Shape shape{};
  PairInstructions instructions = PairInstructions::None;
  /// Extents of blocks: whole blocks of 32 x 32, but for the last ones.
  std::int64_t blockRows = 0, groupColumns = 0, panelColumns = 0, blockTerms = 0;
  bool keepsRight = false; ///< packs all of b before
  std::int64_t leftTiles = 0, rightTiles = 0, sumBlocks = 0;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_PAIRPRODUCT_H
