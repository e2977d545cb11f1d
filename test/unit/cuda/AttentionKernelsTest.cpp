#include "runtime/kernels/Kernels.h"
#include "test/unit/cuda/DeviceKernels.h"
#include "test/unit/runtime/kernels/AttentionPlaces.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

using namespace fsdp::rt;

namespace {

/// Whether accesses are what is tested.
bool seeksRaces() {
#ifdef FSDP_CUDA_EMULATOR
  return emulator::settings().races;
#else
  return false;
#endif
}

/// Where races are sought (but for ./check --all), one row of heads and a block of queries and a
/// part of a second one: more blocks access other places in the same order.
AttentionShape tested(AttentionShape s) {
  if (seeksRaces() && !std::getenv("FSDP_TEST_ALL")) {
    s.heads /= s.groups;
    s.batch = s.groups = std::min<std::uint32_t>(s.groups, 1);
    s.queries = std::min<std::uint32_t>(s.queries, 70);
  }
  return s;
}

/// Whether a device's kernels at `offset` are tested: addresses off by one element, and where
/// `offset` is more, other devices, of this compute capability, which multiply in other ways or
/// have less shared memory.
bool choose(const AttentionShape &s, std::size_t offset) {
  if (offset == 1 ? s.width != 32 : offset > 1 && s.width <= 32)
    return false;
  const std::size_t compute = offset > 1 ? offset : 90;
#ifdef FSDP_CUDA_EMULATOR
  if (seeksRaces() && s.scale <= 0)
    return false; // other numbers, no other accesses
  emulator::settings().compute = static_cast<int>(compute);
#else
  if (compute != 90)
    return false;
#endif
  return true;
}

template <class T> class AttentionKernels : public DeviceKernels {
protected:
  /// Results and gradients are the CPU's.
  void compare(const AttentionShape &sizes, std::size_t offset,
               Documents documents = Documents::None, Bias bias = Bias::None) {
    AttentionShape s = rowMajor(tested(sizes));
    SCOPED_TRACE(::testing::Message()
                 << s.queries << " queries, " << s.keys << " keys of " << s.width << " + " << offset
                 << ", window " << s.window << ", softcap " << s.softcap << ", documents "
                 << static_cast<int>(documents) << ", bias " << static_cast<int>(bias));
    const std::size_t rows = s.batch * s.heads * s.queries, n = rows * s.width,
                      m = s.batch * s.groups * s.keys * s.width;
    const Floats q = rounded<T>(normal(n, this->random)), k = rounded<T>(normal(m, this->random)),
                 v = rounded<T>(normal(m, this->random)),
                 dOut = rounded<T>(normal(n, this->random));
    const std::vector<std::int32_t> ids = randomDocuments(s, documents, this->random);
    const std::int32_t *seen = ids.empty() ? nullptr : ids.data();
    const Floats added = randomBias(s, bias, this->random);
    const float *b = added.empty() ? nullptr : added.data();
    const bool few = seen || s.window > 0 || bias != Bias::None;
    Floats out(n), sums(rows), dQ(n), dK(m), dV(m), dBias(added.size());
    kernels::attention(s, q.data(), k.data(), v.data(), b, seen, out.data(), sums.data());
    Device<T> q_(q, offset), k_(k, offset), v_(v, offset), out_(n, offset), dOut_(dOut, offset),
        dQ_(n, offset), dK_(m, offset), dV_(m, offset);
    Device<float> sums_(rows), bias_(added), dBias_(Floats(added.size(), NAN));
    Device<std::int32_t> ids_(ids);
    const float *b_ = added.empty() ? nullptr : static_cast<float *>(bias_);
    const std::int32_t *seen_ = ids.empty() ? nullptr : static_cast<std::int32_t *>(ids_);
    OK(attention(s, q_, k_, v_, b_, seen_, out_, sums_, this->stream));
    this->expectClose(out_.floats(), out, "out", few);
    expectNear(sums_.floats(), sums, 1e-5, 1e-5, "log sum exp");
    out = out_.floats(); // as the gradient on the device reads it
    kernels::attentionGrad(s, q.data(), k.data(), v.data(), b, seen, out.data(), sums.data(),
                           dOut.data(), dQ.data(), dK.data(), dV.data());
    OK(attention_grad(s, q_, k_, v_, b_, seen_, out_, sums_, dOut_, dQ_, dK_, dV_, this->stream));
    if (b) {
      kernels::attentionBiasGrad(s, q.data(), k.data(), v.data(), b, seen, out.data(), sums.data(),
                                 dOut.data(), dBias.data());
      OK(attention_bias_grad(s, q_, k_, v_, b_, seen_, out_, sums_, dOut_, dBias_, this->stream));
      expectNear(dBias_.floats(), dBias, 1e-5, 2e-5, "dBias", 1e-6);
    }
    this->expectClose(dQ_.floats(), dQ, "dQ", few);
    this->expectClose(dK_.floats(), dK, "dK", few);
    this->expectClose(dV_.floats(), dV, "dV", few);
  }

  /// Probabilities and their gradients are rounded to bf16 before they are multiplied: single
  /// elements, where large terms cancel, are less exact than all of them together.
  /// Where queries see `few` keys, probabilities are larger, and so is their rounding.
  static void expectClose(const Floats &got, const Floats &expected, const char *what,
                          bool few = false) {
    constexpr bool narrow = sizeof(T) == 2;
    expectNear(got, expected, narrow ? 0x1p-7 : 1e-5, narrow ? (few ? 0.08 : 0.04) : 2e-5, what,
               1e-6);
    double error = 0, size = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      error += std::pow(double(got[i]) - double(expected[i]), 2);
      size += std::pow(double(expected[i]), 2);
    }
    EXPECT_LE(std::sqrt(error), (narrow ? 0.005 : 1e-6) * std::sqrt(size) + 1e-6) << what;
  }
};
using Elements = ::testing::Types<float, bf16>;
TYPED_TEST_SUITE(AttentionKernels, Elements);

