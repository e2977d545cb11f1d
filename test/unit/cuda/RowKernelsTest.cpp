#include "runtime/kernels/Kernels.h"
#include "test/unit/cuda/DeviceKernels.h"

using namespace fsdp::rt;

namespace {

template <class T> class RowKernels : public DeviceKernels {};
using Elements = ::testing::Types<float, bf16>;
TYPED_TEST_SUITE(RowKernels, Elements);

struct Extent {
  std::size_t rows, width, offset;
};
/// Rows held in registers, of one warp and of several, one or two packs a thread; rows too wide for
/// that, of a width that is no multiple of a pack, at addresses that are not; no rows at all.
const Extent kExtents[] = {{1, 1, 0},   {3, 8, 0},    {0, 64, 0},   {5, 768, 0},   {37, 130, 0},
                           {7, 256, 0}, {2, 4104, 0}, {9, 64, 1},   {2, 8200, 0},  {3, 1000, 3},
                           {1, 33, 0},  {6, 1536, 0}, {2, 9000, 0}, {2, 20000, 0}, {3, 3000, 0}};

TYPED_TEST(RowKernels, LayerNormIsTheCpus) {
  using T = TypeParam;
  for (const Extent &e : kExtents) {
    SCOPED_TRACE(::testing::Message() << e.rows << " x " << e.width << " + " << e.offset);
    const NormRows shape{e.rows, e.width, 1e-5};
    const std::size_t n = e.rows * e.width;
    const Floats x = rounded<T>(normal(n, this->random, 3, 2)),
                 scale = rounded<T>(normal(e.width, this->random, 1)),
                 bias = rounded<T>(normal(e.width, this->random)),
                 dY = rounded<T>(normal(n, this->random));
    Floats y(n), mean(e.rows), rstd(e.rows), dX(n), dScale(e.width), dBias(e.width);
    kernels::layerNorm(shape, x.data(), scale.data(), bias.data(), y.data(), mean.data(),
                       rstd.data());
    kernels::layerNormGrad(shape, x.data(), scale.data(), mean.data(), rstd.data(), dY.data(),
                           dX.data(), dScale.data(), dBias.data());
    Device<T> x_(x, e.offset), scale_(scale, 1), bias_(bias), y_(n, e.offset), dY_(dY, e.offset);
    Device<float> mean_(e.rows), rstd_(e.rows), dScale_(e.width, 1), dBias_(e.width);
    OK(layer_norm(shape, x_, scale_, bias_, y_, mean_, rstd_, this->stream));
    expectClose<T>(y_.floats(), y, "y");
    expectClose<float>(mean_.floats(), mean, "mean");
    expectClose<float>(rstd_.floats(), rstd, "rstd");
    // In place: dX is dY.
    OK(layer_norm_grad(shape, x_, scale_, mean_, rstd_, dY_, dY_, dScale_, dBias_, this->stream));
    expectClose<T>(dY_.floats(), dX, "dX");
    expectClose<float>(dScale_.floats(), dScale, "dScale");
    expectClose<float>(dBias_.floats(), dBias, "dBias");
  }
}

TYPED_TEST(RowKernels, RmsNormIsTheCpus) {
  using T = TypeParam;
  for (const Extent &e : kExtents) {
    SCOPED_TRACE(::testing::Message() << e.rows << " x " << e.width << " + " << e.offset);
    const NormRows shape{e.rows, e.width, 1e-6};
    const std::size_t n = e.rows * e.width;
    const Floats x = rounded<T>(normal(n, this->random, 0.5)),
                 scale = rounded<T>(normal(e.width, this->random, 1)),
                 dY = rounded<T>(normal(n, this->random));
    Floats y(n), rstd(e.rows), dX(n), dScale(e.width);
    kernels::rmsNorm(shape, x.data(), scale.data(), y.data(), rstd.data());
    kernels::rmsNormGrad(shape, x.data(), scale.data(), rstd.data(), dY.data(), dX.data(),
                         dScale.data());
    Device<T> x_(x, e.offset), scale_(scale), dY_(dY, e.offset), dX_(n, e.offset);
    Device<float> rstd_(e.rows), dScale_(e.width);
    OK(rms_norm_grad(shape, x_, scale_, Device<float>(rstd), dY_, dX_, dScale_, this->stream));
    expectClose<T>(dX_.floats(), dX, "dX");
    expectClose<float>(dScale_.floats(), dScale, "dScale");
    // In place: y is x.
    OK(rms_norm(shape, x_, scale_, x_, rstd_, this->stream));
    expectClose<T>(x_.floats(), y, "y");
    expectClose<float>(rstd_.floats(), rstd, "rstd");
  }
}

/// In f32 `sums` are those of `gradient`, rounded already, and `residual`, bit for bit. Of bf16
/// only that rounding may be between them.
template <class T>
void expectRoundedOnce(const Floats &sums, const Floats &gradient, const Floats &residual) {
  constexpr float kHalf = 1.0f / 256; // of the last digit of bf16, relative to the number
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const float apart = gradient[i] + residual[i];
    const float tolerance = kHalf * std::abs(gradient[i]) + kHalf * std::abs(apart);
    if (std::is_same_v<T, float>)
      ASSERT_EQ(sums[i], apart) << "element " << i;
    else
      ASSERT_NEAR(sums[i], apart, tolerance) << "element " << i;
  }
}

