#include "runtime/kernels/Kernels.h"
#include "test/unit/cuda/DeviceKernels.h"

using namespace fsdp::rt;

namespace {

template <class T> class GenerationKernels : public DeviceKernels {
protected:
  /// Consecutive positions of each sample from a random first one, at most `last`.
  std::vector<std::int32_t> consecutive(std::size_t samples, std::size_t count,
                                        std::uint32_t last) {
    std::vector<std::int32_t> positions;
    for (std::size_t sample = 0; sample < samples; ++sample)
      for (std::size_t i = 0, first = this->random() % (last + 1); i < count; ++i)
        positions.push_back(std::int32_t(first + i));
    return positions;
  }
};
using Elements = ::testing::Types<float, bf16>;
TYPED_TEST_SUITE(GenerationKernels, Elements);

/// Fields: batch, heads, groups, queries, keys, width, scale, window, softcap. Fewer keys than a
/// block has warps and more, widths of a part of a warp and of several, windows within a warp's
/// reach and beyond it. Each case sets the strides of the queries.
const CachedAttentionShape kShapes[] = {
    {1, 1, 1, 1, 1, 32, 0.2f, 0, 0, {}},    {2, 4, 2, 1, 33, 64, 0.125f, 0, 0, {}},
    {1, 6, 2, 3, 20, 80, 0.1f, 0, 0, {}},   {1, 2, 1, 5, 70, 128, 0.1f, 3, 0, {}},
    {2, 3, 3, 2, 40, 20, 0.2f, 19, 5, {}},  {1, 2, 2, 4, 4, 1, 1.0f, 1, 0, {}},
    {1, 4, 1, 9, 50, 33, 0.2f, 0, 0.5, {}}, {1, 1, 1, 12, 60, 16, 0.3f, 0, 0, {}},
    {1, 2, 1, 0, 3, 16, 0.3f, 0, 0, {}}};

TYPED_TEST(GenerationKernels, CachedAttentionIsTheCpus) {
  using T = TypeParam;
  for (CachedAttentionShape s : kShapes)
    for (bool queriesFirst : {true, false}) {
      SCOPED_TRACE(::testing::Message() << s.queries << " queries, " << s.keys << " keys of "
                                        << s.width << ", window " << s.window);
      const std::size_t width = s.width, all = std::size_t(s.heads) * s.queries * width;
      if (queriesFirst)
        s.q = {all, width, s.heads * width};
      else
        s.q = {all, s.queries * width, width};
      const std::size_t ofKeys = std::size_t(s.batch) * s.groups * s.keys * width;
      const Floats q = rounded<T>(normal(s.batch * all, this->random)),
                   k = rounded<T>(normal(ofKeys, this->random)),
                   v = rounded<T>(normal(ofKeys, this->random));
      const auto positions = this->consecutive(s.batch, s.queries, s.keys - s.queries);
      Floats out(q.size());
      kernels::cachedAttention(s, q.data(), k.data(), v.data(), positions.data(), out.data());
      Device<T> q_(q, 1), k_(k), v_(v, 1), out_(q.size());
      Device<std::int32_t> positions_(positions);
      OK(cached_attention(s, q_, k_, v_, positions_, out_, this->stream));
      expectClose<T>(out_.floats(), out, "out");
    }
}

// At a position where not every query has a key the kernel is as at the nearest where they have.
TYPED_TEST(GenerationKernels, CachedAttentionStaysWithinItsKeys) {
  CachedAttentionShape s{1, 1, 1, 3, 20, 8, 0.3f, 0, 0, {24, 8, 8}};
  const Floats q = normal(24, this->random), k = normal(160, this->random);
  auto at = [&](std::int32_t first) {
    Device<TypeParam> q_(q), k_(k), out_(24);
    Device<std::int32_t> positions_(std::vector<std::int32_t>(3, first));
    EXPECT_EQ(cached_attention(s, q_, k_, k_, positions_, out_, this->stream), cudaSuccess);
    return out_.floats();
  };
  EXPECT_EQ(at(-7), at(0));
  EXPECT_EQ(at(18), at(17));
  EXPECT_EQ(at(1 << 30), at(17));
  EXPECT_NE(at(0), at(17));
}

// The key with a number that is none is a warp's only one, and one of several.
TYPED_TEST(GenerationKernels, CachedAttentionShowsANaN) {
  for (std::size_t bad : {0, 4, 9}) {
    const CachedAttentionShape s{1, 1, 1, 1, 20, 8, 0.3f, 0, 0, {8, 8, 8}};
    Floats k = normal(160, this->random);
    k[bad * 8] = std::nanf("");
    for (std::size_t position : {bad, std::size_t(19)}) {
      Device<TypeParam> q_(normal(8, this->random)), k_(k), out_(8);
      Device<std::int32_t> positions_(std::vector<std::int32_t>{std::int32_t(position)});
      OK(cached_attention(s, q_, k_, k_, positions_, out_, this->stream));
      for (float value : out_.floats())
        EXPECT_TRUE(std::isnan(value)) << "key " << bad << " seen from " << position;
    }
  }
}

TYPED_TEST(GenerationKernels, CachedAttentionRefusesWideHeads) {
  CachedAttentionShape s{1, 1, 1, 1, 1, 136, 1, 0, 0, {136, 136, 136}};
  Device<TypeParam> x(136), y(136);
  Device<std::int32_t> positions_(std::vector<std::int32_t>{0});
  EXPECT_EQ(cached_attention(s, x, x, x, positions_, y, this->stream), cudaErrorInvalidValue);
}

// Rows outside of the table and rows at one position are among them; tables of no rows too.
TYPED_TEST(GenerationKernels, WriteRowsIsTheCpus) {
  using T = TypeParam;
  for (const WriteShape &s :
       {WriteShape{1, 1, 1, 1, 1}, WriteShape{2, 3, 9, 4, 5}, WriteShape{3, 1, 40, 17, 64},
        WriteShape{2, 2, 5, 0, 3}, WriteShape{2, 0, 5, 2, 3}, WriteShape{1, 4, 3, 6, 300}})
    for (bool inPlace : {false, true}) {
      SCOPED_TRACE(::testing::Message() << s.samples << " x " << s.outer << " x " << s.positions
                                        << ", rows " << s.rows << " x " << s.width);
      const Floats table =
          rounded<T>(normal(s.samples * s.outer * s.positions * s.width, this->random));
      const Floats rows = rounded<T>(normal(s.samples * s.outer * s.rows * s.width, this->random));
      std::vector<std::int32_t> positions(s.samples * s.rows);
      for (std::int32_t &position : positions)
        position = std::int32_t(this->random() % (s.positions + 3)) - 1;
      if (s.rows > 1)
        positions[0] = std::int32_t(s.positions);
      Floats expected(table.size());
      kernels::writeRows(s, table.data(), rows.data(), positions.data(), expected.data());
      Device<T> table_(table, 1), rows_(rows), apart(table.size());
      Device<std::int32_t> positions_(positions);
      Device<T> &written = inPlace ? table_ : apart;
      OK(write_rows(s, table_, rows_, positions_, written, this->stream));
      EXPECT_EQ(written.floats(), expected);
    }
}

TYPED_TEST(GenerationKernels, RopeAtPositionsIsTheCpus) {
  using T = TypeParam;
  for (RopeShape s : {RopeShape{3, 5, 1, 16, 10000, false}, RopeShape{2, 1, 12, 64, 500000, true},
                      RopeShape{8, 3, 2, 6, 10000, false}, RopeShape{0, 4, 1, 8, 10000, false},
                      RopeShape{6, 4, 2, 16, 100, true, 1.25, 4, RopeRamp::Index, 5, 2},
                      RopeShape{4, 30, 2, 16, 100, false, 1, 4, RopeRamp::Rate, 0.03, 0.4}})
    for (std::size_t repeats : {1, 2}) {
      if (s.blocks % repeats)
        continue;
      s.repeats = repeats;
      SCOPED_TRACE(::testing::Message() << s.blocks << " x " << s.positions << " x " << s.inner
                                        << " x " << s.width << ", repeats " << repeats);
      const std::size_t count = s.blocks * s.positions * s.inner * s.width;
      const Floats x = rounded<T>(normal(count, this->random));
      auto positions = this->consecutive(s.blocks / repeats, s.positions, 9000);
      if (!positions.empty())
        positions.back() = -3;
      Floats y(count);
      kernels::ropeAt(s, x.data(), positions.data(), y.data());
      Device<T> x_(x, 1), y_(count);
      Device<std::int32_t> positions_(positions);
      OK(rope(s, x_, positions_, y_, this->stream));
      expectNear(y_.floats(), y, sizeof(T) == 2 ? 0x1p-8 : 1e-5, 1e-5, "y", 1e-6);
    }
}

} // namespace
