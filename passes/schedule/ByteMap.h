//===- ByteMap.h - contents and accesses of memory --------------*- C++ -*-===//

#ifndef PASSES_SCHEDULE_BYTEMAP_H
#define PASSES_SCHEDULE_BYTEMAP_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <map>

namespace mlir::fsdp::schedule {

/// A set of small numbers, in order.
using NumberSet = llvm::SmallVector<int, 2>;

/// Adds `number` to `set`, which is in order.
void insertNumber(NumberSet &set, int number);

/// The state of some bytes, merged over all paths.
struct Cell {
  /// Denotes unwritten bytes in `owners`.
  static constexpr int unwritten = -1;

  NumberSet owners;  ///< the buffers whose contents may be there
  NumberSet writers; ///< the launches that may have written last
  NumberSet readers; ///< the launches that may have read since

  bool operator==(const Cell &other) const {
    return owners == other.owners && writers == other.writers && readers == other.readers;
  }
};

/// Cells for the bytes [0, size).
class ByteMap {
public:
  explicit ByteMap(int64_t size = 0);

  /// Calls `visit` for each range of [begin, end) that has one cell, which it may change.
  void visit(int64_t begin, int64_t end, llvm::function_ref<void(int64_t, int64_t, Cell &)> visit);
  /// The bytes [begin, end) have this cell.
  void assign(int64_t begin, int64_t end, Cell cell);
  const Cell &at(int64_t byte) const { return std::prev(cells.upper_bound(byte))->second; }
  /// Changes all cells, and joins equal neighbours.
  void transform(llvm::function_ref<void(Cell &)> change);
  /// Merges the state of `other`, of the same size; true iff that adds anything.
  bool merge(const ByteMap &other);

private:
  std::map<int64_t, Cell>::iterator split(int64_t at);

  int64_t size;
  std::map<int64_t, Cell> cells; ///< by their first byte, each up to the next
};

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_BYTEMAP_H
