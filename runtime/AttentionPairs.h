//===- AttentionPairs.h - attention by products of pairs --------*- C++ -*-===//
//
// Attention on bf16 by the processor's instructions for it, see PairProduct.h. Scores, softmax and
// sums are floats; probabilities, and the gradients of scores, are rounded to bf16 as operands of the
// products that follow, as FlashAttention rounds them.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_ATTENTIONPAIRS_H
#define FSDP_RUNTIME_ATTENTIONPAIRS_H

#include "runtime/BFloat16.h"
#include "runtime/KernelArguments.h"
#include "runtime/PairProduct.h"

#include <cstddef>

namespace fsdp::rt::pairs {

/// Rows of one head: contiguous, `stride` elements apart.
template <class T> struct RowsOf {
  T *first;
  std::ptrdiff_t stride;

  T *at(std::size_t row) const { return first + static_cast<std::ptrdiff_t>(row) * stride; }
};
using Rows = RowsOf<const bf16>;
using ResultRows = RowsOf<bf16>;

/// Attention of one head. pairInstructions() must not be None. Scratch memory does not grow with the
/// number of queries or keys.
void attendHead(const AttentionShape &shape, const PairMultiplier &multiply, Rows q, Rows k, Rows v,
                ResultRows out, float *logSumExp);

/// What of one head the gradient reads and writes.
struct GradientHead {
  Rows q, out, dOut;
  const float *logSumExp;
  ResultRows dQ;
};

/// The gradient of the heads of one group after the other. Scratch memory grows with the number of
/// keys.
class GroupGradient {
public:
  GroupGradient(const AttentionShape &shape, const PairMultiplier &multiply);

  void begin(Rows k, Rows v);
  /// Writes dQ; dK and dV are sums over the heads of the group.
  void add(const GradientHead &head);
  void finish(ResultRows dK, ResultRows dV);

private:
  struct Strip;
  void packQueries(const GradientHead &head, std::size_t first, std::size_t count);
  void addKeys(std::size_t firstQuery, std::size_t queries, std::size_t firstKey, std::size_t keys);
  void addStrip(std::size_t firstQuery, std::size_t queries, const Strip &strip);
  void writeQueries(const GradientHead &head, std::size_t first, std::size_t count);

  const AttentionShape &shape;
  const PairMultiplier &multiply;
  std::size_t width; ///< filled up
  Rows k{}, v{};
  std::size_t keysBegun = 0; ///< rows of the sums that hold something
  // Scratch memory; see the constructor.
  bf16 *qTransposed, *dOutTransposed, *qPairs, *dOutPairs;
  bf16 *keyRows, *valueRows, *keyColumns;
  bf16 *probabilities, *scoreGradients, *scoreGradientPairs;
  float *scores, *dQ, *dK, *dV, *logSumExp, *along;
};

} // namespace fsdp::rt::pairs

#endif // FSDP_RUNTIME_ATTENTIONPAIRS_H