/// Fields: batch, heads, groups, queries, keys, width, scale, causal.
const AttentionShape kShapes[] = {
    {1, 1, 1, 1, 1, 32, 0.2f, true},     // one of everything
    {1, 2, 1, 70, 70, 64, 0.125f, true}, // more than a block of each, in a group
    {2, 4, 2, 20, 33, 32, 0.2f, true},   // more keys than queries
    {1, 1, 1, 150, 140, 16, 0.3f, true}, // queries that see no key; a width that is padded
    {1, 1, 1, 200, 72, 32, 0.2f, true},  // blocks of queries that see no key
    {1, 1, 1, 65, 130, 128, 0.09f, false}, {1, 2, 2, 17, 40, 80, 0.1f, true},
    {2, 1, 1, 9, 5, 20, 0.2f, false},   // a width that no 16-byte access divides
    {1, 1, 1, 64, 126, 64, 0.2f, true}, // blocks that lack exactly one visible key
    {1, 1, 1, 65, 95, 32, 0.2f, true},     {1, 1, 1, 0, 3, 32, 0.2f, true},
    {1, 2, 1, 70, 80, 64, -0.1f, true}, // the least score has the largest weight
    {1, 1, 1, 50, 140, 128, -0.1f, true},  {1, 1, 1, 40, 70, 32, -0.2f, false},
    {1, 1, 1, 70, 70, 64, 0.0f, true}}; // all keys that are seen weigh the same

TYPED_TEST(AttentionKernels, ForwardAndGradientsAreTheCpus) {
  for (const AttentionShape &sizes : kShapes)
    for (std::size_t offset : {0, 1, 80, 86})
      if (choose(sizes, offset) && !(seeksRaces() && offset == 86))
        this->compare(sizes, offset > 1 ? 0 : offset);
}

TYPED_TEST(AttentionKernels, WindowsDocumentsAndCapsAreTheCpus) {
  const auto with = [](AttentionShape s, std::uint32_t window, float softcap) {
    s.window = window, s.softcap = softcap;
    return s;
  };
  const std::pair<AttentionShape, Documents> cases[] = {
      {with({1, 2, 1, 200, 200, 64, 0.125f, true}, 40, 0), Documents::None},
      {with({1, 2, 1, 140, 170, 32, 0.2f, true}, 2, 0), Documents::None},
      {with({1, 1, 1, 150, 140, 16, 0.3f, true}, 30, 0), Documents::None},
      {with({2, 2, 1, 140, 160, 32, 0.2f, true}, 0, 0), Documents::InRow},
      {with({1, 2, 2, 70, 90, 32, 0.2f, true}, 0, 2), Documents::None},
      {with({2, 2, 2, 70, 70, 64, -0.1f, false}, 0, 1), Documents::Mixed},
      {with({1, 1, 1, 5, 7, 32, -0.2f, false}, 0, 1), Documents::None},
      {with({1, 1, 1, 5, 7, 128, -0.1f, false}, 0, 1), Documents::None},
      {with({1, 1, 1, 70, 70, 64, 0.125f, true}, 0, 0), Documents::InRow},
      {with({1, 1, 1, 150, 150, 128, 0.09f, true}, 70, 3), Documents::InRow},
      {with({1, 2, 1, 9, 33, 20, 0.3f, true}, 4, 0.5f), Documents::Mixed}};
  for (const auto &[sizes, documents] : cases)
    for (std::size_t offset : {0, 1, 80, 86})
      // Neither addresses nor blocks of fewer rows change which accesses are ordered.
      if (choose(sizes, offset) && !(seeksRaces() && (offset == 1 || offset == 86)))
        this->compare(sizes, offset > 1 ? 0 : offset, documents);
}

