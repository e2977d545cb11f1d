//===- Gemm.cpp - matrix products -----------------------------------------===//
//
// Each stream thread has separate prepared products, and slots for the threads that help it, so no
// lock is needed.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Gemm.h"

#include "base/Error.h"
#include "runtime/device/Workers.h"
#include "runtime/device/Workspace.h"
#include "runtime/kernels/F32MicroKernel.h"
#include "runtime/kernels/GemmPlan.h"
#include "runtime/numerics/BFloat16.h"

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>
#include <unordered_map>

namespace fsdp::rt {

using namespace base;

namespace {

/// Everything of a product but its addresses, as numbers to hash and compare.
using Key = std::array<std::int64_t, 25>;

Key keyOf(const Gemm &g, DType in, DType out, std::size_t slots) {
  Key key{g.m,         g.n,
          g.k,         static_cast<std::int64_t>(in),
          g.batch[0],  g.batch[1],
          g.batch[2],  static_cast<std::int64_t>(out),
          g.beta != 0, static_cast<std::int64_t>(slots)};
  std::size_t next = 10;
  for (const GemmStrides *x : {&g.a, &g.b, &g.c})
    for (std::int64_t stride : {x->row, x->column, x->batch[0], x->batch[1], x->batch[2]})
      key[next++] = stride;
  return key;
}

struct KeyHash {
  std::size_t operator()(const Key &key) const {
    std::size_t hash = 0;
    for (std::int64_t number : key)
      hash = (hash ^ static_cast<std::size_t>(number)) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 32);
  }
};

/// A product without terms: zero, or nothing to add.
template <class Out> void fillZero(const Gemm &g, Out *c) {
  for (std::int64_t b0 = 0; b0 < g.batch[0]; ++b0)
    for (std::int64_t b1 = 0; b1 < g.batch[1]; ++b1)
      for (std::int64_t b2 = 0; b2 < g.batch[2]; ++b2)
        for (std::int64_t i = 0; i < g.m; ++i)
          for (std::int64_t j = 0; j < g.n; ++j)
            c[b0 * g.c.batch[0] + b1 * g.c.batch[1] + b2 * g.c.batch[2] + i * g.c.row +
              j * g.c.column] = Out(0.0f);
}

/// The prepared product; none if the library does not support these types on this processor.
template <class In, class Out>
std::optional<GemmPlan> prepare(const Gemm &gemm, const GemmLibrary &library) {
  try {
    return GemmPlan(gemm, dtypeOf<In>, dtypeOf<Out>, library);
  } catch (const dnnl::error &error) {
    if (std::is_same_v<In, bf16> && error.status == dnnl_unimplemented)
      return std::nullopt;
    throw;
  }
}

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

/// Performs a product of bf16 on a processor for which oneDNN has none (before AVX-512): blocks are
/// widened to float, multiplied as floats and rounded once. Uses half a megabyte of the thread's
/// workspace.
template <class Out>
void multiplyWidened(const Gemm &g, const bf16 *a, const bf16 *b, Out *c, EpilogueCallback done) {
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

template <class In, class Out>
void kernels::gemm(const Gemm &gemm, const In *a, const In *b, Out *c, EpilogueCallback done) {
  if (gemm.m == 0 || gemm.n == 0 || gemm.batch[0] * gemm.batch[1] * gemm.batch[2] == 0)
    return;
  if (gemm.k == 0) {
    if (gemm.beta == 0)
      fillZero(gemm, c);
    if (done.call)
      done.call(done.self, 0, gemm.m);
    return;
  }
  const std::size_t slots = slotsOfPieces(~std::size_t(0));
  thread_local std::unordered_map<std::size_t, GemmLibrary> libraries;
  const GemmLibrary &library = libraries.try_emplace(slots, slots).first->second;
  thread_local std::unordered_map<Key, std::optional<GemmPlan>, KeyHash> plans;
  const DType in = dtypeOf<In>, out = dtypeOf<Out>;
  const Key key = keyOf(gemm, in, out, slots);
  try {
    auto found = plans.find(key);
    if (found == plans.end())
      found = plans.emplace(key, prepare<In, Out>(gemm, library)).first;
    if (found->second)
      found->second->run(library, a, b, c, done);
    else if constexpr (std::is_same_v<In, bf16>)
      multiplyWidened(gemm, a, b, c, done);
  } catch (const dnnl::error &error) {
    throw Error(format("oneDNN refused the matrix product m=%lld n=%lld k=%lld of %s to %s: %s",
                       static_cast<long long>(gemm.m), static_cast<long long>(gemm.n),
                       static_cast<long long>(gemm.k), nameOf(in), nameOf(out), error.what()));
  }
}

template void kernels::gemm(const Gemm &, const float *, const float *, float *, EpilogueCallback);
template void kernels::gemm(const Gemm &, const bf16 *, const bf16 *, bf16 *, EpilogueCallback);
template void kernels::gemm(const Gemm &, const bf16 *, const bf16 *, float *, EpilogueCallback);

std::string kernels::gemmLibrary() { return GemmLibrary::describe(); }

} // namespace fsdp::rt
