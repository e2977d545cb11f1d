//===- Zigzag.h - an order of positions that balances causal masks -*- C++ -*-===//
//
// Of 2 * ranks chunks of consecutive positions, as long as each other, rank r has chunk r and
// behind it chunk 2 * ranks - 1 - r. So each rank has as many pairs of a query and a key before it
// as another.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_NN_ZIGZAG_H
#define DIALECT_NN_ZIGZAG_H

#include "mlir/IR/Builders.h"

namespace mlir::nn {

/// The number of the chunk that rank `rank` of `ranks` has first (`half` 0) or second (1).
inline int64_t zigzagChunk(int64_t rank, int64_t half, int64_t ranks) {
  return half == 0 ? rank : 2 * ranks - 1 - rank;
}

/// The position at `index` of `size` positions in zigzag order of `ranks` ranks.
inline int64_t zigzagPosition(int64_t index, int64_t size, int64_t ranks) {
  const int64_t length = size / (2 * ranks), place = index / length;
  return zigzagChunk(place / 2, place % 2, ranks) * length + index % length;
}

/// `value` with dimension `dim` split into `count` chunks, whose number is the first dimension.
Value splitChunks(OpBuilder &builder, Location loc, Value value, int64_t dim, int64_t count);
/// The opposite: the chunks one behind the other along dimension `dim` of the result.
Value mergeChunks(OpBuilder &builder, Location loc, Value chunks, int64_t dim);
/// Chunk `index` of chunks, without their dimension.
Value takeChunk(OpBuilder &builder, Location loc, Value chunks, int64_t index);
/// Values of one type as chunks.
Value stackChunks(OpBuilder &builder, Location loc, ValueRange values);

/// Chunks in the order of positions, 2 * `ranks` of them, in zigzag order, and the opposite.
Value toZigzagChunks(OpBuilder &builder, Location loc, Value chunks, int64_t ranks);
Value fromZigzagChunks(OpBuilder &builder, Location loc, Value chunks, int64_t ranks);

} // namespace mlir::nn

#endif // DIALECT_NN_ZIGZAG_H
