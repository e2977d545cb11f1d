// Every kernel that may write over an operand (KernelOpInterface says which,
// test/unit/InPlacePairs.h lists them) gives the same bits there as beside it, in both element
// types; a pair without a case fails. Kernels that the compiler writes are run both ways by
// test/e2e/check_emitted.py.

#include "runtime/kernels/Kernels.h"
#include "runtime/numerics/Random.h"
#include "runtime/numerics/VectorMath.h"
#include "test/unit/InPlacePairs.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

using namespace fsdp::rt;

namespace {

template <class T> class InPlace : public fsdp::test::InPlaceTest<T> {
protected:
  using Values = std::vector<T>;

  Values draw(std::size_t count) {
    std::normal_distribution<float> normal(0.5f, 2);
    Values values(count);
    for (T &value : values)
      value = T(normal(random));
    return values;
  }

  /// Of op `op`: `kernel(x, y)` beside its operand 0 and in its place.
  template <class Kernel> void expectSame(const char *op, const Values &x, Kernel kernel) {
    Values apart(x.size()), inPlace = x;
    kernel(x.data(), apart.data());
    kernel(inPlace.data(), inPlace.data());
    expectBits(op, 0, inPlace, apart);
  }
  static void expectBits(const char *op, unsigned operand, const Values &got,
                         const Values &expected, unsigned result = 0) {
    InPlace::coverage.add(op, operand, result);
    ASSERT_EQ(got.size(), expected.size());
    EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(got[0])), 0)
        << op << " in place of operand " << operand;
  }
  std::mt19937 random{1};
};
using Elements = ::testing::Types<float, bf16>;
TYPED_TEST_SUITE(InPlace, Elements);

constexpr std::size_t kExtents[][2] = {{1, 1}, {3, 7}, {5, 16}, {4, 33}, {2, 768}, {37, 130}};

TYPED_TEST(InPlace, Softmax) {
  for (const auto &[rows, width] : kExtents)
    this->expectSame("nn.softmax", this->draw(rows * width),
                     [rows = rows, width = width](const TypeParam *x, TypeParam *y) {
                       kernels::softmax({rows, width}, x, y);
                     });
}

TYPED_TEST(InPlace, Rope) {
  for (const RopeShape &shape :
       {RopeShape{2, 9, 1, 34, 10000, false}, RopeShape{2, 9, 3, 6, 10000, true}})
    this->expectSame("nn.rope",
                     this->draw(shape.blocks * shape.positions * shape.inner * shape.width),
                     [&](const TypeParam *x, TypeParam *y) { kernels::rope(shape, x, y); });
}

TYPED_TEST(InPlace, RopeAtPositions) {
  RopeShape shape{4, 3, 3, 6, 10000, true};
  shape.repeats = 2;
  const std::int32_t positions[] = {5, 6, 7, 0, 1, 2};
  this->expectSame("nn.rope", this->draw(4 * 3 * 3 * 6), [&](const TypeParam *x, TypeParam *y) {
    kernels::ropeAt(shape, x, positions, y);
  });
}

TYPED_TEST(InPlace, WriteRows) {
  const WriteShape shape{2, 3, 7, 2, 5};
  const auto rows = this->draw(2 * 3 * 2 * 5);
  const std::int32_t positions[] = {6, 0, 3, 9};
  this->expectSame("nn.write_rows", this->draw(2 * 3 * 7 * 5),
                   [&](const TypeParam *table, TypeParam *written) {
                     kernels::writeRows(shape, table, rows.data(), positions, written);
                   });
}

TYPED_TEST(InPlace, ScanSum) {
  for (const ScanShape &shape :
       {ScanShape{3, 40, 1, false, false}, ScanShape{2, 9, 300, true, false},
        ScanShape{2, 9, 5, true, true}, ScanShape{1, 1000, 1, true, true}})
    this->expectSame("nn.scan_sum", this->draw(shape.outer * shape.size * shape.inner),
                     [&](const TypeParam *x, TypeParam *y) { kernels::scan_sum(shape, x, y); });
}

