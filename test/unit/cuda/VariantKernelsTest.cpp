// For kernels that exist for vectors and for any alignment, a trace shows which one ran: the
// variant that launches record.

#include "test/unit/cuda/DeviceKernels.h"
#include "test/unit/cuda/TestRules.h"

#include <algorithm>
#include <string>
#include <utility>

using namespace fsdp::rt;

namespace {

template <class T> class VariantKernels : public DeviceKernels {
protected:
  VariantKernels() { launchWork = &noted; }
  ~VariantKernels() override { launchWork = nullptr; }

  /// The variant that the latest kernel noted, or "".
  std::string latest() {
    const Work work = std::exchange(noted, Work());
    return work.variant ? work.variant : "";
  }

  Work noted;
};
using Elements = ::testing::Types<float, bf16>;
TYPED_TEST_SUITE(VariantKernels, Elements);

// Aligned operands whose rows are whole vectors; then the same one element behind an aligned
// address.
TYPED_TEST(VariantKernels, DependOnAddresses) {
  using T = TypeParam;
  for (std::size_t offset : {0, 1}) {
    const std::string variant = offset ? "any alignment" : "vectors";
    const auto &stream = this->stream;
    const NormRows norm{2, 64, 1e-5};
    const std::size_t n = 2 * 64;
    const Floats zeros(n), ones(n, 1);
    Device<T> x(ones, offset), y(n, offset), weight(Floats(64, 1)), dY(ones, offset), dX(n, offset);
    Device<float> mean(2), rstd(2), dScale(64), dBias(64);
    OK(layer_norm(norm, x, weight, weight, y, mean, rstd, stream));
    EXPECT_EQ(this->latest(), variant);
    OK(layer_norm_grad(norm, x, weight, mean, rstd, dY, dX, dScale, dBias, stream));
    EXPECT_EQ(this->latest(), variant);
    OK(rms_norm(norm, x, weight, y, rstd, stream));
    EXPECT_EQ(this->latest(), variant);
    OK(rms_norm_grad(norm, x, weight, rstd, dY, dX, dScale, stream));
    EXPECT_EQ(this->latest(), variant);
    Device<T> residual(zeros, offset), elsewhere(zeros, 1 - offset);
    Device<float> sums(64);
    OK(layer_norm_grad(norm, x, weight, mean, rstd, dY, residual, dX, dScale, dBias, sums, stream));
    EXPECT_EQ(this->latest(), variant);
    OK(rms_norm_grad(norm, x, weight, rstd, dY, residual, dX, dScale, stream));
    EXPECT_EQ(this->latest(), variant);
    OK(rms_norm_grad(norm, x, weight, rstd, dY, elsewhere, dX, dScale, stream));
    EXPECT_EQ(this->latest(), "any alignment");
    OK(softmax({2, 64}, x, y, stream));
    EXPECT_EQ(this->latest(), variant);
    OK(rope({1, 2, 1, 64, 10000, false}, x, y, stream));
    EXPECT_EQ(this->latest(), variant);
    Device<StepState> state(std::vector<StepState>{StepState{}});
    OK(dropout(DropoutMask<1>{0.5, 1, 0, {{n, 1}}}, state, static_cast<const T *>(x.data()),
               y.data(), stream));
    EXPECT_EQ(this->latest(), variant);
    Device<std::int32_t> ids(std::vector<int>{0, 1});
    OK(embedding({2, 2, 64}, x, ids, y, stream));
    EXPECT_EQ(this->latest(), variant);
    Device<float> dTable(n, offset);
    OK(embedding_grad({2, 2, 64}, ids, dY, dTable, stream));
    EXPECT_EQ(this->latest(), variant);
    // Operands that begin alike are read and written in vectors, wherever that is.
    Device<T> gradients(n), aligned(ones);
    OK(cross_entropy_grad({2, 64}, x, ids, rstd, mean, gradients, stream));
    EXPECT_EQ(this->latest(), variant);
    OK(cross_entropy_grad({2, 64}, aligned, ids, rstd, mean, gradients, stream));
    EXPECT_EQ(this->latest(), "vectors");
    OK(cross_entropy({2, 64}, x, ids, mean, rstd, sums, gradients, stream));
    EXPECT_EQ(this->latest(), variant);
    OK(cross_entropy({2, 64}, aligned, ids, mean, rstd, sums, gradients, stream));
    EXPECT_EQ(this->latest(), "vectors");
    OK(slice(Part{2, 64, 0, 32}, static_cast<const T *>(x.data()), y.data(), stream));
    EXPECT_EQ(this->latest(),
              offset ? std::to_string(sizeof(T)) + " bytes" : std::string("16 bytes"));
  }
}

// Widths that are no whole vectors need the other kernel at any address.
TYPED_TEST(VariantKernels, DependOnWidths) {
  using T = TypeParam;
  Device<T> x(Floats(66, 1)), y(66), weight(Floats(33, 1));
  Device<float> mean(2), rstd(2);
  OK(layer_norm({2, 33, 1e-5}, x, weight, weight, y, mean, rstd, this->stream));
  EXPECT_EQ(this->latest(), "any alignment");
  OK(softmax({2, 33}, x, y, this->stream));
  EXPECT_EQ(this->latest(), "any alignment");
}

TYPED_TEST(VariantKernels, AttentionSaysOfBf16Alone) {
  using T = TypeParam;
  for (std::uint32_t width : {32, 20}) {
    const AttentionShape s = rowMajor({1, 1, 1, 4, 4, width, 0.2f, true});
    const std::size_t n = 4 * width;
    Device<T> q(Floats(n, 1)), out(n), dQ(n), dK(n), dV(n);
    Device<float> sums(4);
    const std::string variant = sizeof(T) == 4 ? "" : width == 32 ? "vectors" : "any alignment";
    OK(attention(s, q, q, q, nullptr, nullptr, out, sums, this->stream));
    EXPECT_EQ(this->latest(), variant);
    OK(attention_grad(s, q, q, q, nullptr, nullptr, out, sums, out, dQ, dK, dV, this->stream));
    EXPECT_EQ(this->latest(), variant);
  }
}

TYPED_TEST(VariantKernels, SumsAndUpdatesAreOfFloats) {
  for (std::size_t offset : {0, 1}) {
    const std::string variant = offset ? "any alignment" : "vectors";
    Device<float> values(Floats(64, 1), offset);
    Device<double> sum(1);
    OK(square_sum(64, values, sum, this->stream));
    EXPECT_EQ(this->latest(), variant);
    Device<float> whole(Floats(8, 1));
    OK(square_sums(Counts<2>{{8, 64}}, whole.data(), values.data(), sum.data(), this->stream));
    EXPECT_EQ(this->latest(), variant);
    const Shape shape{64};
    const Parameter member[] = {{"p", nullptr, shape, shape, 0, Initializer::zeros(), true}};
    Storage storage = {
        "unit", Layout::Flat, {}, 0, 0, 64, 0, Buffer(), {}, Table<Parameter>(member)};
    storage.shard.count = 64;
    Device<float> gradient(Floats(64, 1)), rate(Floats{0.1f});
    Device<bool> ok(std::vector<int>{1});
    Device<StepState> state(std::vector<StepState>{StepState{}});
    Device<std::int32_t> bad(std::vector<int>{-1});
    OK(descend(ShardOf{&storage, 0}, false, gradient, rate, nullptr, ok, state, values, bad,
               this->stream));
    EXPECT_EQ(this->latest(), variant);
  }
}

} // namespace
