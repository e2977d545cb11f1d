// Compiled with -DFSDP_RECORD: the same calls write a log.
#include "runtime/execution/Launch.h"
#include "runtime/launches/Collectives.h"
#include "runtime/launches/Gemm.h"

#include <gtest/gtest.h>
#include <string>

using namespace fsdp::rt;

namespace {

constexpr MeshAxis kAxes[] = {{"data", 2}, {"fsdp", 3}};
constexpr const char *kStreams[] = {"compute", "gather"};
constexpr CommunicatorSpec kComms[] = {{"over_data", {0}}, {"over_fsdp", {1}}, {"all", {0, 1}}};

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

TEST(Record, WritesOneLineForEachAction) {
  EXPECT_EQ(
      recorded([](Context &c) {
        constexpr ArenaSpan<float> piece{0, 617}, whole{4096, 1234}, result{12288, 6};
        constexpr ArenaSpan<std::int64_t> label{64, 2};
        load_input(c, 0, "load label", 0, label);
        all_gather(c, 1, "all_gather fc1", 1, ShardLayout{1, 617, 1, 1234}, piece, whole);
        record(c, 1, 3);
        wait(c, 0, 3);
        launch(c, 0, "fc1 relu", reads(whole, label), writes(piece),
               [](const float *, const std::int64_t *, float *) { FAIL(); });
        gemm(c, 0, "fc1 bias", Gemm{}, reads(piece, whole, label), writes(result, piece),
             [](std::int64_t, std::int64_t, const std::int64_t *, const float *, float *, float *) {
               FAIL();
             });
        launch(c, 0, "nothing", reads(), writes(), [] {});
        reduce_scatter(c, 1, "reduce_scatter fc1", 1, ShardLayout{1, 617, 1, 1234}, whole, piece);
        all_reduce(c, 0, "norm", 2, ReduceOp::Sum, piece, piece);
        broadcast(c, 0, "start", 0, Root{0}, piece, piece);
      }),
      "launch compute \"load label\" reads=[] writes=[64:16]\n"
      "launch gather \"all_gather fc1\" reads=[0:2468] writes=[4096:4936] over=over_fsdp "
      "kind=all_gather\n"
      "record gather 3\n"
      "wait compute 3\n"
      "launch compute \"fc1 relu\" reads=[4096:4936,64:16] writes=[0:2468]\n"
      "launch compute \"fc1 bias\" reads=[0:2468,4096:4936,64:16] writes=[12288:24,0:2468]\n"
      "launch compute \"nothing\" reads=[] writes=[]\n"
      "launch gather \"reduce_scatter fc1\" reads=[4096:4936] writes=[0:2468] over=over_fsdp "
      "kind=reduce_scatter\n"
      "launch compute \"norm\" reads=[0:2468] writes=[0:2468] over=all kind=all_reduce\n"
      "launch compute \"start\" reads=[0:2468] writes=[0:2468] over=over_data kind=broadcast\n");
}

TEST(Record, IsOfTheFirstCoordinate) {
  recorded([](Context &c) {
    EXPECT_EQ(c.worldSize(), 6);
    EXPECT_EQ(c.rankIn(1), 0);
  });
}

} // namespace
