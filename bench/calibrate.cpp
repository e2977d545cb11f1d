//===- calibrate.cpp - the rates of this machine, for the cost model ------===//
//
// Prints a machine file (docs/cost-model.md). RANKS processes of one thread each run the same work
// at the same time, as the ranks of a program do. Kernels and collectives are those of the runtime.
// Computation is measured in processor time, which other programs change little, collectives in
// wall time; the best of several calls is used. bench/calibrate builds and runs this. usage:
// calibrate RANKS
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/Communicator.h"
#include "runtime/comm/PeerContext.h"
#include "runtime/comm/SharedSegment.h"
#include "runtime/device/Stream.h"
#include "runtime/execution/Context.h"
#include "runtime/kernels/Gemm.h"
#include "runtime/kernels/Kernels.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <sched.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace base;
using namespace fsdp::rt;

namespace {

constexpr std::size_t kArena = std::size_t(96) << 20;

/// Operands out of the caches: the next piece each time.
class Memory {
public:
  Memory() : data(kBytes / 4) {
    for (std::size_t i = 0; i < data.size(); ++i)
      data[i] = float(int(i * 2654435761u >> 24) - 128) / 512.0f;
  }
  template <class T> T *take(std::int64_t count) {
    const std::size_t floats = (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 16;
    if (next + floats > data.size())
      next = 0;
    next += floats;
    return reinterpret_cast<T *>(data.data() + next - floats);
  }

private:
  static constexpr std::size_t kBytes = std::size_t(192) << 20;
  std::vector<float> data;
  std::size_t next = 0;
};

class Rank {
public:
  Rank(Communicator &world, Memory &memory) : world(world), memory(memory) {}

  /// Seconds of `call` on the slowest rank: the best of some, after one that warms up.
  double best(const std::function<double()> &clock, const std::function<void()> &call,
              int calls = 6) {
    double least = 1e30;
    for (int i = 0; i <= calls; ++i) {
      world.barrier();
      const double begin = clock();
      call();
      const double took = clock() - begin;
      if (i > 0)
        least = std::min(least, took);
    }
    const double mine = least;
    world.allReduce(&mine, &least, 1, ReduceOp::Max);
    return least;
  }
  double worked(const std::function<void()> &call) { return best(processorSeconds, call); }
  double passed(const std::function<void()> &call, int calls) { return best(now, call, calls); }

  /// Flop/s of products with `extent` for one of rows, columns and terms, and as large as a block
  /// of a model for the others: mean of the three, each in the layouts of forward and of both
  /// gradients.
  template <class T> double productRate(std::int64_t extent) {
    double flops = 0, seconds = 0;
    constexpr std::int64_t large = 768;
    const std::int64_t shapes[][3] = {
        {extent, large, large}, {large, extent, large}, {large, large, extent}};
    for (const auto &[m, n, k] : shapes)
      for (int layout = 0; layout < 3; ++layout) {
        Gemm g{m, n, k, {1, 1, 1}, {k, 1, {}}, {n, 1, {}}, {n, 1, {}}};
        if (layout == 1)
          g.b = {1, k, {}};
        if (layout == 2)
          g.a = {1, m, {}};
        seconds += worked([&] {
          kernels::gemm(g, memory.take<T>(g.m * g.k), memory.take<T>(g.k * g.n),
                        memory.take<T>(g.m * g.n));
        });
        flops += flopsOf(g);
      }
    return flops / seconds;
  }

  /// Flop/s of attention and of its gradient with heads of `width`.
  template <class T> std::pair<double, double> attentionRates(std::uint32_t width) {
    const AttentionShape shape =
        rowMajor({1, 4, 4, 256, 256, width, 1 / std::sqrt(float(width)), true});
    const std::int64_t rows = 4 * 256, count = rows * width;
    const T *q = memory.take<T>(count), *k = memory.take<T>(count), *v = memory.take<T>(count);
    T *out = memory.take<T>(count), *dOut = memory.take<T>(count);
    T *dQ = memory.take<T>(count), *dK = memory.take<T>(count), *dV = memory.take<T>(count);
    std::vector<float> sums(rows);
    const double forward =
        worked([&] { kernels::attention(shape, q, k, v, nullptr, nullptr, out, sums.data()); });
    const double backward = worked([&] {
      kernels::attentionGrad(shape, q, k, v, nullptr, nullptr, out, sums.data(), dOut, dQ, dK, dV);
    });
    return {flopsOf(shape) / forward, 2.5 * flopsOf(shape) / backward};
  }

