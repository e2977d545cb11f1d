// A generated CUDA program compiled with -DFSDP_RECORD: the lines of the CPU's log, from CUDA's
// words.
#include "runtime/CudaRuntime.h"

#include <gtest/gtest.h>
#include <string>

using namespace fsdp::rt;

namespace fused {
FSDP_RECORDED_KERNEL(relu)
} // namespace fused

namespace {

enum : int { kCompute, kGather };
constexpr MeshAxis kAxes[] = {{"data", 2}, {"fsdp", 3}};
constexpr const char *kStreams[] = {"compute", "gather"};
constexpr CommunicatorSpec kComms[] = {{"over_data", {0}}, {"over_fsdp", {1}}};
constexpr ArenaSpan<float> kPiece{0, 617}, kWhole{4096, 1851}, kResult{12288, 6};
constexpr ArenaSpan<std::int64_t> kLabel{64, 2};

struct Shape3 {
  int a, b, c;
};

std::string recorded(void (*program)(Context &)) {
  char *text = nullptr;
  std::size_t size = 0;
  std::FILE *log = open_memstream(&text, &size);
  Context c(kAxes, kStreams, kComms, log);
  program(c);
  std::fclose(log);
  std::string result(text, size);
  free(text);
  return result;
}

TEST(CudaRecord, WritesOneLineForEachAction) {
  EXPECT_EQ(
      recorded([](Context &c) {
        CHECK(c, "load label",
              cudaMemcpyAsync(c.out(kLabel), c.staged(0), 16, cudaMemcpyHostToDevice,
                              c.stream(kCompute)));
        CHECK(c, "all_gather fc1",
              ncclAllGather(c.in(kPiece), c.out(kWhole), 617, ncclFloat, c.comm(1, kGather),
                            c.stream(kGather)));
        CHECK(c, "all_gather fc1", cudaEventRecord(c.event(3), c.stream(kGather)));
        CHECK(c, "fc1 relu", cudaStreamWaitEvent(c.stream(kCompute), c.event(3)));
        CHECK(c, "fc1 relu",
              fused::relu(c.in(kWhole), c.in(kLabel), c.out(kPiece), c.stream(kCompute)));
        CHECK(c, "fc1 einsum",
              matmul(c.blas(), Shape3{1, 2, 3}, c.in(kPiece), c.in(kWhole), c.out(kPiece),
                     c.stream(kCompute)));
        CHECK(c, "fc1 bias",
              InOrder{matmul(c.blas(), Shape3{1, 2, 3}, c.in(kPiece), c.in(kWhole), c.out(kResult),
                             c.stream(kCompute)),
                      [&] {
                        return fused::relu(c.in(kLabel), c.in(kResult), c.out(kResult),
                                           c.out(kPiece), c.stream(kCompute));
                      }});
        CHECK(c, "nothing", advance(nullptr, c.stream(kCompute)));
        CHECK(c, "reduce_scatter fc1",
              reduce_scatter(ShardLayout{1, 617, 1, 1850}, c.in(kWhole), c.out(kPiece),
                             c.comm(1, kGather), c.stream(kGather)));
        CHECK(c, "norm",
              ncclAllReduce(c.in(kPiece), c.out(kPiece), 617, ncclFloat, ncclSum,
                            c.comm(0, kCompute), c.stream(kCompute)));
        CHECK(c, "output loss",
              cudaMemcpyAsync(c.output(0), c.in(ArenaSpan<float>{128, 1}), 4,
                              cudaMemcpyDeviceToHost, c.stream(kCompute)));
      }),
      "launch compute \"load label\" reads=[] writes=[64:16]\n"
      "launch gather \"all_gather fc1\" reads=[0:2468] writes=[4096:7404] over=over_fsdp "
      "kind=all_gather\n"
      "record gather 3\n"
      "wait compute 3\n"
      "launch compute \"fc1 relu\" reads=[4096:7404,64:16] writes=[0:2468]\n"
      "launch compute \"fc1 einsum\" reads=[0:2468,4096:7404] writes=[0:2468]\n"
      "launch compute \"fc1 bias\" reads=[0:2468,4096:7404,64:16] writes=[12288:24,0:2468]\n"
      "launch compute \"nothing\" reads=[] writes=[]\n"
      "launch gather \"reduce_scatter fc1\" reads=[4096:7404] writes=[0:2468] over=over_fsdp "
      "kind=reduce_scatter\n"
      "launch compute \"norm\" reads=[0:2468] writes=[0:2468] over=over_data kind=all_reduce\n"
      "launch compute \"output loss\" reads=[128:4] writes=[]\n");
}

TEST(CudaRecord, StandsAtTheFirstCoordinate) {
  recorded([](Context &c) {
    EXPECT_EQ(c.worldSize(), 6);
    EXPECT_EQ(c.rankIn(1), 0);
    EXPECT_EQ(c.sizeOf(1), 3);
  });
}

TEST(CudaRecord, WritesTheSegmentsOfAProgram) {
  static constexpr Segment segments[] = {
      {"train",
       [](Context &c) { CHECK(c, "fc1 relu", fused::relu(c.in(kWhole), c.stream(kCompute))); }}};
  Program program{};
  program.axes = kAxes;
  program.streams = kStreams;
  program.segments = segments;
  testing::internal::CaptureStdout();
  EXPECT_EQ(runTraining(program, 0, nullptr), 0);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "segment train\nlaunch compute \"fc1 relu\" reads=[4096:7404] writes=[]\n");
}

} // namespace
