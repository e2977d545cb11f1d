// A job of one rank runs in the process itself: launches, inputs, peak, and errors.
#include "runtime/comm/SharedSegment.h"
#include "runtime/execution/Launch.h"
#include "runtime/job/Bootstrap.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <vector>

using namespace base;
using namespace fsdp::rt;

namespace {

constexpr MeshAxis kAxes[] = {{"fsdp", 1}};
constexpr CommunicatorSpec kComms[] = {{"over_fsdp", {0}}};
constexpr const char *kStreams[] = {"compute", "other"};

struct Ran {
  int status;
  std::string said;
};

Ran run(const std::function<int(Job &)> &body) {
  JobOptions options;
  options.arenaBytes = 4096;
  options.communicators = kComms;
  testing::internal::CaptureStderr();
  int status = runRanks(Mesh(Table<MeshAxis>(kAxes)), options, body);
  return {status, testing::internal::GetCapturedStderr()};
}

Ran runWith(void (*body)(Context &)) {
  return run([body](Job &job) {
    Context c(job, kStreams, 4);
    body(c);
    return 0;
  });
}

struct Counting : InputSource {
  int calls = 0;
  void load(int index, void *target, std::size_t bytes) override {
    EXPECT_EQ(bytes, 8u);
    static_cast<float *>(target)[0] = float(index);
    static_cast<float *>(target)[1] = float(++calls);
  }
};

TEST(Context, LaunchGivesSlicesInOrder) {
  Ran ran = runWith([](Context &c) {
    Counting source;
    c.inputs = &source;
    constexpr ArenaSpan<float> x{0, 2}, y{64, 2};
    constexpr ArenaSpan<std::int64_t> n{128, 1};
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(c.base()) % 64, 0u);
    EXPECT_EQ(c.data(y)[0], 0) << "the arena starts as zeros";
    load_input(c, 1, "load", 7, x);
    load_input(c, 1, "load", 7, x);
    record(c, 1, 0);
    wait(c, 0, 0);
    launch(c, 0, "kernel", reads(x, y), writes(y, n),
           [scale = 10.0f](const float *x, const float *old, float *y, std::int64_t *n) {
             EXPECT_EQ(old, y);
             y[0] = scale * x[0];
             y[1] = scale * x[1];
             *n = 42;
           });
    c.synchronize();
    EXPECT_EQ(c.data(y)[0], 70);
    EXPECT_EQ(c.data(y)[1], 20);
    EXPECT_EQ(*c.data(n), 42);
    EXPECT_EQ(c.peakBytes(), 136u) << "the end of the highest slice touched";
    EXPECT_EQ(c.world().size(), 1);
    EXPECT_EQ(c.coordinate(0), 0);
  });
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.said, "");
}

TEST(Context, PeakCountsTouchedBytesOnly) {
  Ran ran = runWith([](Context &c) {
    EXPECT_EQ(c.peakBytes(), 0u);
    launch(c, 0, "far but empty", reads(ArenaSpan<float>{4000, 0}), writes(), [](const float *) {});
    EXPECT_EQ(c.peakBytes(), 0u);
    launch(c, 0, "low", reads(ArenaSpan<float>{0, 4}), writes(), [](const float *) {});
    EXPECT_EQ(c.peakBytes(), 16u);
  });
  EXPECT_EQ(ran.status, 0);
}

TEST(Context, AnErrorInAKernelIsTheJobs) {
  Ran ran = runWith([](Context &c) {
    launch(c, 0, "bad kernel", reads(), writes(), [] { throw Error("got 1, expected 2", 3); });
    c.synchronize();
  });
  EXPECT_EQ(ran.status, 3);
  EXPECT_EQ(ran.said, "error: rank 0, 'bad kernel': got 1, expected 2\n");
}

TEST(Context, AnErrorOnTheHostIsTheJobs) {
  Ran ran = run([](Job &job) -> int {
    Context c(job, kStreams, 1);
    throw Error("no such file");
  });
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(ran.said, "error: rank 0: no such file\n");
  EXPECT_EQ(run([](Job &) { return 2; }).said, "error: rank 0: ended with status 2\n");
  EXPECT_EQ(run([](Job &) -> int { throw 1; }).said,
            "error: rank 0: an exception of unknown type\n");
  EXPECT_EQ(run([](Job &) -> int { throw std::runtime_error("odd"); }).said,
            "error: rank 0: odd\n");
}

// Both streams have work left, and one waits for the other.
TEST(Context, ClosesInTheMiddle) {
  Ran ran = runWith([](Context &c) {
    launch(c, 0, "long", reads(), writes(), [] { usleep(100'000); });
    record(c, 0, 0);
    wait(c, 1, 0);
    launch(c, 1, "never", reads(), writes(), [] { ADD_FAILURE(); });
    launch(c, 0, "never", reads(), writes(), [] { ADD_FAILURE(); });
    throw Error("enough");
  });
  EXPECT_EQ(ran.said, "error: rank 0: enough\n");
}

TEST(Mapping, RefusesMoreThanThereIs) {
  try {
    Mapping::anonymous(std::size_t(1) << 60);
    FAIL();
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(),
                 "cannot map 1152921504606846976 bytes for the arenas of this machine's "
                 "ranks: Cannot allocate memory");
  }
}

TEST(Context, RefusesTooManyStreams) {
  Ran ran = run([](Job &job) {
    std::vector<const char *> names(17, "stream");
    Context c(job, Table<const char *>(names.data(), names.size()), 0);
    return 0;
  });
  EXPECT_EQ(ran.said, "error: rank 0: the program has 17 streams, expected at most 16\n");
}

TEST(Communicator, RefusesInvalidRequests) {
  run([](Job &job) {
    auto comm = job.communicator(0);
    float data[8] = {};
    auto refusal = [](auto call) -> std::string {
      try {
        call();
      } catch (const Error &error) {
        return error.what();
      }
      return "accepted";
    };
    EXPECT_EQ(refusal([&] { comm->allGather(data, data, ShardLayout{1, 2, 1, 3}); }),
              "all_gather over 'over_fsdp' got 2 elements on each of 1 ranks, expected at least 3 "
              "together");
    EXPECT_EQ(
        refusal([&] {
          comm->perform(CollectiveKind::ReduceScatter, ShardLayout{1, 2, 1, 3}, 2, DType::F32, data,
                        data);
        }),
        "reduce_scatter over 'over_fsdp' got 2 elements on each of 1 ranks, expected at least 3 "
        "together");
    EXPECT_EQ(refusal([&] {
                comm->perform(CollectiveKind::AllReduce, ReduceOp::Sum, 1, DType::Bool, data, data);
              }),
              "all_reduce got elements of type bool, expected f32, f64, bf16, i32 or i64");
    EXPECT_EQ(refusal([&] { comm->broadcast(data, 4, 1); }),
              "broadcast over 'over_fsdp' got root 1, expected 0..0");
    return 0;
  });
}

} // namespace
