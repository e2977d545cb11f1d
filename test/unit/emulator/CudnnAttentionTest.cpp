// Attention by the emulated cuDNN (test/emulator/cudnn), which interprets the graphs, beside the
// CPU's kernels. Run twice, as two versions of the library.

#include "runtime/kernels/cuda/CudnnAttention.h"
#include "base/Error.h"
#include "runtime/kernels/Kernels.h"
#include "runtime/kernels/cuda/CudnnGraph.h"
#include "test/unit/cuda/DeviceKernels.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>

using namespace fsdp::rt;
using base::Error;
using ::testing::HasSubstr;

namespace {

bool isOrdered() { return cudnn::Library::open().version() >= cudnn::kOrderedGradient; }

/// Rows of heads beside one another, as programs have them.
AttentionShape betweenHeads(AttentionShape s) {
  const auto strides = [&](std::size_t heads, std::size_t rows) {
    return HeadStrides{rows * heads * s.width, s.width, heads * s.width};
  };
  s.q = s.out = strides(s.heads, s.queries);
  s.k = strides(s.groups, s.keys);
  return s;
}

class CudnnAttentionTest : public ::testing::Test {
protected:
  CudnnAttentionTest() { EXPECT_EQ(cudaStreamCreate(&stream), cudaSuccess); }
  ~CudnnAttentionTest() override {
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess) << deviceFailure();
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  }

  WorkStream on() { return {stream, &workspace}; }

  /// Results, statistics and gradients are the CPU's.
  void compare(const AttentionShape &s) {
    SCOPED_TRACE(cudnn::describe(s));
    const std::size_t rows = s.batch * s.heads * s.queries, n = rows * s.width,
                      m = s.batch * s.groups * s.keys * s.width;
    const Floats q = rounded<bf16>(normal(n, random)), k = rounded<bf16>(normal(m, random)),
                 v = rounded<bf16>(normal(m, random)), dOut = rounded<bf16>(normal(n, random));
    Floats out(n), sums(rows), dQ(n), dK(m), dV(m);
    kernels::attention(s, q.data(), k.data(), v.data(), nullptr, nullptr, out.data(), sums.data());
    Device<bf16> q_(q), k_(k), v_(v), out_(n), dOut_(dOut), dQ_(n), dK_(m), dV_(m);
    Device<float> sums_(rows);
    OK(attention.forward(s, q_, k_, v_, out_, sums_, on()));
    expectClose(out_.floats(), out, "out");
    expectNear(sums_.floats(), sums, 1e-5, 1e-5, "log sum exp");
    out = out_.floats();
    kernels::attentionGrad(s, q.data(), k.data(), v.data(), nullptr, nullptr, out.data(),
                           sums.data(), dOut.data(), dQ.data(), dK.data(), dV.data());
    OK(attention.gradient(s, {q_, k_, v_, out_, dOut_, sums_, dQ_, dK_, dV_}, on()));
    expectClose(dQ_.floats(), dQ, "dQ");
    expectClose(dK_.floats(), dK, "dK");
    expectClose(dV_.floats(), dV, "dV");
    // In one order: the same bits again.
    const std::vector<bf16> first = dQ_.values();
    OK(attention.gradient(s, {q_, k_, v_, out_, dOut_, sums_, dQ_, dK_, dV_}, on()));
    const std::vector<bf16> second = dQ_.values();
    EXPECT_EQ(std::memcmp(first.data(), second.data(), n * sizeof(bf16)), 0);
  }

  static void expectClose(const Floats &got, const Floats &expected, const char *what) {
    expectNear(got, expected, 0x1p-7, 0.04, what, 1e-6);
    double error = 0, size = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      error += std::pow(double(got[i]) - double(expected[i]), 2);
      size += std::pow(double(expected[i]), 2);
    }
    EXPECT_LE(std::sqrt(error), 0.005 * std::sqrt(size) + 1e-6) << what;
  }

  std::string refusal(const AttentionShape &shape) {
    try {
      attention.prepare(shape, /*isGradient=*/false);
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  }

  std::mt19937 random{1};
  cudaStream_t stream = nullptr;
  StreamWorkspace workspace;
  CudnnAttention attention{0, 9, 0};
};

TEST_F(CudnnAttentionTest, ComputesWhatTheCpuDoes) {
  for (const AttentionShape &shape : {
           AttentionShape{1, 1, 1, 1, 1, 8, 0.2f, true},
           AttentionShape{1, 2, 2, 70, 70, 64, 0.125f, true},
           AttentionShape{2, 4, 2, 33, 33, 16, 0.25f, true},
           AttentionShape{1, 4, 1, 20, 20, 128, 0.09f, true},
           AttentionShape{2, 2, 1, 17, 40, 32, 0.2f, false},
           AttentionShape{1, 2, 2, 30, 11, 64, -0.1f, false},
       }) {
    compare(rowMajor(shape));
    compare(betweenHeads(shape));
  }
}

