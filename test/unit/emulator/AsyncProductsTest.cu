//===- AsyncProductsTest.cu - products of a warpgroup in the emulator ------------===//
//
// Wgmma.h on the emulator, which performs operations as late as PTX allows: products are available
// when they are waited for and not before, and violations that PTX does not check are failures.
//
//===----------------------------------------------------------------------===//

#include "Emulation.h"
#include "runtime/kernels/cuda/FusedKernel.h"
#include "runtime/kernels/cuda/Wgmma.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

using namespace fsdp::rt::device;
using fsdp::rt::bf16;

namespace {

enum class Fault { None, NoFence, NoProxyFence, NoCommit, NoWait, Overwritten, OneWarp };

/// out = a b^T, or a b where kAcross, twice that where `adds`, for 64 rows of `a` and a matrix b of
/// 64 by N or N by 64 elements. kHeld: a is in registers.
template <int N, bool kAcross, bool kHeld>
__global__ void multiply(const bf16 *a, const bf16 *b, float *out, bool adds, Fault fault) {
  constexpr int kDepth = 64, kWidth = kAcross ? N : kDepth, kRows = kAcross ? kDepth : N;
  FSDP_DYNAMIC_SHARED(bf16, memory);
  const SharedTile<kDepth, 64> left(memory);
  const SharedTile<kWidth, kRows> right(memory + SharedTile<kDepth, 64>::kElements);
  left.template fill<128>(a, kDepth, 0, 64, kDepth, true);
  right.template fill<128>(b, kWidth, 0, kRows, kWidth, true);
  closeCopies();
  waitForCopies<0>();
  if (fault != Fault::NoProxyFence || threadIdx.x != 77)
    fenceSharedWrites();
  __syncthreads();
  const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16;
  float d[N / 8][4];
  for (auto &four : d)
    for (float &one : four)
      one = -1;
  for (int turn = 0; turn < (adds ? 2 : 1); ++turn) {
    if (fault != Fault::NoFence)
      beginProducts();
    std::uint32_t held[kDepth / 16][4];
    for (int step = 0; step < kDepth / 16; ++step) {
      const SharedOperand operand =
          kAcross ? acrossRows(right, 16 * step) : alongRows(right, 0, step);
      if constexpr (kHeld) {
        left.loadA(row, step, lane, held[step]);
        multiplyAdd64<N, kAcross>(d, held[step], operand, turn + step > 0);
      } else {
        multiplyAdd64<N, kAcross>(d, alongRows(left, 0, step), operand, turn + step > 0);
      }
    }
    if (fault == Fault::OneWarp && row == 16)
      multiplyAdd64<N, kAcross>(d, held[0], acrossRows(right, 0), true);
    if (fault == Fault::Overwritten)
      held[1][2] ^= 1;
    if (fault != Fault::NoCommit)
      commitProducts();
    if (fault != Fault::NoWait)
      waitForProducts<0>();
  }
  __syncthreads();
  for (int n = 0; n < N / 8; ++n)
    for (int i = 0; i < 4; ++i)
      out[(row + lane / 4 + i / 2 * 8) * N + 8 * n + lane % 4 * 2 + i % 2] = d[n][i];
}

class AsyncProducts : public Emulation {
protected:
  /// Runs `multiply` on random numbers and compares; the largest difference, or infinity where the
  /// launch fails.
  template <int N, bool kAcross, bool kHeld>
  double difference(bool adds, Fault fault = Fault::None) {
    std::mt19937 random(N + kAcross);
    std::normal_distribution<float> draw;
    std::vector<bf16> a(64 * 64), b(64 * N);
    for (auto *matrix : {&a, &b})
      for (bf16 &x : *matrix)
        x = bf16(draw(random));
    Buffer<bf16> a_(a.size()), b_(b.size());
    Buffer<float> out(64 * N);
    cudaMemcpy(a_.data, a.data(), 2 * a.size(), cudaMemcpyHostToDevice);
    cudaMemcpy(b_.data, b.data(), 2 * b.size(), cudaMemcpyHostToDevice);
    launch(multiply<N, kAcross, kHeld>, dim3(1), dim3(128), 2 * (a.size() + b.size()), nullptr,
           static_cast<const bf16 *>(a_.data), static_cast<const bf16 *>(b_.data), out.data, adds,
           fault);
    if (cudaDeviceSynchronize() != cudaSuccess)
      return HUGE_VAL;
    const std::vector<float> got = out.values();
    double largest = 0;
    for (int i = 0; i < 64; ++i)
      for (int j = 0; j < N; ++j) {
        double sum = 0;
        for (int k = 0; k < 64; ++k)
          sum += double(float(a[i * 64 + k])) * float(kAcross ? b[k * N + j] : b[j * 64 + k]);
        largest = std::max(largest, std::abs(got[i * N + j] - (adds ? 2 : 1) * sum));
      }
    return largest;
  }
};

TEST_F(AsyncProducts, AreThoseOfTheirMatrices) {
  for (bool adds : {false, true}) {
    EXPECT_LT((difference<64, false, false>(adds)), 1e-4);
    EXPECT_LT((difference<64, false, true>(adds)), 1e-4);
    EXPECT_LT((difference<64, true, false>(adds)), 1e-4);
    EXPECT_LT((difference<64, true, true>(adds)), 1e-4);
    EXPECT_LT((difference<128, false, false>(adds)), 1e-4);
    EXPECT_LT((difference<128, false, true>(adds)), 1e-4);
    EXPECT_LT((difference<128, true, false>(adds)), 1e-4);
    EXPECT_LT((difference<128, true, true>(adds)), 1e-4);
  }
}

TEST_F(AsyncProducts, AreThereOnceTheirGroupIsWaitedFor) {
  EXPECT_GT((difference<64, true, true>(false, Fault::NoWait)), 1);
  EXPECT_GT((difference<64, true, true>(false, Fault::NoCommit)), 1);
}

TEST_F(AsyncProducts, ReadRegistersUntilTheirWaitInAllWarpsOfAGroup) {
  difference<64, true, true>(false, Fault::Overwritten);
  EXPECT_THAT(emulator::failure(), testing::HasSubstr("registers of its operand changed before"));
  emulator::reset();
  difference<64, true, true>(false, Fault::OneWarp);
  EXPECT_THAT(emulator::failure(),
              testing::HasSubstr("warps of a group have started different products"));
  emulator::reset();
}

TEST_F(AsyncProducts, NeedTheirFences) {
  difference<64, false, true>(false, Fault::NoFence);
  EXPECT_THAT(emulator::failure(), testing::HasSubstr("expected wgmma.fence before it"));
  emulator::reset();
  difference<64, false, true>(false, Fault::NoProxyFence);
  EXPECT_THAT(emulator::failure(),
              testing::HasSubstr("expected fence.proxy.async by thread (77, 0, 0), whose copies "
                                 "have arrived"));
  emulator::reset();
}

} // namespace
