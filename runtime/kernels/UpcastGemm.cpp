//===- UpcastGemm.cpp -------------------------------------------------===//

#include "runtime/kernels/UpcastGemm.h"

#include "runtime/device/Workers.h"
#include "runtime/device/Workspace.h"
#include "runtime/kernels/F32MicroKernel.h"
#include "runtime/numerics/BFloat16.h"

#include <algorithm>

namespace fsdp::rt {

namespace {

constexpr std::int64_t kRows = 64, kColumns = 256, kTerms = 256;

/// to[i * width + j] = from[i, j].
void widen(const bf16 *from, std::int64_t rowStride, std::int64_t columnStride, std::int64_t rows,
           std::int64_t columns, std::int64_t width, float *to) {
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      to[i * width + j] = from[i * rowStride + j * columnStride];
}

/// Rows [begin, end) of one matrix of the batch.
template <class Out>
void multiplyRows(const Gemm &g, const bf16 *a, const bf16 *b, Out *c, std::int64_t begin,
                  std::int64_t end, float *left) {
  float *right = left + kRows * kTerms, *sums = right + kTerms * kColumns;
  for (std::int64_t column = 0; column < g.n; column += kColumns) {
    const std::int64_t columns = std::min(kColumns, g.n - column);
    for (std::int64_t term = 0; term < g.k; term += kTerms) {
      const std::int64_t terms = std::min(kTerms, g.k - term);
      widen(a + begin * g.a.row + term * g.a.column, g.a.row, g.a.column, end - begin, terms,
            kTerms, left);
      widen(b + term * g.b.row + column * g.b.column, g.b.row, g.b.column, terms, columns, kColumns,
            right);
      multiply({static_cast<std::size_t>(end - begin), static_cast<std::size_t>(columns),
                static_cast<std::size_t>(terms), kTerms, 1, kColumns, kColumns},
               left, right, sums, term > 0);
    }
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t j = 0; j < columns; ++j) {
        Out &to = c[i * g.c.row + (column + j) * g.c.column];
        const float sum = sums[(i - begin) * kColumns + j];
        to = g.beta != 0 ? sum + float(to) : sum;
      }
  }
}

template <class Out>
void multiplyAll(const Gemm &g, const bf16 *a, const bf16 *b, Out *c, EpilogueCallback done) {
  constexpr std::size_t kFloats = kRows * kTerms + kTerms * kColumns + kRows * kColumns;
  const std::int64_t blocks = (g.m + kRows - 1) / kRows;
  const auto pieces = static_cast<std::size_t>(g.batch[0] * g.batch[1] * g.batch[2] * blocks);
  auto *workspace = static_cast<float *>(
      Workspace::ofThread().reserve(slotsOfPieces(pieces) * kFloats * sizeof(float)));
  forEachPiece(pieces, [&](std::size_t piece, std::size_t slot) {
    auto left = static_cast<std::int64_t>(piece);
    const std::int64_t row = left % blocks * kRows;
    left /= blocks;
    const std::int64_t z = left % g.batch[2], y = left / g.batch[2] % g.batch[1],
                       x = left / g.batch[2] / g.batch[1];
    const auto at = [&](const GemmStrides &s) {
      return x * s.batch[0] + y * s.batch[1] + z * s.batch[2];
    };
    multiplyRows(g, a + at(g.a), b + at(g.b), c + at(g.c), row, std::min(row + kRows, g.m),
                 workspace + slot * kFloats);
  });
  if (done.call)
    done.call(done.self, 0, g.m);
}

} // namespace

void multiplyWidened(const Gemm &gemm, const bf16 *a, const bf16 *b, bf16 *c,
                     EpilogueCallback done) {
  multiplyAll(gemm, a, b, c, done);
}
void multiplyWidened(const Gemm &gemm, const bf16 *a, const bf16 *b, float *c,
                     EpilogueCallback done) {
  multiplyAll(gemm, a, b, c, done);
}

} // namespace fsdp::rt
