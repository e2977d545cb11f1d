//===- F32MicroKernel.cpp ----------------------------------------------------===//

#include "runtime/kernels/F32MicroKernel.h"

#include "runtime/numerics/Lanes.h"

namespace fsdp::rt {

namespace {

using lanes::kLanes, lanes::load, lanes::store, lanes::multiplyAdd, lanes::Vector;

// Rows and vectors: the sums kept in registers during the loop over l, enough to hide the latency
// of an addition, few enough to leave registers for the operands.
#ifdef __AVX512F__
constexpr int kRows = 8, kVectors = 2;
#else
constexpr int kRows = 4, kVectors = 2;
#endif

/// Prevents the compiler from computing an address from another one, which would use the ports of
/// the multiplications.
template <class T> T separate(T pointer) {
#ifdef __x86_64__
  __asm__("" : "+r"(pointer));
#endif
  return pointer;
}

/// A tile of c: Rows x (Vectors * kLanes), or fewer columns if it is partial. The columns of `a`
/// are contiguous, or else its rows are.
template <int Rows, int Vectors, bool Partial, bool Columns>
void tile(const F32MicroKernel &p, const float *a, const float *b, float *c, std::size_t columns,
          bool add) {
  const std::size_t aRow = p.aRow, aColumn = p.aColumn, bRow = p.bRow, cRow = p.cRow, k = p.k;
  Vector sums[Rows][Vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v)
      sums[i][v] = add ? load<Partial>(c + std::size_t(i) * cRow + std::size_t(v) * kLanes, columns)
                       : Vector{};
  const float *rows[Rows];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
    rows[i] = Columns ? a : separate(a + std::size_t(i) * aRow);
  const auto step = [&](std::size_t l) {
    Vector row[Vectors];
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v)
      row[v] = load<Partial>(b + std::size_t(v) * kLanes, columns);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const float factor = Columns ? a[i] : rows[i][l];
      const Vector factors = lanes::broadcast(factor);
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v)
        sums[i][v] = multiplyAdd(factors, row[v], sums[i][v]);
    }
    b = separate(b + bRow);
    if (Columns)
      a = separate(a + aColumn);
  };
  std::size_t l = 0;
  for (; l + 4 <= k; l += 4) {
    step(l);
    step(l + 1);
    step(l + 2);
    step(l + 3);
  }
  for (; l < k; ++l)
    step(l);
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v)
      store<Partial>(c + std::size_t(i) * cRow + std::size_t(v) * kLanes, sums[i][v], columns);
}

/// All rows of one panel of columns.
template <int Vectors, bool Partial, bool Columns>
void panel(const F32MicroKernel &p, const float *a, const float *b, float *c, std::size_t columns,
           bool add) {
  std::size_t i = 0;
  for (; i + kRows <= p.m; i += kRows)
    tile<kRows, Vectors, Partial, Columns>(p, a + i * p.aRow, b, c + i * p.cRow, columns, add);
  for (; i + 2 <= p.m; i += 2)
    tile<2, Vectors, Partial, Columns>(p, a + i * p.aRow, b, c + i * p.cRow, columns, add);
  for (; i < p.m; ++i)
    tile<1, Vectors, Partial, Columns>(p, a + i * p.aRow, b, c + i * p.cRow, columns, add);
}

template <bool Columns>
void panels(const F32MicroKernel &shape, const float *a, const float *b, float *c, bool add) {
  std::size_t j = 0;
  for (; j + kVectors * kLanes <= shape.n; j += kVectors * kLanes)
    panel<kVectors, false, Columns>(shape, a, b + j, c + j, 0, add);
  for (; j + kLanes <= shape.n; j += kLanes)
    panel<1, false, Columns>(shape, a, b + j, c + j, 0, add);
  if (j < shape.n)
    panel<1, true, Columns>(shape, a, b + j, c + j, shape.n - j, add);
}

} // namespace

void multiply(const F32MicroKernel &shape, const float *a, const float *b, float *c, bool add) {
  shape.aRow == 1 ? panels<true>(shape, a, b, c, add) : panels<false>(shape, a, b, c, add);
}

} // namespace fsdp::rt
