//===- Zigzag.cpp - an order of positions that balances causal masks ------===//

#include "dialect/nn/Zigzag.h"

#include "dialect/nn/NNDialect.h"

using namespace mlir;
using namespace mlir::nn;

/// The names of `rank` dimensions, that of `dim` being `along`; `first` before all of them.
static std::string notation(int64_t rank, int64_t dim, StringRef along, StringRef first = "") {
  std::string names = first.str();
  for (int64_t i = 0; i < rank; ++i)
    names += (names.empty() ? "" : " ") + (i == dim ? along.str() : "d" + std::to_string(i));
  return names;
}

static Value rearrange(OpBuilder &builder, Location loc, ArrayRef<int64_t> shape,
                       const std::string &notation, Value value) {
  auto type = cast<RankedTensorType>(value.getType()).clone(shape);
  return RearrangeOp::create(builder, loc, type, notation, value, DictionaryAttr());
}

Value mlir::nn::splitChunks(OpBuilder &builder, Location loc, Value value, int64_t dim,
                            int64_t count) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape = {count};
  llvm::append_range(shape, type.getShape());
  shape[dim + 1] /= count;
  return rearrange(builder, loc, shape,
                   notation(type.getRank(), dim, "(n l)") + " -> " +
                       notation(type.getRank(), dim, "l", "n"),
                   value);
}

Value mlir::nn::mergeChunks(OpBuilder &builder, Location loc, Value chunks, int64_t dim) {
  auto type = cast<RankedTensorType>(chunks.getType());
  const int64_t rank = type.getRank() - 1;
  SmallVector<int64_t> shape(type.getShape().drop_front());
  shape[dim] *= type.getDimSize(0);
  return rearrange(builder, loc, shape,
                   notation(rank, dim, "l", "n") + " -> " + notation(rank, dim, "(n l)"), chunks);
}

Value mlir::nn::takeChunk(OpBuilder &builder, Location loc, Value chunks, int64_t index) {
  auto type = cast<RankedTensorType>(chunks.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.front() = 1;
  Value slice = SliceOp::create(builder, loc, type.clone(shape), chunks, 0, index);
  const std::string names = notation(type.getRank() - 1, -1, "");
  return rearrange(builder, loc, ArrayRef(shape).drop_front(), "1 " + names + " -> " + names,
                   slice);
}

Value mlir::nn::stackChunks(OpBuilder &builder, Location loc, ValueRange values) {
  auto type = cast<RankedTensorType>(values.front().getType());
  SmallVector<int64_t> shape = {1};
  llvm::append_range(shape, type.getShape());
  const std::string names = notation(type.getRank(), -1, "");
  SmallVector<Value> chunks;
  for (Value value : values)
    chunks.push_back(rearrange(builder, loc, shape, names + " -> 1 " + names, value));
  shape.front() = static_cast<int64_t>(values.size());
  return ConcatOp::create(builder, loc, type.clone(shape), chunks, 0);
}

/// The chunks that `numberAt(place)` has the number of, place by place.
static Value reorder(OpBuilder &builder, Location loc, Value chunks,
                     llvm::function_ref<int64_t(int64_t place)> numberAt) {
  auto type = cast<RankedTensorType>(chunks.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.front() = 1;
  SmallVector<Value> parts;
  for (int64_t place = 0; place < type.getDimSize(0); ++place)
    parts.push_back(SliceOp::create(builder, loc, type.clone(shape), chunks, 0, numberAt(place)));
  return ConcatOp::create(builder, loc, type, parts, 0);
}

Value mlir::nn::toZigzagChunks(OpBuilder &builder, Location loc, Value chunks, int64_t ranks) {
  return reorder(builder, loc, chunks,
                 [&](int64_t place) { return zigzagChunk(place / 2, place % 2, ranks); });
}

Value mlir::nn::fromZigzagChunks(OpBuilder &builder, Location loc, Value chunks, int64_t ranks) {
  return reorder(builder, loc, chunks, [&](int64_t number) {
    return number < ranks ? 2 * number : 2 * (2 * ranks - 1 - number) + 1;
  });
}