TYPED_TEST(AttentionKernels, BiasesAreTheCpus) {
  const auto with = [](AttentionShape s, std::uint32_t window, float softcap) {
    s.window = window, s.softcap = softcap;
    return s;
  };
  const std::tuple<AttentionShape, Documents, Bias> cases[] = {
      {{1, 1, 1, 1, 1, 32, 0.2f, true}, Documents::None, Bias::Shared},
      {{2, 2, 1, 70, 70, 64, 0.125f, true}, Documents::None, Bias::OfHeads},
      {{2, 4, 2, 20, 75, 32, 0.2f, false}, Documents::None, Bias::Shared},
      {{1, 1, 1, 90, 70, 16, 0.3f, true}, Documents::None, Bias::OfHeads},
      {{1, 2, 2, 70, 90, 64, -0.1f, true}, Documents::Mixed, Bias::Shared},
      {with({1, 2, 1, 70, 140, 128, 0.09f, true}, 40, 3), Documents::InRow, Bias::OfHeads},
      {with({2, 2, 1, 9, 33, 20, 0.3f, true}, 0, 0.5f), Documents::None, Bias::Shared},
      {{2, 2, 1, 40, 72, 64, 0.125f, true}, Documents::None, Bias::LargeShared},
      {{2, 2, 2, 40, 72, 32, 0.2f, false}, Documents::None, Bias::LargeOfHeads},
      {with({2, 2, 1, 30, 72, 128, 0.09f, true}, 40, 3), Documents::Mixed, Bias::LargeOfHeads},
      {{2, 2, 1, 30, 72, 16, 0.2f, true}, Documents::InRow, Bias::LargeShared},
      {{1, 1, 1, 40, 70, 32, -0.2f, false}, Documents::None, Bias::Shared},
      {{1, 1, 1, 5, 7, 128, -0.1f, false}, Documents::None, Bias::Shared}};
  for (const auto &[sizes, documents, bias] : cases)
    for (std::size_t offset : {0, 1, 80, 86})
      // Where races are sought, one case of each kind of bias, the second by groups and by warps.
      if (choose(sizes, offset) &&
          !(seeksRaces() && (offset == 1 || offset == 86 || sizes.keys < 75 || sizes.keys == 90)))
        this->compare(sizes, offset > 1 ? 0 : offset, documents, bias);
}

// Blocks of keys one after the other, and those that documents leave, of each kernel with a bias.
// Numbers are compared above.
TYPED_TEST(AttentionKernels, BiasesOfBlocksAndDocuments) {
  for (std::uint32_t width : {32, 64, 128})
    for (Documents documents : {Documents::None, Documents::InRow})
      for (std::size_t offset : {0, 80, 86})
        if (const AttentionShape sizes{1, 1, 1, 70, 140, width, 0.1f, false};
            seeksRaces() && choose(sizes, offset))
          this->compare(sizes, 0, documents, Bias::Shared);
}

// One case of each kernel that the cases above leave out where races are sought.
TYPED_TEST(AttentionKernels, KernelsOfOtherDevices) {
  for (std::uint32_t width : {64, 128})
    for (bool hasWindow : {false, true})
      for (Bias bias : {Bias::None, Bias::Shared}) {
        AttentionShape sizes = {1, 1, 1, 40, 40, width, 0.1f, true};
        sizes.window = hasWindow ? 20 : 0;
        for (std::size_t offset : {0, 80, 86})
          if (choose(sizes, offset) && !(hasWindow && bias != Bias::None)) {
            this->compare(sizes, 0, Documents::None, bias);
            if (hasWindow)
              this->compare(sizes, 0, Documents::InRow, bias);
          }
      }
  if (const AttentionShape sizes{1, 1, 1, 4, 4, 32, 0.1f, true}; choose(sizes, 1))
    this->compare(sizes, 1, Documents::None, Bias::Shared);
}