/// Widths and addresses of kExtents, and stripes of several rows.
TYPED_TEST(RowKernels, GradientsWithResidualsAreTheCpus) {
  using T = TypeParam;
  std::vector<Extent> extents(std::begin(kExtents), std::end(kExtents));
  extents.push_back({1100, 40, 0});
  extents.push_back({1100, 33, 0});
  for (const Extent &e : extents) {
    SCOPED_TRACE(::testing::Message() << e.rows << " x " << e.width << " + " << e.offset);
    const NormRows shape{e.rows, e.width, 1e-5};
    const std::size_t n = e.rows * e.width;
    const Floats x = rounded<T>(normal(n, this->random)), dY = rounded<T>(normal(n, this->random)),
                 scale = rounded<T>(normal(e.width, this->random, 1)), bias(e.width),
                 residual = rounded<T>(normal(n, this->random));
    Floats y(n), mean(e.rows), rstd(e.rows), dX(n), dScale(e.width), dBias(e.width), sums(e.width);
    kernels::layerNorm(shape, x.data(), scale.data(), bias.data(), y.data(), mean.data(),
                       rstd.data());
    kernels::layerNormGradSums(shape, x.data(), scale.data(), mean.data(), rstd.data(), dY.data(),
                               residual.data(), dX.data(), dScale.data(), dBias.data(),
                               sums.data());
    Device<T> x_(x, e.offset), scale_(scale), dY_(dY, e.offset), residual_(residual, e.offset),
        plus_(n, e.offset), joined_(n, e.offset);
    Device<float> mean_(mean), rstd_(rstd), dScale_(e.width), dBias_(e.width), sums_(e.width);
    OK(layer_norm_grad(shape, x_, scale_, mean_, rstd_, dY_, residual_, plus_, dScale_, dBias_,
                       this->stream));
    expectClose<T>(plus_.floats(), dX, "dX of a layer norm");
    expectClose<float>(dScale_.floats(), dScale, "dScale");
    Device<T> alone_(n, e.offset);
    Device<float> alone2_(e.width), alone3_(e.width);
    OK(layer_norm_grad(shape, x_, scale_, mean_, rstd_, dY_, alone_, alone2_, alone3_,
                       this->stream));
    expectRoundedOnce<T>(plus_.floats(), alone_.floats(), residual);
    expectClose<float>(dBias_.floats(), dBias, "dBias");
    Device<float> dScale2_(e.width), dBias2_(e.width);
    OK(layer_norm_grad(shape, x_, scale_, mean_, rstd_, dY_, residual_, joined_, dScale2_, dBias2_,
                       sums_, this->stream));
    EXPECT_EQ(joined_.floats(), plus_.floats());
    EXPECT_EQ(dScale2_.floats(), dScale_.floats());
    EXPECT_EQ(dBias2_.floats(), dBias_.floats());
    expectClose<float>(sums_.floats(), sums, "sums of a layer norm");
    kernels::rmsNorm(shape, x.data(), scale.data(), y.data(), rstd.data());
    kernels::rmsNormGradSums(shape, x.data(), scale.data(), rstd.data(), dY.data(), residual.data(),
                             dX.data(), dScale.data(), sums.data());
    Device<float> ofRms(rstd);
    OK(rms_norm_grad(shape, x_, scale_, ofRms, dY_, residual_, plus_, dScale_, this->stream));
    expectClose<T>(plus_.floats(), dX, "dX of an RMS norm");
    OK(rms_norm_grad(shape, x_, scale_, ofRms, dY_, alone_, alone2_, this->stream));
    expectRoundedOnce<T>(plus_.floats(), alone_.floats(), residual);
    expectClose<float>(dScale_.floats(), dScale, "dScale of an RMS norm");
    OK(rms_norm_grad(shape, x_, scale_, ofRms, dY_, residual_, joined_, dScale2_, sums_,
                     this->stream));
    EXPECT_EQ(joined_.floats(), plus_.floats());
    EXPECT_EQ(dScale2_.floats(), dScale_.floats());
    expectClose<float>(sums_.floats(), sums, "sums of an RMS norm");
  }
}