TYPED_TEST(InPlace, Dropout) {
  StepState state{};
  state.seed = 7;
  const DropoutExtent extents[] = {{18, 40}, {34, 1}};
  this->expectSame("fsdp.dropout", this->draw(18 * 34), [&](const TypeParam *x, TypeParam *y) {
    kernels::dropout(0.3, hashName("drop"), 5, extents, 2, state, x, y);
  });
}

TYPED_TEST(InPlace, Norms) {
  for (const auto &[rows, width] : kExtents) {
    const NormRows shape{rows, width, 1e-5};
    const auto x = this->draw(rows * width), scale = this->draw(width), bias = this->draw(width);
    std::vector<float> mean(rows), rstd(rows);
    this->expectSame("nn.layer_norm", x, [&](const TypeParam *x, TypeParam *y) {
      kernels::layerNorm(shape, x, scale.data(), bias.data(), y, mean.data(), rstd.data());
    });
    this->expectSame("nn.rms_norm", x, [&](const TypeParam *x, TypeParam *y) {
      kernels::rmsNorm(shape, x, scale.data(), y, rstd.data());
    });
  }
}

// dX may stand in the place of x and in that of dY; sums over rows are the same in each.
TYPED_TEST(InPlace, GradientsOfNorms) {
  using Values = std::vector<TypeParam>;
  for (const auto &extent : kExtents) {
    const std::size_t rows = extent[0], width = extent[1];
    const NormRows shape{rows, width, 1e-5};
    const Values x = this->draw(rows * width), dY = this->draw(rows * width),
                 scale = this->draw(width), bias = this->draw(width);
    std::vector<float> mean(rows), rstd(rows);
    Values y(x.size());
    kernels::layerNorm(shape, x.data(), scale.data(), bias.data(), y.data(), mean.data(),
                       rstd.data());
    for (bool layer : {true, false}) {
      const auto gradient = [&](const Values &x, const Values &dY, Values &dX) {
        std::vector<float> sums(2 * width);
        if (layer)
          kernels::layerNormGrad(shape, x.data(), scale.data(), mean.data(), rstd.data(), dY.data(),
                                 dX.data(), sums.data(), sums.data() + width);
        else
          kernels::rmsNormGrad(shape, x.data(), scale.data(), rstd.data(), dY.data(), dX.data(),
                               sums.data());
        return sums;
      };
      Values apart(x.size()), overX = x, overDY = dY;
      const std::vector<float> sums = gradient(x, dY, apart);
      const char *op = layer ? "nn.layer_norm_grad" : "nn.rms_norm_grad";
      EXPECT_EQ(gradient(overX, dY, overX), sums);
      this->expectBits(op, 0, overX, apart);
      EXPECT_EQ(gradient(x, overDY, overDY), sums);
      this->expectBits(op, layer ? 4 : 3, overDY, apart);
      const auto joined = [&](const Values &x, const Values &dY, const Values &residual,
                              Values &dX) {
        std::vector<float> sums(3 * width);
        float *last = sums.data() + 2 * width;
        if (layer)
          kernels::layerNormGradSums(shape, x.data(), scale.data(), mean.data(), rstd.data(),
                                     dY.data(), residual.data(), dX.data(), sums.data(),
                                     sums.data() + width, last);
        else
          kernels::rmsNormGradSums(shape, x.data(), scale.data(), rstd.data(), dY.data(),
                                   residual.data(), dX.data(), sums.data(), last);
        return sums;
      };
      const Values residual = this->draw(x.size());
      Values overResidual = residual;
      overX = x, overDY = dY;
      const std::vector<float> all = joined(x, dY, residual, apart);
      EXPECT_EQ(joined(overX, dY, residual, overX), all);
      this->expectBits(op, 0, overX, apart);
      EXPECT_EQ(joined(x, overDY, residual, overDY), all);
      this->expectBits(op, layer ? 4 : 3, overDY, apart);
      EXPECT_EQ(joined(x, dY, overResidual, overResidual), all);
      this->expectBits(op, layer ? 5 : 4, overResidual, apart);
    }
  }
}

