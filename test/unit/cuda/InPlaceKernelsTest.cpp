// Every kernel of the device that may write over an operand (KernelOpInterface says which,
// test/unit/InPlacePairs.h lists them) gives the same bits there as beside it, in both element
// types: rows held in registers, rows too wide for that, and addresses that are no multiple of a
// vector. A pair without a case fails.

#include "test/unit/InPlacePairs.h"
#include "test/unit/cuda/DeviceKernels.h"

using namespace fsdp::rt;

namespace {

template <class T> class InPlaceKernels : public fsdp::test::InPlaceTest<T, DeviceKernels> {
protected:
  /// Of op `op`: `kernel(x, y)` beside its operand 0 and in its place.
  template <class Kernel>
  void expectSame(const char *op, const Floats &x, std::size_t offset, Kernel kernel,
                  unsigned result = 0) {
    Device<T> from(x, offset), apart(x.size(), offset);
    OK(kernel(from, apart));
    OK(kernel(from, from));
    expectFloats(op, 0, from, apart, result);
  }
  static void expectFloats(const char *op, unsigned operand, Device<T> &got, Device<T> &expected,
                           unsigned result = 0) {
    InPlaceKernels::coverage.add(op, operand, result);
    EXPECT_EQ(got.floats(), expected.floats()) << op << " in place of operand " << operand;
  }
};
using Elements = ::testing::Types<float, bf16>;
TYPED_TEST_SUITE(InPlaceKernels, Elements);

struct Extent {
  std::size_t rows, width, offset;
};
const Extent kExtents[] = {{1, 1, 0},  {3, 8, 0},    {37, 130, 0}, {7, 256, 0},
                           {9, 64, 1}, {3, 1000, 3}, {2, 4104, 0}, {2, 9000, 0}};

TYPED_TEST(InPlaceKernels, Softmax) {
  for (const Extent &e : kExtents)
    this->expectSame("nn.softmax", normal(e.rows * e.width, this->random), e.offset,
                     [&](Device<TypeParam> &x, Device<TypeParam> &y) {
                       return softmax({e.rows, e.width}, x, y, this->stream);
                     });
}

TYPED_TEST(InPlaceKernels, Rope) {
  for (const RopeShape &shape :
       {RopeShape{3, 5, 1, 16, 10000, false}, RopeShape{2, 9, 3, 6, 10000, true}})
    this->expectSame(
        "nn.rope", normal(shape.blocks * shape.positions * shape.inner * shape.width, this->random),
        0, [&](Device<TypeParam> &x, Device<TypeParam> &y) {
          return rope(shape, x, y, this->stream);
        });
}

TYPED_TEST(InPlaceKernels, RopeAtPositions) {
  RopeShape shape{4, 3, 3, 6, 10000, true};
  shape.repeats = 2;
  Device<std::int32_t> positions(std::vector<std::int32_t>{5, 6, 7, 0, 1, 2});
  this->expectSame("nn.rope", normal(4 * 3 * 3 * 6, this->random), 0,
                   [&](Device<TypeParam> &x, Device<TypeParam> &y) {
                     return rope(shape, x, positions, y, this->stream);
                   });
}

TYPED_TEST(InPlaceKernels, WriteRows) {
  const WriteShape shape{2, 3, 7, 2, 300};
  Device<TypeParam> rows(normal(2 * 3 * 2 * 300, this->random));
  Device<std::int32_t> positions(std::vector<std::int32_t>{6, 0, 3, 9});
  for (std::size_t offset : {0, 1})
    this->expectSame("nn.write_rows", normal(2 * 3 * 7 * 300, this->random), offset,
                     [&](Device<TypeParam> &table, Device<TypeParam> &written) {
                       return write_rows(shape, table, rows, positions, written, this->stream);
                     });
}

TYPED_TEST(InPlaceKernels, ScanSum) {
  for (const ScanShape &shape :
       {ScanShape{3, 40, 1, false, false}, ScanShape{2, 9, 300, true, false},
        ScanShape{2, 9, 5, true, true}, ScanShape{2, 3000, 1, true, true}})
    this->expectSame("nn.scan_sum", normal(shape.outer * shape.size * shape.inner, this->random), 0,
                     [&](Device<TypeParam> &x, Device<TypeParam> &y) {
                       return scan_sum(shape, x, y, this->stream);
                     });
}

TYPED_TEST(InPlaceKernels, Dropout) {
  StepState start{};
  start.seed = 7;
  Device<StepState> state(1);
  state.set(0, start);
  const DropoutMask<2> mask{0.3, 123, 5, {{18, 40}, {34, 1}}};
  this->expectSame("fsdp.dropout", normal(18 * 34, this->random), 0,
                   [&](Device<TypeParam> &x, Device<TypeParam> &y) {
                     return dropout(mask, static_cast<const StepState *>(state),
                                    static_cast<const TypeParam *>(x), static_cast<TypeParam *>(y),
                                    this->stream);
                   });
}

TYPED_TEST(InPlaceKernels, Norms) {
  using T = TypeParam;
  for (const Extent &e : kExtents) {
    const NormRows shape{e.rows, e.width, 1e-5};
    const Floats x = normal(e.rows * e.width, this->random);
    Device<T> scale(normal(e.width, this->random)), bias(normal(e.width, this->random));
    Device<float> mean(e.rows), rstd(e.rows);
    this->expectSame("nn.layer_norm", x, e.offset, [&](Device<T> &x, Device<T> &y) {
      return layer_norm(shape, x, scale, bias, y, mean, rstd, this->stream);
    });
    this->expectSame("nn.rms_norm", x, e.offset, [&](Device<T> &x, Device<T> &y) {
      return rms_norm(shape, x, scale, y, rstd, this->stream);
    });
  }
}

// dX may stand in the place of x and in that of dY; sums over rows are the same in each.
TYPED_TEST(InPlaceKernels, GradientsOfNorms) {
  using T = TypeParam;
  for (const Extent &e : kExtents) {
    const NormRows shape{e.rows, e.width, 1e-5};
    const std::size_t n = e.rows * e.width;
    const Floats x = normal(n, this->random), dY = normal(n, this->random);
    Device<T> x_(x, e.offset), dY_(dY, e.offset), apart(n, e.offset), y(n, e.offset);
    Device<T> scale(normal(e.width, this->random)), bias(normal(e.width, this->random));
    Device<float> mean(e.rows), rstd(e.rows);
    OK(layer_norm(shape, x_, scale, bias, y, mean, rstd, this->stream));
    for (bool layer : {true, false}) {
      Device<T> overX(x, e.offset), overDY(dY, e.offset);
      Floats sums[3];
      const auto gradient = [&](Device<T> &x, Device<T> &dY, Device<T> &dX, Floats &left) {
        Device<float> dScale(Floats(e.width)), dBias(Floats(e.width));
        OK(layer ? layer_norm_grad(shape, x, scale, mean, rstd, dY, dX, dScale, dBias, this->stream)
                 : rms_norm_grad(shape, x, scale, rstd, dY, dX, dScale, this->stream));
        left = dScale.floats();
        const Floats more = dBias.floats();
        left.insert(left.end(), more.begin(), more.end());
      };
      gradient(x_, dY_, apart, sums[0]);
      gradient(overX, dY_, overX, sums[1]);
      gradient(x_, overDY, overDY, sums[2]);
      const char *op = layer ? "nn.layer_norm_grad" : "nn.rms_norm_grad";
      this->expectFloats(op, 0, overX, apart);
      this->expectFloats(op, layer ? 4 : 3, overDY, apart);
      EXPECT_EQ(sums[1], sums[0]);
      EXPECT_EQ(sums[2], sums[0]);
      const Floats added = normal(n, this->random);
      Floats all[4];
      const auto joined = [&](Device<T> &x, Device<T> &dY, Device<T> &residual, Device<T> &dX,
                              Floats &left) {
        Device<float> dScale(e.width), dBias(Floats(e.width)), rows(e.width);
        OK(layer ? layer_norm_grad(shape, x, scale, mean, rstd, dY, residual, dX, dScale, dBias,
                                   rows, this->stream)
                 : rms_norm_grad(shape, x, scale, rstd, dY, residual, dX, dScale, rows,
                                 this->stream));
        left = dScale.floats();
        for (Device<float> *more : {&dBias, &rows}) {
          const Floats values = more->floats();
          left.insert(left.end(), values.begin(), values.end());
        }
      };
      Device<T> kept(x, e.offset), keptDY(dY, e.offset), residual(added, e.offset),
          overResidual(added, e.offset), x2(x, e.offset), dY2(dY, e.offset);
      joined(kept, keptDY, residual, apart, all[0]);
      joined(x2, keptDY, residual, x2, all[1]);
      this->expectFloats(op, 0, x2, apart);
      joined(kept, dY2, residual, dY2, all[2]);
      this->expectFloats(op, layer ? 4 : 3, dY2, apart);
      joined(kept, keptDY, overResidual, overResidual, all[3]);
      for (int i = 1; i < 4; ++i)
        EXPECT_EQ(all[i], all[0]) << i;
      this->expectFloats(op, layer ? 5 : 4, overResidual, apart);
    }
  }
}

TYPED_TEST(InPlaceKernels, GradientOfCrossEntropy) {
  for (const LogitRows &shape : {LogitRows{5, 3}, LogitRows{9, 257}, LogitRows{4, 1024}})
    for (std::size_t offset : {0, 1}) {
      const Floats logits = normal(shape.rows * shape.classes, this->random);
      std::vector<std::int32_t> drawn(shape.rows);
      for (auto &label : drawn)
        label = std::int32_t(this->random() % shape.classes);
      Device<std::int32_t> labels(drawn);
      Device<float> sums(normal(shape.rows, this->random, 3)),
          upstream(normal(shape.rows, this->random));
      this->expectSame(
          "nn.cross_entropy_grad", logits, offset, [&](Device<TypeParam> &x, Device<TypeParam> &y) {
            return cross_entropy_grad(shape, x, labels, sums, upstream, y, this->stream);
          });
      this->expectSame(
          "nn.cross_entropy", logits, offset,
          [&](Device<TypeParam> &x, Device<TypeParam> &y) {
            Device<float> losses(shape.rows);
            return cross_entropy(shape, x, labels, upstream, losses, sums, y, this->stream);
          },
          2);
      Device<std::int64_t> count(std::vector<std::int64_t>{std::int64_t(shape.classes)});
      this->expectSame(
          "nn.partial_cross_entropy", logits, offset,
          [&](Device<TypeParam> &x, Device<TypeParam> &y) {
            Device<float> top(shape.rows), picked(shape.rows);
            return partial_cross_entropy(shape, x, labels, count, upstream, top, sums, picked, y,
                                         this->stream);
          },
          3);
    }
}

} // namespace