TYPED_TEST(RowKernels, SumsOverManyRowsStayCloseAndAreTheSameBits) {
  using T = TypeParam;
  // Stripes of two rows, one warp a row; of five or six, of several warps.
  for (const NormRows &shape : {NormRows{2000, 16, 0}, NormRows{4300, 520, 0}}) {
    SCOPED_TRACE(::testing::Message() << shape.rows << " x " << shape.width);
    const std::size_t n = shape.rows * shape.width;
    const Floats x = rounded<T>(normal(n, this->random)), scale(shape.width, 1.0f),
                 dY = rounded<T>(normal(n, this->random, 0.1f));
    Floats y(n), rstd(shape.rows), dX(n), dScale(shape.width);
    kernels::rmsNorm(shape, x.data(), scale.data(), y.data(), rstd.data());
    kernels::rmsNormGrad(shape, x.data(), scale.data(), rstd.data(), dY.data(), dX.data(),
                         dScale.data());
    Device<T> x_(x), scale_(scale), dY_(dY), dX_(n);
    Device<float> rstd_(rstd), dScale_(shape.width), again(shape.width);
    OK(rms_norm_grad(shape, x_, scale_, rstd_, dY_, dX_, dScale_, this->stream));
    expectClose<T>(dX_.floats(), dX, "dX");
    expectClose<float>(dScale_.floats(), dScale, "dScale");
    this->reorder(3);
    OK(rms_norm_grad(shape, x_, scale_, rstd_, dY_, dX_, again, this->stream));
    EXPECT_EQ(again.floats(), dScale_.floats());
    expectClose<T>(dX_.floats(), dX, "dX again");
  }
}

