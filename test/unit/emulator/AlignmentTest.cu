//===- AlignmentTest.cu - a CUDA source under the emulator -------------------------===//

#include "Emulation.h"

namespace {

class Alignment : public Emulation {};

__global__ void copyVectors(const float *in, float *out) {
  reinterpret_cast<float4 *>(out)[threadIdx.x] = reinterpret_cast<const float4 *>(in)[threadIdx.x];
}

TEST_F(Alignment, MisalignedVectorsAreNamed) {
  Buffer<float> in(64), out(64);
  OK(cudaMemset(in.data, 0, 256));
  OK(launch(copyVectors, dim3(1), dim3(8), 0, nullptr, static_cast<const float *>(in.data),
            out.data));
  EXPECT_EQ(out.values()[31], 0);
  EXPECT_EQ(launch(copyVectors, dim3(1), dim3(8), 0, nullptr,
                   static_cast<const float *>(in.data + 1), out.data),
            cudaErrorLaunchFailure);
  EXPECT_THAT(emulator::failure(), testing::HasSubstr("AlignmentTest.cu:10: misaligned access"));
  EXPECT_THAT(emulator::failure(), testing::HasSubstr("expected a multiple of 16"));
}

} // namespace