// Queries before their keys, among them and behind them.
TYPED_TEST(AttentionKernels, OffsetsAreTheCpus) {
  const auto at = [](std::int32_t offset, std::uint32_t window, AttentionShape s) {
    s.offset = offset, s.window = window;
    return s;
  };
  for (const AttentionShape &sizes : {at(70, 0, {1, 2, 1, 70, 70, 64, 0.125f, true}),
                                      at(-70, 0, {1, 2, 1, 70, 70, 64, 0.125f, true}),
                                      at(-40, 0, {1, 2, 1, 70, 140, 32, 0.2f, true}),
                                      at(30, 20, {1, 1, 1, 70, 70, 32, 0.2f, true}),
                                      at(45, 0, {1, 2, 1, 90, 70, 32, 0.2f, true})})
    for (std::size_t offset : {0, 80})
      if (choose(sizes, offset) && !seeksRaces())
        this->compare(sizes, 0);
  if (!seeksRaces() && choose({}, 90)) {
    this->compare(at(-60, 0, {2, 2, 1, 30, 90, 32, 0.2f, true}), 0, Documents::InRow,
                  Bias::OfHeads);
    // Keys end before the queries.
    this->compare(at(45, 0, {1, 2, 1, 90, 70, 32, 0.2f, true}), 0, Documents::None, Bias::OfHeads);
  }
}

// What is no number in blocks of keys that are left out would show, times 0.
TYPED_TEST(AttentionKernels, LeavesOutBlocksOfKeys) {
  using T = TypeParam;
  if (seeksRaces())
    return; // the same accesses as those of other shapes
  for (const bool inWindow : {true, false}) {
    AttentionShape s = rowMajor({1, 1, 1, 512, 512, 16, 0.25f, true});
    s.window = inWindow ? 64 : 0;
    const std::size_t n = s.queries * s.width;
    Floats k = normal(n, this->random), v = normal(n, this->random);
    std::vector<std::int32_t> ids;
    for (std::int32_t key = 0; key < 512; ++key)
      ids.push_back(key / 64);
    k[0] = v[0] = NAN;
    Device<T> q_(normal(n, this->random)), k_(k), v_(v), dOut_(normal(n, this->random)), out_(n),
        dQ_(n), dK_(n), dV_(n);
    Device<float> sums_(s.queries);
    Device<std::int32_t> ids_(ids);
    const std::int32_t *seen = inWindow ? nullptr : static_cast<std::int32_t *>(ids_);
    OK(attention(s, q_, k_, v_, nullptr, seen, out_, sums_, this->stream));
    OK(attention_grad(s, q_, k_, v_, nullptr, seen, out_, sums_, dOut_, dQ_, dK_, dV_,
                      this->stream));
    EXPECT_TRUE(std::isnan(out_.floats()[0]));
    for (const Floats &values : {out_.floats(), dQ_.floats(), dK_.floats(), dV_.floats()})
      for (std::size_t i = 3 * n / 4; i < n; ++i)
        ASSERT_FALSE(std::isnan(values[i])) << i / s.width;
  }
}

