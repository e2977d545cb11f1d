//===- RowOrder.h - blocks of rows told of in order -------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_ROWORDER_H
#define FSDP_RUNTIME_KERNELS_ROWORDER_H

#include "runtime/kernels/EpilogueCallback.h"

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace fsdp::rt {

/// Calls an epilogue that adds up over rows for blocks of rows that several threads complete in any
/// order: for one block after another, the first rows first. The thread that completes the next
/// block calls it for that block and for those behind it that are complete; the others continue
/// with their product, so that no thread waits.
class RowOrder {
public:
  /// Whether it is faster than parts of the columns of the whole result, whose rows are far apart
  /// and no longer in the cache: calls of different blocks do not run at the same time.
  static bool repays(std::size_t threads, std::size_t blocks) {
    return threads <= kThreads && blocks <= kBlocks;
  }

  RowOrder(EpilogueCallback done, std::int64_t rows, std::int64_t blockRows)
      : done(done), rows(rows), blockRows(blockRows) {}

  void complete(std::size_t block) {
    std::unique_lock lock(mutex);
    isComplete.set(block);
    if (isCalling)
      return;
    isCalling = true;
    for (; next < kBlocks && isComplete.test(next); ++next) {
      const std::int64_t begin = static_cast<std::int64_t>(next) * blockRows;
      lock.unlock();
      done.call(done.self, begin, std::min(begin + blockRows, rows));
      lock.lock();
    }
    isCalling = false;
  }

private:
  /// Calls take up to a fifth of the time of their products: so many threads do not catch up with
  /// the one that calls.
  static constexpr std::size_t kThreads = 4;
  static constexpr std::size_t kBlocks = 256;

  const EpilogueCallback done;
  const std::int64_t rows, blockRows;
  std::mutex mutex;
  std::bitset<kBlocks> isComplete;
  std::size_t next = 0; ///< the first block that was not passed to `done`
  bool isCalling = false;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_ROWORDER_H