  /// Flop/s of ops without products, as the compiler counts them (nn::CostOpInterface): 7 for each
  /// element of a layer norm, 5 of a softmax, in rows that the caches hold.
  double loopRate() {
    const std::size_t rows = 256, width = 256, count = rows * width;
    float *x = memory.take<float>(count), *y = memory.take<float>(count);
    std::vector<float> mean(rows), rstd(rows), scale(width, 1);
    const double norm = worked([&] {
      kernels::layerNorm({rows, width, 1e-5}, x, scale.data(), scale.data(), y, mean.data(),
                         rstd.data());
    });
    const double softmax = worked([&] { kernels::softmax({rows, width}, x, y); });
    return (7.0 + 5.0) * double(count) / (norm + softmax);
  }

  /// Bytes/s of a loop that reads three arrays and writes two, of `bytes` together.
  double memoryRate(std::size_t bytes) {
    const std::size_t count = bytes / 5 / sizeof(float);
    float *p = memory.take<float>(count), *g = memory.take<float>(count),
          *v = memory.take<float>(count);
    const int times = static_cast<int>(std::max<std::size_t>(1, (8 << 20) / bytes));
    const double seconds = worked([&] {
      for (int again = 0; again < times; ++again) {
        for (std::size_t i = 0; i < count; ++i) {
          v[i] = 0.9f * v[i] + 0.1f * g[i];
          p[i] -= 1e-9f * v[i];
        }
        asm volatile("" ::: "memory");
      }
    });
    return 5.0 * sizeof(float) * double(count) * times / seconds;
  }

