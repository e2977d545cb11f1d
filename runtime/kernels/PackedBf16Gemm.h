//===- PackedBf16Gemm.h - a large product of bf16, by blocks -----*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_PACKEDBF16GEMM_H
#define FSDP_RUNTIME_KERNELS_PACKEDBF16GEMM_H

#include "runtime/kernels/Bf16MicroKernel.h"
#include "runtime/kernels/EpilogueCallback.h"
#include "runtime/program/ArenaSpan.h"
#include "runtime/program/KernelArguments.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

/// c = a * b (+ c) of bf16 on a processor with instructions for it, to bf16 or float.
///
/// Both sides are packed, whichever way they lie: rows of a, as many as the cache holds, and one
/// panel of columns of b after the other, or all of b at once where several blocks of rows use it.
/// A sum too long for that is taken in parts, which are added up in float. How a product is split
/// depends on its shape only, so that equal products are equal bit by bit. Blocks of rows, and
/// groups of columns where sums are taken in parts, are pieces for several threads.
class PackedBf16Gemm {
public:
  /// One side, seen as lines: rows of a, columns of b. Strides are in elements; one of them is 1.
  struct Side {
    std::int64_t line, term;
  };
  struct Shape {
    std::int64_t rows, columns, terms;
    Side left, right;
    std::int64_t stride; ///< between rows of c, whose elements are neighbours
    DType out;
    bool add;
  };

  /// Whether the processor has the instructions, and the product is large enough to be packed.
  static bool repays(const Shape &shape);

  explicit PackedBf16Gemm(const Shape &shape, PairInstructions instructions = pairInstructions());

  /// For the calling thread and those that help it: at most 12 MiB and 5 MiB for each.
  std::size_t workspaceBytes() const;
  /// Tells `done` of blocks of rows as they become complete, and returns true; or, where it adds up
  /// over rows and blocks are not completed in order, of none, and returns false. `workspace` is
  /// aligned to 64 bytes; its contents do not matter.
  bool run(const bf16 *a, const bf16 *b, void *c, void *workspace, EpilogueCallback done) const;

private:
  struct Block;
  void multiply(const Block &block) const;
  std::int64_t groups() const;
  std::size_t pieces() const;

  Shape shape;
  PairInstructions instructions;
  /// Extents of blocks: multiples of 32, except for the remainder at the end.
  std::int64_t blockRows, groupColumns, panelColumns, blockTerms;
  bool keepsRight;                              ///< packs all of b at once
  std::int64_t leftCount, rightCount, sumCount; ///< elements of the workspace
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_PACKEDBF16GEMM_H
