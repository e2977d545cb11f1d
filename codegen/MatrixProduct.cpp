//===- MatrixProduct.cpp --------------------------------------------------===//

#include "codegen/MatrixProduct.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// A name, or neighbouring names that one stride walks over, in the three tensors; 0 where absent.
struct Axis {
  int64_t size = 1;
  std::array<int64_t, 3> stride = {0, 0, 0};
};

enum Tensor { lhs, rhs, result };

} // namespace

/// Names merged if each directly follows the previous one in every tensor.
static SmallVector<Axis> joined(ArrayRef<Axis> axes) {
  SmallVector<Axis> groups;
  for (const Axis &axis : axes) {
    if (axis.size == 1)
      continue;
    bool fits = !groups.empty();
    for (int tensor = 0; fits && tensor < 3; ++tensor)
      fits = groups.back().stride[tensor] == axis.stride[tensor] * axis.size;
    if (!fits) {
      groups.push_back(axis);
      continue;
    }
    groups.back().size *= axis.size;
    groups.back().stride = axis.stride;
  }
  return groups;
}

static bool walksByOne(int64_t row, int64_t rows, int64_t column, int64_t columns) {
  return row == 1 || column == 1 || rows == 1 || columns == 1;
}

FailureOr<MatrixProduct> MatrixProduct::of(nn::EinsumOp op) {
  std::array<RankedTensorType, 3> types = {cast<RankedTensorType>(op.getLhs().getType()),
                                           cast<RankedTensorType>(op.getRhs().getType()),
                                           cast<RankedTensorType>(op.getResult().getType())};
  auto isAll = [&](ArrayRef<RankedTensorType> tensors, auto is) {
    return llvm::all_of(tensors, [&](RankedTensorType type) { return is(type.getElementType()); });
  };
  auto isF32 = [](Type type) { return type.isF32(); };
  auto isBF16 = [](Type type) { return type.isBF16(); };
  ArrayRef<RankedTensorType> operands = ArrayRef(types).take_front(2);
  if (!isAll(types, isF32) && !isAll(types, isBF16) &&
      !(isAll(operands, isBF16) && isF32(types[result].getElementType())))
    return failure();

  nn::Notation pattern = op.getPattern();
  llvm::StringMap<int64_t> sizes = op.getNameSizes();
  llvm::StringMap<Axis> axes;
  auto measure = [&](const nn::NotationTensor &names, Tensor tensor) {
    int64_t stride = 1;
    for (const nn::NotationDim &dim : llvm::reverse(names)) {
      Axis &axis = axes[dim.front()];
      axis.size = sizes.lookup(dim.front());
      axis.stride[tensor] = stride;
      stride *= axis.size;
    }
  };
  measure(pattern.operands[lhs], lhs);
  measure(pattern.operands[rhs], rhs);
  measure(pattern.result, result);

  // Rows, columns and batches in the order of the result; contracted names in that of the left.
  SmallVector<Axis> rows, columns, contracted, batches;
  auto has = [](const nn::NotationTensor &tensor, StringRef name) {
    return llvm::any_of(tensor, [&](const nn::NotationDim &dim) { return dim.front() == name; });
  };
  bool matrix = false, contraction = false;
  for (const nn::NotationDim &dim : pattern.result) {
    bool left = has(pattern.operands[lhs], dim.front());
    bool right = has(pattern.operands[rhs], dim.front());
    (left && right ? batches : left ? rows : columns).push_back(axes[dim.front()]);
    matrix |= !(left && right);
  }
  for (const nn::NotationDim &dim : pattern.operands[lhs])
    if (!has(pattern.result, dim.front())) {
      contracted.push_back(axes[dim.front()]);
      contraction = true;
    }
  if (!contraction || (!matrix && !batches.empty()))
    return failure();

  SmallVector<Axis> m = joined(rows), n = joined(columns), k = joined(contracted),
                    batch = joined(batches);
  // Rows or columns that are not contiguous may be iterated over as batches.
  for (SmallVector<Axis> *side : {&m, &n})
    while (side->size() > 1) {
      batch.push_back(side->front());
      side->erase(side->begin());
    }
  if (k.size() > 1 || batch.size() > 3)
    return failure();

  MatrixProduct product;
  Axis one, row = m.empty() ? one : m.front(), column = n.empty() ? one : n.front(),
            inner = k.empty() ? one : k.front();
  product.m = row.size, product.n = column.size, product.k = inner.size;
  // A stride over an extent of one is never used; it is set to that of a dense matrix.
  auto orDense = [](int64_t size, int64_t stride, int64_t dense) {
    return size == 1 ? dense : stride;
  };
  product.a.column = orDense(inner.size, inner.stride[lhs], 1);
  product.a.row = orDense(row.size, row.stride[lhs], inner.size);
  product.b.column = orDense(column.size, column.stride[rhs], 1);
  product.b.row = orDense(inner.size, inner.stride[rhs], column.size);
  product.c.column = orDense(column.size, column.stride[result], 1);
  product.c.row = orDense(row.size, row.stride[result], column.size);
  if (!walksByOne(product.a.row, row.size, product.a.column, inner.size) ||
      !walksByOne(product.b.row, inner.size, product.b.column, column.size) ||
      !walksByOne(product.c.row, row.size, product.c.column, column.size))
    return failure();
  for (auto [i, axis] : llvm::enumerate(batch)) {
    product.batch[i] = axis.size;
    product.a.batch[i] = axis.stride[lhs];
    product.b.batch[i] = axis.stride[rhs];
    product.c.batch[i] = axis.stride[result];
  }
  return product;
}