  /// Seconds of a launch that does nothing, on a stream.
  double launchSeconds(Failure &failure) {
    Stream stream("calibrate", world.rank(), failure);
    constexpr int launches = 400;
    return passed(
               [&] {
                 for (int i = 0; i < launches; ++i)
                   stream.push("nothing", [] {});
                 stream.synchronize();
               },
               10) /
           launches;
  }

private:
  Communicator &world;
  Memory &memory;
};

double round3(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return std::atof(text);
}

template <class T> std::string products(Rank &rank, const char *type, double &fastest) {
  std::string text =
      std::string("    {\"kind\": \"matrix\", \"type\": \"") + type + "\", \"rates\": [";
  for (std::int64_t extent : {16, 64, 256, 768}) {
    const double rate = rank.productRate<T>(extent);
    fastest = std::max(fastest, rate);
    text += format("%s[%d, %g]", extent == 16 ? "" : ", ", int(extent), round3(rate));
  }
  std::string forward, backward;
  for (std::uint32_t width : {32, 64}) {
    const auto rates = rank.attentionRates<T>(width);
    forward += format("%s[%u, %g]", width == 32 ? "" : ", ", width, round3(rates.first));
    backward += format("%s[%u, %g]", width == 32 ? "" : ", ", width, round3(rates.second));
  }
  text += "]},\n";
  text += format("    {\"kind\": \"attention\", \"type\": \"%s\", \"rates\": [%s]},\n", type,
                 forward.c_str());
  return text + format("    {\"kind\": \"attention_grad\", \"type\": \"%s\", \"rates\": [%s]}",
                       type, backward.c_str());
}

int runRank(int index, int ranks, SharedSegment &segment) {
  PeerContext peer;
  peer.rank = index;
  peer.arena = segment.arena(index);
  peer.arenaBytes = kArena;
  peer.failure = &segment.failure();
  peer.flight = segment.flight(index);
  peer.timeoutSeconds = 60;
  std::vector<int> group;
  for (int r = 0; r < ranks; ++r)
    group.push_back(r);
  const auto world = sharedMemoryCommunicator("all ranks", peer, segment, 0, group);
  if (const char *bandwidth = std::getenv("FSDP_LINK_BANDWIDTH"))
    world->limitLink(std::atof(bandwidth));
  Memory memory;
  Rank rank(*world, memory);

  double fastest = 0, fastestHalf = 0;
  const std::string f32 = products<float>(rank, "f32", fastest);
  const std::string half = products<bf16>(rank, "bf16", fastestHalf);
  const double loops = rank.loopRate();
  std::string memoryRates;
  for (std::size_t bytes : {256 << 10, 4 << 20, 96 << 20})
    memoryRates += format("%s[%zu, %g]", memoryRates.empty() ? "" : ", ", bytes,
                          round3(rank.memoryRate(bytes)));
  const double launch = rank.launchSeconds(segment.failure());

  // Of values of 4 MiB all over the arenas, so that no cache holds them, and short enough to be
  // interrupted by nothing at their best; latency from one of 4 KiB.
  std::string link = "\"bandwidth\": 1e10, \"latency\": 1e-5";
  double share = 1; // of a core that a gather takes, in processor time
  if (ranks > 1) {
    constexpr std::size_t large = std::size_t(4) << 20;
    const double part = double(ranks - 1) / ranks * double(large);
    std::size_t at = 0;
    const auto measure = [&](int kind, std::size_t bytes,
                             const std::function<double()> &clock = now) {
      const std::size_t count = bytes / sizeof(float);
      const ShardLayout layout{1, (count + ranks - 1) / ranks, 1, count};
      return rank.best(
          clock,
          [&] {
            at = at + 2 * large > kArena - 2 * large ? 0 : at + 2 * large;
            auto *source = reinterpret_cast<float *>(peer.arena + at);
            float *target = source + large / sizeof(float);
            if (kind == 0)
              world->allGather(source, target, layout);
            else if (kind == 1)
              world->perform(Communicator::Kind::ReduceScatter, layout, layout.wholeCount(),
                             DType::F32, source, target);
            else
              world->allReduce(source, target, count);
          },
          bytes == large ? 60 : 200);
    };
    const double latency = measure(0, 4096);
    const auto rateOf = [&](int kind, double bytes) {
      return round3(bytes / std::max(measure(kind, large) - latency, 1e-9));
    };
    const double gather = rateOf(0, part), scatter = rateOf(1, part), reduce = rateOf(2, 2 * part);
    share = std::min(1.0, measure(0, large, processorSeconds) / measure(0, large));
    link = format("\"bandwidth\": %g, \"latency\": %g,\n     \"bandwidths\": {\"reduce_scatter\": "
                  "%g, \"all_reduce\": %g}",
                  gather, round3(latency), scatter, reduce);
  }
  if (index > 0)
    return 0;
  cpu_set_t cores;
  sched_getaffinity(0, sizeof cores, &cores);
  const long long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  std::printf("{\n  \"name\": \"calibrated\",\n"
              "  \"source\": \"bench/calibrate with %d ranks; 'peak' is the fastest product\",\n"
              "  \"memory\": %lld,\n  \"peak\": {\"f32\": %g, \"bf16\": %g},\n  \"products\": "
              "[\n%s,\n%s\n  ],\n"
              "  \"loop_flops\": %g,\n  \"memory_rates\": [%s],\n  \"launch_seconds\": %g,\n"
              "  \"cores\": %d,\n  \"collective_share\": %g,\n  \"algorithms\": [\"direct\"],\n  "
              "\"links\": [\n"
              "    {\"name\": \"shared memory\", \"ranks\": 0, %s}\n  ]\n}\n",
              ranks, pages * page / ranks, round3(fastest), round3(fastestHalf), f32.c_str(),
              half.c_str(), round3(loops), memoryRates.c_str(), round3(launch), CPU_COUNT(&cores),
              round3(share), link.c_str());
  return std::fflush(stdout) != 0;
}

} // namespace

int main(int argc, char **argv) {
  const int ranks = argc == 2 ? std::atoi(argv[1]) : 0;
  if (ranks < 1 || ranks > 64) {
    std::fprintf(stderr, "usage: calibrate RANKS, from 1 to 64\n");
    return 2;
  }
  const SharedSegment::Layout layout{ranks, 1, kArena};
  SharedSegment segment(Mapping::anonymous(SharedSegment::bytesFor(layout)), layout);
  for (int r = 0; r < ranks; ++r)
    segment.rank(r).state = RankRecord::Running;
  std::vector<pid_t> others;
  for (int r = 1; r < ranks; ++r) {
    const pid_t child = fork();
    if (child == 0)
      _exit(runRank(r, ranks, segment));
    others.push_back(child);
  }
  int failed = runRank(0, ranks, segment), status = 0;
  for (pid_t child : others) {
    waitpid(child, &status, 0);
    failed |= status;
  }
  return failed != 0;
}
