//===- AttentionFormTest.cpp ----------------------------------------------===//

#include "runtime/launches/Attention.h"

#include <gtest/gtest.h>

#include <vector>

namespace fsdp::rt {

namespace {

using T = ArenaSpan<float>;
using B = BiasSpan;
using D = DocumentsSpan;

// The rows of Kernels.def: numbers of operands and results.
template <class... S> using Forward = detail::AttentionForm<7, 2, S...>;
template <class... S> using Gradient = detail::AttentionForm<11, 3, S...>;
template <class... S> using BiasGradient = detail::AttentionForm<9, 1, S...>;

TEST(AttentionFormTest, OperandsAreThoseOfAForm) {
  EXPECT_TRUE((Forward<T, T, T, T, T>::fits()));
  EXPECT_TRUE((Forward<T, T, T, B, D, T, T>::fits()));
  EXPECT_TRUE((Forward<T, D, T, T>::fits()));
  EXPECT_TRUE((Gradient<T, T, T, T, T, T, T, T, T>::fits()));
  EXPECT_TRUE((Gradient<T, B, T, T, T, T>::fits()));
  EXPECT_TRUE((BiasGradient<T, B, T, T, T, T>::fits()));
  // Two operands for three, and one result of the gradient for separate operands.
  EXPECT_FALSE((Forward<T, T, T, T>::fits()));
  EXPECT_FALSE((Gradient<T, T, T, T, T, T, T>::fits()));
  EXPECT_FALSE((Gradient<T, T, T, T, T, T, T, T>::fits()));
  // Too few and too many.
  EXPECT_FALSE((Forward<T, T>::fits()));
  EXPECT_FALSE((Forward<T, T, T, T, T, T>::fits()));
  // Options in another order, in another place, and twice.
  EXPECT_FALSE((Forward<T, T, T, D, B, T, T>::fits()));
  EXPECT_FALSE((Forward<B, T, T, T>::fits()));
  EXPECT_FALSE((Forward<T, T, T, T, T, D>::fits()));
  EXPECT_FALSE((Forward<T, T, T, B, B, T>::fits()));
  EXPECT_FALSE((Forward<T, D, D, T, T>::fits()));
  // The gradient of a bias that the call does not have.
  EXPECT_FALSE((BiasGradient<T, T, T, T, T, T, T>::fits()));
  EXPECT_FALSE((BiasGradient<T, D, T, T, T, T>::fits()));
}

/// The addresses that a kernel gets.
constexpr auto addresses = [](const AttentionShape &, auto... p) {
  return std::vector<const void *>{p...};
};

TEST(AttentionFormTest, KernelsGetAllOperands) {
  AttentionShape s{};
  s.part = 3;
  float a[10] = {}, b[1] = {}, out[1] = {}, sums[1] = {}, d[1] = {}, da[10] = {}, db[1] = {};
  std::int32_t ids[1] = {}, stream[1] = {};
  const float *q = a, *bias = b, *y = out, *lse = sums, *dy = d;
  const std::int32_t *docs = ids;
  using All = std::vector<const void *>;
  EXPECT_EQ((Forward<T, T, T, T, T>::call(addresses, s, q, q + 1, q + 2, out, sums)),
            (All{a, a + 1, a + 2, nullptr, nullptr, out, sums}));
  EXPECT_EQ((Forward<T, B, T, T>::call(addresses, s, q, bias, out, sums, stream)),
            (All{a, a + 3, a + 6, b, nullptr, out, sums, stream}));
  EXPECT_EQ((Forward<T, T, T, D, T, T>::call(addresses, s, q, q + 1, q + 2, docs, out, sums)),
            (All{a, a + 1, a + 2, nullptr, ids, out, sums}));
  EXPECT_EQ((Gradient<T, B, D, T, T, T, T>::call(addresses, s, q, bias, docs, y, lse, dy, da)),
            (All{a, a + 3, a + 6, b, ids, out, sums, d, da, da + 3, da + 6}));
  EXPECT_EQ((Gradient<T, T, T, T, T>::call(addresses, s, q, y, lse, dy, da, stream)),
            (All{a, a + 3, a + 6, nullptr, nullptr, out, sums, d, da, da + 3, da + 6, stream}));
  EXPECT_EQ((Gradient<T, T, T, T, T, T, T, T, T>::call(addresses, s, q, q + 1, q + 2, y, lse, dy,
                                                       da, da + 1, da + 2, stream)),
            (All{a, a + 1, a + 2, nullptr, nullptr, out, sums, d, da, da + 1, da + 2, stream}));
  EXPECT_EQ((BiasGradient<T, B, D, T, T, T, T>::call(addresses, s, q, bias, docs, y, lse, dy, db)),
            (All{a, a + 3, a + 6, b, ids, out, sums, d, db}));
}

} // namespace

} // namespace fsdp::rt