// With strides of whole 16-byte parts, and with others: the same numbers as in row-major order.
TYPED_TEST(AttentionKernels, OperandsFollowTheirStrides) {
  using T = TypeParam;
  if (seeksRaces())
    return; // the same accesses of shared memory as of rows one behind another
  for (const AttentionShape &sizes : {AttentionShape{2, 4, 2, 40, 70, 32, 0.2f, true},
                                      {1, 2, 2, 33, 33, 64, 0.125f, false},
                                      {2, 2, 1, 20, 20, 128, 0.1f, true},
                                      {1, 3, 1, 9, 12, 20, 0.3f, true}})
    for (std::size_t unit : {1, 8}) {
      SCOPED_TRACE(::testing::Message() << "width " << sizes.width << ", unit " << unit);
      const std::size_t rows = sizes.batch * sizes.heads * sizes.queries;
      const std::size_t n = rows * sizes.width,
                        m = sizes.batch * sizes.groups * sizes.keys * sizes.width;
      const Floats q = normal(n, this->random), k = normal(m, this->random),
                   v = normal(m, this->random), dOut = normal(n, this->random);
      const AttentionShape s = rowMajor(sizes);
      Device<T> q_(q), k_(k), v_(v), dOut_(dOut), out_(n), dQ_(n), dK_(m), dV_(m);
      Device<float> sums_(rows);
      OK(attention(s, q_, k_, v_, nullptr, nullptr, out_, sums_, this->stream));
      OK(attention_grad(s, q_, k_, v_, nullptr, nullptr, out_, sums_, dOut_, dQ_, dK_, dV_,
                        this->stream));

      const auto place = [&](std::size_t heads, std::size_t positions) {
        return AttentionPlace(sizes.batch, heads, positions, sizes.width, unit, this->random);
      };
      const AttentionPlace atQ = place(sizes.heads, sizes.queries),
                           atK = place(sizes.groups, sizes.keys),
                           atOut = place(sizes.heads, sizes.queries);
      AttentionShape odd = sizes;
      odd.q = atQ.strides, odd.k = atK.strides, odd.out = atOut.strides;
      Device<T> oddQ(atQ.scattered(q)), oddK(atK.scattered(k)), oddV(atK.scattered(v)),
          oddDOut(atOut.scattered(dOut)), oddOut(Floats(atOut.count, NAN)),
          oddDQ(Floats(atQ.count, NAN)), oddDK(Floats(atK.count, NAN)),
          oddDV(Floats(atK.count, NAN));
      Device<float> oddSums(rows);
      OK(attention(odd, oddQ, oddK, oddV, nullptr, nullptr, oddOut, oddSums, this->stream));
      OK(attention_grad(odd, oddQ, oddK, oddV, nullptr, nullptr, oddOut, oddSums, oddDOut, oddDQ,
                        oddDK, oddDV, this->stream));
      EXPECT_EQ(oddSums.floats(), sums_.floats());
      EXPECT_EQ(atOut.gathered(oddOut.floats()), out_.floats());
      EXPECT_EQ(atQ.gathered(oddDQ.floats()), dQ_.floats());
      EXPECT_EQ(atK.gathered(oddDK.floats()), dK_.floats());
      EXPECT_EQ(atK.gathered(oddDV.floats()), dV_.floats());
      EXPECT_EQ(atOut.overwritten(oddOut.floats()) + atQ.overwritten(oddDQ.floats()) +
                    atK.overwritten(oddDK.floats()) + atK.overwritten(oddDV.floats()),
                0u)
          << "numbers between the rows";
    }
}

TYPED_TEST(AttentionKernels, GradientsAreTheSameBits) {
  using T = TypeParam;
  const AttentionShape s = rowMajor({1, 4, 1, 80, 80, 32, 0.2f, true});
  const std::size_t rows = 4 * 80, n = rows * 32, m = 80 * 32;
  Device<T> q(normal(n, this->random)), k(normal(m, this->random)), v(normal(m, this->random)),
      dOut(normal(n, this->random)), out(n), dQ(n), dK(m), dV(m);
  Device<float> sums(rows);
  OK(attention(s, q, k, v, nullptr, nullptr, out, sums, this->stream));
  OK(attention_grad(s, q, k, v, nullptr, nullptr, out, sums, dOut, dQ, dK, dV, this->stream));
  const Floats first[] = {dQ.floats(), dK.floats(), dV.floats()};
  this->reorder(99);
  OK(attention_grad(s, q, k, v, nullptr, nullptr, out, sums, dOut, dQ, dK, dV, this->stream));
  EXPECT_EQ(dQ.floats(), first[0]);
  EXPECT_EQ(dK.floats(), first[1]);
  EXPECT_EQ(dV.floats(), first[2]);
}

TYPED_TEST(AttentionKernels, RefusesWhatItDoesNotCompute) {
  Device<TypeParam> x(1);
  Device<float> sums(1);
  for (const AttentionShape &s :
       {AttentionShape{1, 1, 1, 1, 1, 129, 1, true}, AttentionShape{1, 3, 2, 1, 1, 64, 1, true}}) {
    EXPECT_EQ(attention(s, x, x, x, nullptr, nullptr, x, sums, this->stream),
              cudaErrorInvalidValue);
    EXPECT_EQ(attention_grad(s, x, x, x, nullptr, nullptr, x, sums, x, x, x, x, this->stream),
              cudaErrorInvalidValue);
    EXPECT_EQ(attention_bias_grad(s, x, x, x, sums, nullptr, x, sums, x, sums, this->stream),
              cudaErrorInvalidValue);
  }
}

} // namespace