/// Rows that are read by single elements: blocks of two warps, which use the scratch of a row's
/// sums again for the next row of their stripe.
TYPED_TEST(RowKernels, StripesOfTwoRowsOfAnyWidth) {
  using T = TypeParam;
  const NormRows shape{1100, 33, 1e-5};
  const std::size_t n = shape.rows * shape.width;
  const Floats x = rounded<T>(normal(n, this->random)),
               scale = rounded<T>(normal(shape.width, this->random, 1)), bias(shape.width),
               dY = rounded<T>(normal(n, this->random, 0.1f));
  Floats y(n), mean(shape.rows), rstd(shape.rows), dX(n), dScale(shape.width), dBias(shape.width);
  Device<T> x_(x), scale_(scale), dY_(dY), dX_(n);
  Device<float> dScale_(shape.width), dBias_(shape.width);
  kernels::layerNorm(shape, x.data(), scale.data(), bias.data(), y.data(), mean.data(),
                     rstd.data());
  kernels::layerNormGrad(shape, x.data(), scale.data(), mean.data(), rstd.data(), dY.data(),
                         dX.data(), dScale.data(), dBias.data());
  OK(layer_norm_grad(shape, x_, scale_, Device<float>(mean), Device<float>(rstd), dY_, dX_, dScale_,
                     dBias_, this->stream));
  expectClose<T>(dX_.floats(), dX, "dX of a layer norm");
  expectClose<float>(dScale_.floats(), dScale, "dScale of a layer norm");
  expectClose<float>(dBias_.floats(), dBias, "dBias");
  kernels::rmsNorm(shape, x.data(), scale.data(), y.data(), rstd.data());
  kernels::rmsNormGrad(shape, x.data(), scale.data(), rstd.data(), dY.data(), dX.data(),
                       dScale.data());
  OK(rms_norm_grad(shape, x_, scale_, Device<float>(rstd), dY_, dX_, dScale_, this->stream));
  expectClose<T>(dX_.floats(), dX, "dX of an RMS norm");
  expectClose<float>(dScale_.floats(), dScale, "dScale of an RMS norm");
}

TYPED_TEST(RowKernels, SoftmaxIsTheCpus) {
  using T = TypeParam;
  for (const Extent &e : kExtents) {
    SCOPED_TRACE(::testing::Message() << e.rows << " x " << e.width << " + " << e.offset);
    const Floats x = rounded<T>(normal(e.rows * e.width, this->random, 0, 5));
    Floats y(x.size());
    kernels::softmax({e.rows, e.width}, x.data(), y.data());
    Device<T> x_(x, e.offset);
    OK(softmax({e.rows, e.width}, x_, x_, this->stream));
    expectClose<T>(x_.floats(), y, "y");
  }
}

TYPED_TEST(RowKernels, SoftmaxOfMaskedAndNaN) {
  using T = TypeParam;
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  Device<T> x(Floats{-infinity, 1, 1, -infinity, 1, nan, 2, 3}), y(8);
  OK(softmax({2, 4}, x, y, this->stream));
  const Floats got = y.floats();
  EXPECT_EQ(Floats(got.begin(), got.begin() + 4), (Floats{0, 0.5f, 0.5f, 0}));
  for (int j = 4; j < 8; ++j)
    EXPECT_TRUE(std::isnan(got[j])) << j;
}

TYPED_TEST(RowKernels, RopeIsTheCpus) {
  using T = TypeParam;
  for (const RopeShape &shape :
       {RopeShape{3, 5, 1, 16, 10000, false}, RopeShape{1, 1, 1, 2, 10000, false},
        RopeShape{40, 7, 1, 64, 500000, true}, RopeShape{2, 9, 3, 6, 10000, true},
        RopeShape{5, 3, 12, 16, 10000, false}, RopeShape{2, 3, 2, 4, 10000, false},
        RopeShape{2, 3, 2, 24, 10000, true}, RopeShape{0, 4, 1, 8, 10000, false},
        RopeShape{2, 30, 2, 16, 100, false, 1.25, 4},
        RopeShape{2, 30, 2, 16, 100, true, 1.25, 4, RopeRamp::Index, 5, 2},
        RopeShape{2, 30, 2, 16, 100, false, 1, 4, RopeRamp::Rate, 0.03, 0.4}})
    for (std::size_t offset : {0, 1}) {
      const std::size_t n = shape.blocks * shape.positions * shape.inner * shape.width;
      const Floats x = rounded<T>(normal(n, this->random));
      Floats y(n);
      kernels::rope(shape, x.data(), y.data());
      Device<T> x_(x, offset);
      OK(rope(shape, x_, x_, this->stream));
      expectClose<T>(x_.floats(), y, "y");
    }
}