TYPED_TEST(InPlace, GradientOfCrossEntropy) {
  for (const auto &[rows, classes] : kExtents) {
    const auto logits = this->draw(rows * classes);
    std::vector<std::int32_t> labels(rows);
    for (auto &label : labels)
      label = std::int32_t(this->random() % classes);
    std::vector<float> losses(rows), sums(rows), upstream(rows, 0.37f);
    kernels::crossEntropy({rows, classes}, logits.data(), labels.data(), losses.data(),
                          sums.data());
    this->expectSame("nn.cross_entropy_grad", logits,
                     [&, rows = rows, classes = classes](const TypeParam *x, TypeParam *y) {
                       kernels::crossEntropyGrad({rows, classes}, x, labels.data(), sums.data(),
                                                 upstream.data(), y);
                     });
  }
}

// With its gradient a loss has the bits that both kernels have, beside the logits and in their
// place.
TYPED_TEST(InPlace, LossesWithGradients) {
  using T = TypeParam;
  for (const auto &[rows, classes] : kExtents)
    for (std::int64_t count : {std::int64_t(classes), std::int64_t(classes - classes / 3)}) {
      const LogitRows shape{rows, classes};
      const bool whole = count == std::int64_t(classes);
      const auto logits = this->draw(rows * classes);
      std::vector<std::int32_t> labels(rows);
      std::vector<float> upstream(rows);
      for (std::size_t r = 0; r < rows; ++r) {
        labels[r] = std::int32_t(this->random() % std::size_t(count));
        upstream[r] = 0.37f + float(r);
      }
      if (!whole && rows > 1)
        labels[1] = -1;
      std::vector<float> losses(rows), sums(rows), top(rows), sum(rows), picked(rows),
          logSumExp(rows), got[3] = {losses, losses, losses};
      std::vector<T> gradients(logits.size()), apart(logits.size()), inPlace = logits;
      if (whole) {
        kernels::crossEntropy(shape, logits.data(), labels.data(), losses.data(), sums.data());
        kernels::crossEntropyGrad(shape, logits.data(), labels.data(), sums.data(), upstream.data(),
                                  gradients.data());
        kernels::crossEntropyWithGrad(shape, logits.data(), labels.data(), upstream.data(),
                                      got[0].data(), got[1].data(), apart.data());
        EXPECT_EQ(got[0], losses);
        EXPECT_EQ(got[1], sums);
        this->expectBits("nn.cross_entropy", 0, apart, gradients, 2);
        kernels::crossEntropyWithGrad(shape, inPlace.data(), labels.data(), upstream.data(),
                                      got[0].data(), got[1].data(), inPlace.data());
        EXPECT_EQ(got[0], losses);
        this->expectBits("nn.cross_entropy", 0, inPlace, gradients, 2);
        inPlace = logits;
      }
      kernels::partialCrossEntropy(shape, logits.data(), labels.data(), &count, top.data(),
                                   sum.data(), picked.data());
      for (std::size_t r = 0; r < rows; ++r) // what fsdp-partition writes
        logSumExp[r] = vectorLog(sum[r] * vectorExp(top[r] - top[r])) + top[r];
      kernels::partialCrossEntropyGrad(shape, logits.data(), labels.data(), logSumExp.data(),
                                       upstream.data(), &count, gradients.data());
      for (T *to : {apart.data(), inPlace.data()}) {
        kernels::partialCrossEntropyWithGrad(
            shape, to == apart.data() ? logits.data() : inPlace.data(), labels.data(), &count,
            upstream.data(), got[0].data(), got[1].data(), got[2].data(), to);
        EXPECT_EQ(got[0], top);
        EXPECT_EQ(got[1], sum);
        EXPECT_EQ(got[2], picked);
      }
      this->expectBits("nn.partial_cross_entropy", 0, apart, gradients, 3);
      this->expectBits("nn.partial_cross_entropy", 0, inPlace, gradients, 3);
    }
}

} // namespace