TEST_F(CudnnAttentionTest, TakesQueriesKeysAndValuesInOneOperand) {
  AttentionShape s = {2, 2, 2, 19, 19, 16, 0.25f, true};
  const std::size_t width = s.heads * s.width, row = 3 * width;
  s.q = s.k = {s.queries * row, s.width, row};
  s.out = {s.queries * width, s.width, width};
  s.part = width;
  const std::size_t n = s.batch * s.queries * row, rows = s.batch * s.heads * s.queries;
  const Floats qkv = rounded<bf16>(normal(n, random)), dOut = rounded<bf16>(normal(n / 3, random));
  Floats out(n / 3), sums(rows), dQkv(n);
  const float *q = qkv.data(), *k = q + width, *v = k + width;
  float *dQ = dQkv.data(), *dK = dQ + width, *dV = dK + width;
  kernels::attention(s, q, k, v, nullptr, nullptr, out.data(), sums.data());
  kernels::attentionGrad(s, q, k, v, nullptr, nullptr, out.data(), sums.data(), dOut.data(), dQ, dK,
                         dV);
  Device<bf16> qkv_(qkv), out_(n / 3), dOut_(dOut), dQkv_(n);
  Device<float> sums_(rows);
  bf16 *const from = qkv_, *const to = dQkv_;
  OK(attention.forward(s, from, from + width, from + 2 * width, out_, sums_, on()));
  OK(attention.gradient(
      s, {from, from + width, from + 2 * width, out_, dOut_, sums_, to, to + width, to + 2 * width},
      on()));
  expectClose(out_.floats(), out, "out");
  expectNear(dQkv_.floats(), dQkv, 0.02, 0.05, "dQkv", 1e-5);
}

TEST_F(CudnnAttentionTest, ScratchMemoryIsThatOfTheVersion) {
  const AttentionShape s = rowMajor({2, 4, 2, 256, 256, 64, 0.125f, true});
  EXPECT_EQ(attention.prepare(s, /*isGradient=*/false), 0u);
  const std::size_t rows = 2 * 4 * 256, along = rows * 4, scores = rows * 256 * 2;
  EXPECT_EQ(attention.prepare(s, /*isGradient=*/true),
            isOrdered() ? 4096 + along + rows * 64 * 4 : scores + along);
}

TEST_F(CudnnAttentionTest, RefusesShapesByName) {
  const AttentionShape s = rowMajor({2, 4, 2, 32, 32, 64, 0.125f, true});
  EXPECT_EQ(refusal(s), "");
  const auto changed = [&](auto change) {
    AttentionShape other = s;
    change(other);
    return refusal(other);
  };
  EXPECT_EQ(
      changed([](auto &x) { x.window = 8; }),
      "FSDP_ATTENTION=cudnn got attention that is not passed to cuDNN: it has a window (2 x 4 "
      "heads of 64 (2 groups), 32 queries, 32 keys, causal); unset it to use this program's "
      "own kernels");
  EXPECT_THAT(changed([](auto &x) { x.softcap = 30; }), HasSubstr("its scores are capped"));
  EXPECT_THAT(changed([](auto &x) { x.width = 20; }),
              HasSubstr("heads are 20 wide, expected a multiple of 8 up to 128"));
  EXPECT_THAT(changed([](auto &x) { x.width = 136; }), HasSubstr("heads are 136 wide"));
  EXPECT_THAT(changed([](auto &x) { x.groups = 3; }),
              HasSubstr("got 4 heads in 3 groups, expected groups of equal size"));
  EXPECT_THAT(changed([](auto &x) { x.keys = 40; }),
              HasSubstr("it is causal with 32 queries at the positions from 8 on of 40 keys"));
  EXPECT_THAT(changed([](auto &x) { x.offset = -4; }), HasSubstr("at the positions from -4 on"));
  EXPECT_THAT(changed([](auto &x) { x.q.row = 68; }),
              HasSubstr("its rows are 68 numbers apart, expected a multiple of 8"));
}

TEST_F(CudnnAttentionTest, SaysWhatTheLibrarySays) {
  const AttentionShape s = rowMajor({1, 1, 1, 8, 8, 64, 0.125f, true});
  Device<bf16> q(8 * 64), k(8 * 64), v(8 * 64);
  Device<float> sums(8);
  try {
    attention.forward(s, q, k, v, /*out=*/nullptr, sums, on());
    FAIL() << "got no error for a null operand";
  } catch (const Error &error) {
    EXPECT_THAT(error.what(),
                HasSubstr("reports CUDNN_STATUS_BAD_PARAM (the variant pack has no address for "
                          "tensor 4), enqueuing 1 x 1 heads of 64 (1 groups), 8 queries, 8 keys, "
                          "causal; unset FSDP_ATTENTION"));
  }
}

TEST_F(CudnnAttentionTest, NeedsHopper) {
  try {
    const CudnnAttention other(0, 10, 0);
    ADD_FAILURE() << "got cuDNN on compute capability 10.0";
  } catch (const Error &error) {
    EXPECT_THAT(error.what(),
                HasSubstr("got a GPU of compute capability 10.0, expected 9.0 (H100, H200)"));
    EXPECT_EQ(error.status(), base::kExitNoDevice);
  }
}

} // namespace