// Angles of late positions are thousands of turns: their remainders must still be right.
TYPED_TEST(RowKernels, RopeOfLatePositions) {
  const RopeShape shape{1, 9000, 1, 2, 10000, false};
  Floats x(shape.positions * 2), y(x.size());
  for (std::size_t i = 0; i < x.size(); i += 2)
    x[i] = 1;
  kernels::rope(shape, x.data(), y.data());
  Device<TypeParam> x_(x);
  OK(rope(shape, x_, x_, this->stream));
  expectNear(x_.floats(), y, sizeof(TypeParam) == 2 ? 0x1p-8 : 0, 1e-6, "y");
}

/// Rows of less than a warp's and of several tiles, and lines that lie side by side.
const ScanShape kScans[] = {
    {1, 1, 1, false, false},  {3, 5, 1, true, false},     {2, 128, 1, false, true},
    {2, 129, 1, true, true},  {3, 1024, 1, false, false}, {2, 2500, 1, true, true},
    {2, 7, 3, false, false},  {1, 40, 300, true, false},  {2, 3, 257, false, true},
    {0, 3, 2, false, false},  {2, 0, 3, false, false},    {0, 4, 1, false, false},
    {2, 4104, 1, true, true}, {2, 4104, 1, false, false}};

TYPED_TEST(RowKernels, ScanSumIsTheCpus) {
  using T = TypeParam;
  for (const ScanShape &shape : kScans)
    for (std::size_t offset : {0, 1}) {
      SCOPED_TRACE(::testing::Message()
                   << shape.outer << " x " << shape.size << " x " << shape.inner);
      const Floats x =
          rounded<T>(normal(shape.outer * shape.size * shape.inner, this->random, 0.5));
      Floats y(x.size());
      kernels::scan_sum(shape, x.data(), y.data());
      Device<T> x_(x, offset), y_(x.size(), offset);
      OK(scan_sum(shape, x_, y_, this->stream));
      expectClose<T>(y_.floats(), y, "y");
    }
}

// What comes after a number that is none has no part in the sums before it.
TYPED_TEST(RowKernels, ScanSumOfNaN) {
  for (const ScanShape &shape :
       {ScanShape{1, 600, 1, false, false}, ScanShape{1, 600, 2, false, false}}) {
    Floats x(shape.size * shape.inner, 1.0f);
    x[300 * shape.inner] = std::nanf("");
    Device<TypeParam> x_(x);
    OK(scan_sum(shape, x_, x_, this->stream));
    const Floats got = x_.floats();
    for (std::size_t i = 0; i < shape.size; ++i)
      EXPECT_EQ(std::isnan(got[i * shape.inner]), i >= 300) << i;
  }
}

/// Rows of a part of a tile of 32 positions, of one and of several, more than a block has warps.
template <class Id> void expectPositionsSinceOfTheCpu(std::mt19937 &random, cudaStream_t stream) {
  for (const auto &[rows, positions] :
       {std::pair<std::size_t, std::size_t>{1, 1}, {6, 31}, {2, 32}, {3, 100}, {0, 3}, {2, 0}})
    for (std::size_t length : {1, 3, 16})
      for (bool documents : {false, true}) {
        SCOPED_TRACE(::testing::Message() << rows << " x " << positions << ", " << length);
        // A sequence that occurs often, whatever its length.
        SequenceShape shape{rows, positions, documents, length, {}};
        std::vector<Id> tokens(rows * positions);
        for (Id &token : tokens)
          token = random() % 16 == 0 ? Id(1) : Id(0);
        std::vector<std::int32_t> since(tokens.size());
        kernels::positionsSince(shape, tokens.data(), since.data());
        Device<Id> tokens_(tokens);
        Device<std::int32_t> since_(tokens.size());
        OK(positions_since(shape, tokens_, since_, stream));
        EXPECT_EQ(since_.values(), since);
      }
}

using PositionsSince = DeviceKernels;

TEST_F(PositionsSince, IsTheCpus) {
  expectPositionsSinceOfTheCpu<std::int32_t>(this->random, this->stream);
  expectPositionsSinceOfTheCpu<std::int64_t>(this->random, this->stream);
}

} // namespace
