//===- AttentionLayout.h - layout of an attention's operands ----*- C++ -*-===//

#ifndef DIALECT_NN_ATTENTIONLAYOUT_H
#define DIALECT_NN_ATTENTIONLAYOUT_H

#include "mlir/IR/TypeRange.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace mlir::nn {

/// Elements from one index to the next; those of a row are neighbours.
struct AttentionStrides {
  int64_t batch = 0, head = 0, position = 0;

  int64_t row(int64_t b, int64_t h, int64_t t) const { return b * batch + h * head + t * position; }
};

/// Sizes of a verified attention, and where the rows of its operands begin in row-major tensors.
/// Gradients have the layout of their values.
struct AttentionLayout {
  int64_t batch, heads, groups, queries, keys, width;
  AttentionStrides q;
  AttentionStrides k; ///< and v
  AttentionStrides out;
  /// Elements from queries to keys and from keys to values in the one tensor that holds all
  /// three; 0 where they are three tensors.
  int64_t part;

  /// `inputs` are the types of the queries, keys and values, or of the one tensor.
  AttentionLayout(StringRef order, TypeRange inputs);
};

/// True for the letters b, h and t in any order, with or without n, and d after them; a space
/// between each two.
bool isAttentionOrder(StringRef order);

/// The dimension of `letter` in `order`, or -1.
int64_t attentionDim(StringRef order, char letter);

/// The order of an attention's result: without n.
std::string attentionOutOrder(StringRef order);

} // namespace mlir::nn

#endif // DIALECT_NN_ATTENTIONLAYOUT_H
