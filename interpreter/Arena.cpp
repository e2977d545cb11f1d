//===- Arena.cpp - the bytes of one simulated rank ------------------------===//

#include "interpreter/Arena.h"

using namespace mlir;
using namespace mlir::fsdp::interpreter;

/// An element that starts before `offset` and reaches past it is whole no more.
void Arena::clearElementAcross(int64_t offset) {
  for (int64_t back = 1; back < 8 && back <= offset; ++back)
    if (widths[offset - back] > back)
      widths[offset - back] = 0;
}

void Arena::poison(int64_t begin, int64_t end) {
  clearElementAcross(begin);
  if (end < size())
    clearElementAcross(end);
  std::fill(widths.begin() + begin, widths.begin() + end, 0);
}

void Arena::write(int64_t offset, const Tensor &tensor, uint64_t owner) {
  int64_t bytes = elementBytes(tensor.getType());
  poison(offset, offset + bytes * tensor.size());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    values[offset + i * bytes] = tensor.data()[i];
    widths[offset + i * bytes] = bytes;
    owners[offset + i * bytes] = owner;
  }
}

Tensor Arena::read(int64_t offset, RankedTensorType type, uint64_t owner,
                   std::optional<int64_t> &unready) const {
  int64_t bytes = elementBytes(type);
  Tensor result(type);
  Element *to = result.mutableData();
  for (int64_t i = 0; i < result.size(); ++i) {
    int64_t at = offset + i * bytes;
    if (widths[at] != bytes || owners[at] != owner) {
      unready = at;
      return result;
    }
    to[i] = values[at];
  }
  return result;
}
