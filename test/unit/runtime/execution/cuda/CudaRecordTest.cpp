// A generated CUDA program compiled with -DFSDP_RECORD, without CUDA's headers.
#include "runtime/CudaRuntime.h"

#include <gtest/gtest.h>
#include <string>

using namespace fsdp::rt;

namespace fused {
constexpr fsdp::rt::RecordedKernel relu{};
} // namespace fused

namespace {

enum : int { kCompute, kGather };
constexpr MeshAxis kAxes[] = {{"data", 2}, {"fsdp", 3}};
constexpr const char *kStreams[] = {"compute", "gather"};
constexpr CommunicatorSpec kComms[] = {{"over_data", {0}}, {"over_fsdp", {1}}};
constexpr ArenaSpan<float> kPiece{0, 617}, kWhole{4096, 1851}, kResult{12288, 6};
constexpr ArenaSpan<std::int64_t> kLabel{64, 2};

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
        load_input(c, kCompute, "load label", 0, kLabel);
        all_gather(c, kGather, "all_gather fc1", 1, ShardLayout{1, 617, 1, 1851}, kPiece, kWhole);
        record(c, kGather, 3);
        wait(c, kCompute, 3);
        launch(c, kCompute, "fc1 relu", reads(kWhole, kLabel), writes(kPiece), fused::relu);
        gemm(c, kCompute, "fc1 einsum", Gemm{}, kPiece, kWhole, kPiece);
        gemm(c, kCompute, "fc1 bias", Gemm{}, reads(kPiece, kWhole, kLabel),
             writes(kResult, kPiece),
             [held = c.coordinate(1)](auto... p) { return fused::relu(held, p...); });
        launch(c, kCompute, "nothing", reads(), writes(), fused::relu);
        reduce_scatter(c, kGather, "reduce_scatter fc1", 1, ShardLayout{1, 617, 1, 1850}, kWhole,
                       kPiece);
        all_reduce(c, kCompute, "norm", 0, ReduceOp::Sum, kPiece, kPiece);
        output(c, kCompute, "output loss", 0, ArenaSpan<float>{128, 1});
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

TEST(CudaRecord, IsOfTheFirstCoordinate) {
  recorded([](Context &c) {
    EXPECT_EQ(c.worldSize(), 6);
    EXPECT_EQ(c.rankIn(1), 0);
  });
}

TEST(CudaRecord, WritesTheSegmentsOfAProgram) {
  static constexpr Segment segments[] = {
      {"train",
       [](Context &c) { launch(c, kCompute, "fc1 relu", reads(kWhole), writes(), fused::relu); }}};
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
