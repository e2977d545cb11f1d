//===- AsyncProducts.h - wgmma, of one thread -------------------------------------===//
//
// wgmma.mma_async, its commit and its wait (PTX ISA, "Asynchronous warpgroup level matrix
// multiply-accumulate instructions"): a product may be performed at any time until its thread has
// waited for its group, and is here performed then, as late as it may be. Each thread computes what
// its own registers of d hold. Products that are in no group yet are waited for by nothing.
//
// What PTX asks for and the hardware does not check fails here: wgmma.fence between an access of
// registers and the products that use them, at least one after each wait; fence.proxy.async by each
// thread of the block whose copies into shared memory have arrived; registers of an operand a that
// stay as they are until the wait; the same products in all warps of a group, at each barrier.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMULATOR_ASYNCPRODUCTS_H
#define FSDP_EMULATOR_ASYNCPRODUCTS_H

#include "Device.h"

#include <cstdint>
#include <cstring>
#include <vector>

namespace emulator {

/// Element `column` of what is multiplied with element k of the sum, in blocks of 8 rows of 128
/// bytes with a swizzle of 128 bytes.
inline const std::uint16_t *elementOf(const SharedMatrix &matrix, int column, int k) {
  const int row = matrix.acrossRows ? k : column, along = matrix.acrossRows ? column : k;
  const auto address = reinterpret_cast<std::uintptr_t>(matrix.start) +
                       std::uintptr_t(along / 64) * matrix.columnBlocks +
                       std::uintptr_t(row / 8) * 1024 + std::uintptr_t(row % 8) * 128 +
                       std::uintptr_t(along % 64) * 2;
  return reinterpret_cast<const std::uint16_t *>(address ^ (address >> 7 & 7) << 4);
}

struct AsyncProduct {
  float *d;    ///< columns / 8 times 4: as of mma.sync, of its warp's 16 rows
  int columns; ///< of d
  bool adds;
  float a[2][16]; ///< the rows of a that the thread needs, where `inShared` is null
  const void *inShared;
  const std::uint32_t *held; ///< the thread's registers of a, else null
  int row; ///< of these two rows in `inShared`, the first; the second is 8 behind it
  SharedMatrix b;
  std::uint32_t before[4]; ///< what `held` had at the start
};

/// What a lane brings of an operand a in registers: the elements of a row are in four lanes.
struct HeldRows {
  const std::uint32_t *held; ///< four registers; null where a is in shared memory
  float (*rows)[16];         ///< gets the lane's two rows
  static void exchange(void *const *lanes) {
    if (!static_cast<const HeldRows *>(lanes[0])->held)
      return;
    for (unsigned l = 0; l < 32; ++l)
      for (unsigned t = 0; t < 4; ++t)
        for (unsigned i = 0; i < 4; ++i) {
          const std::uint32_t pair = static_cast<const HeldRows *>(lanes[l / 4 * 4 + t])->held[i];
          const std::uint32_t bits[2] = {pair << 16, pair & 0xffff0000u};
          std::memcpy(&static_cast<const HeldRows *>(lanes[l])->rows[i % 2][2 * t + i / 2 * 8],
                      bits, sizeof bits);
        }
  }
};

class AsyncProducts {
public:
  bool begun = false;    ///< wgmma.fence since the last wait
  bool unfenced = false; ///< copies have arrived since the last fence.proxy.async

  void start(AsyncProduct product, int line) {
    if (product.held)
      std::memcpy(product.before, product.held, sizeof product.before);
    products.push_back(product);
    issued = issued * 31 + static_cast<std::uint64_t>(line);
  }
  /// Whether both have started the same products, as the warps of a group must.
  bool agrees(const AsyncProducts &other) const { return issued == other.issued; }
  /// Whether registers of an operand have changed while products that read them run.
  bool changed() const {
    for (const AsyncProduct &p : products)
      if (p.held && std::memcmp(p.before, p.held, sizeof p.before) != 0)
        return true;
    return false;
  }
  void commit() { groups.push_back(products.size()); }
  /// Performs all groups but the last `pending`. `read(start)` before elements of the 16 bytes at
  /// `start` are read.
  template <class Read> void wait(std::size_t pending, unsigned lane, Read read) {
    begun = false;
    if (groups.size() <= pending)
      return;
    const auto last = groups.end() - static_cast<std::ptrdiff_t>(pending) - 1;
    const std::size_t count = *last;
    for (std::size_t i = 0; i < count; ++i)
      perform(products[i], lane, read);
    products.erase(products.begin(), products.begin() + static_cast<std::ptrdiff_t>(count));
    groups.erase(groups.begin(), last + 1);
    for (std::size_t &end : groups)
      end -= count;
  }
  void clear() { *this = {}; }

private:
  static float valueOf(const std::uint16_t *element) {
    const std::uint32_t bits = std::uint32_t(*element) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  /// Tells the reads of element `column` with all 16 elements of the sum. Of 16 bytes with elements
  /// of one k, the lanes of the warp read two each.
  template <class Read> static void tellReads(const SharedMatrix &matrix, int column, Read read) {
    for (int k = 0; k < 16; k += matrix.acrossRows ? 1 : 8)
      read(elementOf(matrix, matrix.acrossRows ? column / 8 * 8 : column, k));
  }
  template <class Read> static void perform(AsyncProduct &p, unsigned lane, Read read) {
    if (p.inShared)
      for (int half = 0; half < 2; ++half) {
        const SharedMatrix a = {p.inShared, 16, false};
        tellReads(a, p.row + 8 * half, read);
        for (int k = 0; k < 16; ++k)
          p.a[half][k] = valueOf(elementOf(a, p.row + 8 * half, k));
      }
    for (int n = 0; n < p.columns / 8; ++n)
      for (int odd = 0; odd < 2; ++odd) {
        const int column = 8 * n + static_cast<int>(lane % 4) * 2 + odd;
        if (!odd || !p.b.acrossRows)
          tellReads(p.b, column, read);
        float sums[2] = {};
        for (int k = 0; k < 16; ++k) {
          const float b = valueOf(elementOf(p.b, column, k));
          sums[0] += p.a[0][k] * b;
          sums[1] += p.a[1][k] * b;
        }
        for (int half = 0; half < 2; ++half) {
          float &d = p.d[4 * n + 2 * half + odd];
          d = p.adds ? d + sums[half] : sums[half];
        }
      }
  }

  std::uint64_t issued = 0; ///< a number of all that were started
  std::vector<AsyncProduct> products;
  std::vector<std::size_t> groups; ///< where each ends in `products`
};

/// The first of `size` threads whose copies no fence has followed, or `size`.
inline unsigned firstUnfenced(const std::vector<AsyncProducts> &threads, unsigned size) {
  unsigned i = 0;
  while (i < size && !threads[i].unfenced)
    ++i;
  return i;
}

/// Whether the threads of each group of 128 have started the same products.
inline bool groupsAgree(const std::vector<AsyncProducts> &threads, unsigned size) {
  for (unsigned i = 0; i < size; ++i)
    if (!threads[i].agrees(threads[i / 128 * 128]))
      return false;
  return true;
}

} // namespace emulator

#endif // FSDP_EMULATOR_ASYNCPRODUCTS_H
