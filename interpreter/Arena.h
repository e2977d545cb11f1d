//===- Arena.h - the bytes of one simulated rank ----------------*- C++ -*-===//

#ifndef INTERPRETER_ARENA_H
#define INTERPRETER_ARENA_H

#include "interpreter/Tensor.h"
#include <optional>

namespace mlir::fsdp::interpreter {

/// Byte-addressed memory that tracks the elements written to it. An element occupies its bytes but
/// keeps its value in double, so that numerics stay exact; it detects reads of bytes that hold no
/// whole element of the requested size, or one that was written as part of another buffer.
class Arena {
public:
  explicit Arena(int64_t bytes = 0) : values(bytes), widths(bytes, 0), owners(bytes, 0) {}
  int64_t size() const { return widths.size(); }

  /// Bytes of an element; i1 takes one.
  static int64_t elementBytes(RankedTensorType type) {
    unsigned bits = type.getElementTypeBitWidth();
    return bits == 1 ? 1 : bits / 8;
  }

  /// Writes into the buffer number `owner`.
  void write(int64_t offset, const Tensor &tensor, uint64_t owner);
  /// The tensor at `offset`; on failure the first byte that holds no such element of `owner`.
  Tensor read(int64_t offset, RankedTensorType type, uint64_t owner,
              std::optional<int64_t> &unready) const;
  /// Erases the contents of [begin, end).
  void poison(int64_t begin, int64_t end);

private:
  void clearElementAcross(int64_t offset);

  std::vector<Element> values;
  /// The element size at the first byte of an element; 0 at other bytes.
  std::vector<uint8_t> widths;
  std::vector<uint64_t> owners;
};

} // namespace mlir::fsdp::interpreter

#endif // INTERPRETER_ARENA_H
