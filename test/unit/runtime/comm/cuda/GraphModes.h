//===- GraphModes.h - modes of cuda-ranks whose segments may be graphs ------===//
#ifndef FSDP_TEST_UNIT_RUNTIME_COMM_CUDA_GRAPHMODES_H
#define FSDP_TEST_UNIT_RUNTIME_COMM_CUDA_GRAPHMODES_H

#include "runtime/device/InputSource.h"
#include "runtime/execution/Device.h"
#include "runtime/execution/cuda/Launch.h"
#include "runtime/execution/cuda/SegmentGraphs.h"
#include "runtime/launches/Collectives.h"
#include "test/unit/runtime/comm/cuda/DeviceJob.h"

#include <algorithm>
#include <string>
#include <unistd.h>

namespace fsdp::rt {

namespace graphs {

constexpr std::size_t kCount = 4; ///< elements of a rank, those of input 0
constexpr ArenaSpan<float> kPiece{0, kCount}, kNorm{4 << 16, 1};
constexpr ArenaSpan<float> wholeAt(std::size_t place, int ranks) {
  return {place << 16, kCount * static_cast<std::size_t>(ranks)};
}

inline void gather(Context &c) {
  const int ranks = c.sizeOf(0);
  load_input(c, kGather, "load", 0, kPiece);
  wait(c, kGather, 1); // of the run before
  all_gather(c, kGather, "gather", 0, ShardLayout{1, kCount, 1, kCount * std::size_t(ranks)},
             kPiece, wholeAt(1, ranks));
  record(c, kGather, 0);
}

/// Through the workspace of the stream.
inline void sum(Context &c) {
  const int ranks = c.sizeOf(0);
  const auto whole = wholeAt(1, ranks), copied = wholeAt(2, ranks);
  const ArenaSpan<float> piece{3 << 16, kCount};
  wait(c, kCompute, 0); // of the segment before
  launch(c, kCompute, "copy", reads(whole), writes(copied),
         [&](const float *from, float *to, WorkStream on) {
           float *scratch = nullptr;
           cudaError_t status = on.workspace->reserve(whole.bytes(), scratch);
           for (auto [target, source] :
                {std::pair(scratch, from), std::pair(to, (const float *)scratch)})
             if (status == cudaSuccess)
               status =
                   cudaMemcpyAsync(target, source, whole.bytes(), cudaMemcpyDeviceToDevice, on);
           return status;
         });
  record(c, kCompute, 1);
  wait(c, kGather, 1);
  reduce_scatter(c, kGather, "scatter", 0, ShardLayout{1, kCount, 1, whole.count}, copied, piece);
  all_reduce(c, kGather, "norm", 0, ReduceOp::Sum, ArenaSpan<float>{piece.offset, 1}, kNorm);
  output(c, kGather, "output", 0, kNorm);
}

constexpr std::size_t kRemembered = 8;
constexpr ArenaSpan<float> kMemory{5 << 16, kRemembered};

/// Puts the next input before those that are remembered.
inline void remember(Context &c) {
  constexpr ArenaSpan<float> scratch{6 << 16, kRemembered - 1},
      later{kMemory.offset + sizeof(float), kRemembered - 1};
  load_input(c, kGather, "load", 0, kPiece);
  const auto copy = [&](const char *name, ArenaSpan<float> from, ArenaSpan<float> to) {
    launch(c, kGather, name, reads(from), writes(to),
           [&](const float *source, float *target, WorkStream on) {
             return cudaMemcpyAsync(target, source, to.bytes(), cudaMemcpyDeviceToDevice, on);
           });
  };
  copy("take out", ArenaSpan<float>{kMemory.offset, scratch.count}, scratch);
  copy("put back", scratch, later);
  copy("put first", ArenaSpan<float>{kPiece.offset, 1}, ArenaSpan<float>{kMemory.offset, 1});
}

constexpr Segment kBehind[] = {{"remember", remember, /*joined=*/false}};
constexpr SegmentRuns kBehindRuns[] = {{0, 1}};

constexpr Segment kSegments[] = {{"gather", gather, /*joined=*/false}, {"sum", sum, false}};
constexpr SegmentRuns kRuns[] = {{0, 1}, {1, 1}};
constexpr const char *kOutputs[] = {"norm"};

} // namespace graphs

/// What the host fetches for later runs replaces no batch that a graph is still to copy, however
/// late it runs.
inline int runGraphsBehind(Context &c, SegmentGraphs *segments) {
  struct Numbers final : InputSource {
    float next = 0;
    void load(int, void *target, std::size_t bytes) override {
      std::fill_n(static_cast<float *>(target), bytes / sizeof(float), ++next);
    }
  } numbers;
  for (std::size_t run = 0; run < graphs::kRemembered; ++run) {
    c.begin(c.program().train, &numbers);
    segments->begin(c.program().train);
    segments->run(c.program().segments[0], /*traced=*/false);
    if (run % 3)
      c.stageAhead();
  }
  c.synchronize();
  float got[graphs::kRemembered];
  CHECK(c, "read",
        cudaMemcpy(got, c.base() + graphs::kMemory.offset, sizeof got, cudaMemcpyDeviceToHost));
  for (std::size_t run = 0; run < graphs::kRemembered; ++run)
    if (got[run] != static_cast<float>(graphs::kRemembered - run))
      throw base::Error(base::format("input %zu from the end got %g", run, got[run]));
  return 0;
}

/// Runs of a plan of two segments, with another batch each. In the sixth, scratch memory has grown
/// since. `graph-leave`: rank 1 leaves after three; `graph-traced`: each second one is traced.
inline int runGraphs(Context &c, SegmentGraphs *graphs, const std::string &mode) {
  struct Numbers final : InputSource {
    float next = 0;
    void load(int, void *target, std::size_t bytes) override {
      std::fill_n(static_cast<float *>(target), bytes / sizeof(float), next);
      next += 10;
    }
  } numbers;
  numbers.next = static_cast<float>(c.rankIn(0));
  const float ranks = static_cast<float>(c.sizeOf(0));
  const ExecutionPlan &plan = c.program().train;
  for (int run = 0; run < 8; ++run) {
    if (run == 3 && mode == "graph-leave" && c.rank() == 1)
      return 0;
    if (run == 5)
      launch(c, kCompute, "grow", reads(), writes(), [&](WorkStream on) {
        std::byte *memory = nullptr;
        return on.workspace->reserve(std::size_t(1) << 20, memory);
      });
    const bool isTraced = mode == "graph-traced" && run % 2;
    c.begin(plan, &numbers);
    if (graphs)
      graphs->begin(plan);
    forEachSegment(c.program(), plan, [&](const Segment &segment, bool waits) {
      if (waits)
        c.synchronize();
      graphs ? graphs->run(segment, isTraced) : segment.run(c);
    });
    if (run % 3)
      c.stageAhead();
    c.awaitOutputs();
    const float expected = ranks * (ranks * float(run) * 10 + ranks * (ranks - 1) / 2);
    if (*c.output(0) != expected)
      throw base::Error(
          base::format("run %d got a norm of %g, expected %g", run, *c.output(0), expected));
  }
  c.synchronize();
  c.world().barrier();
  if (c.rank() == 0)
    std::printf("done\n");
  return 0;
}

} // namespace fsdp::rt

#endif // FSDP_TEST_UNIT_RUNTIME_COMM_CUDA_GRAPHMODES_H
