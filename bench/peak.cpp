// Prints the peak rates of this machine as JSON: of its arithmetic, of the matrix products of a
// training step and of memory, one thread in each of RANKS processes at once.
// bench/machine_rates.py builds and runs this. usage: peak RANKS f32|bf16 ROWS [IN OUT]...
//
// Seconds are of the processor: other work on the machine then changes the rates less.
//
// {"arithmetic": GFLOP/s of multiplications and additions in registers, null where this type has no
// instructions,
//  "products": [{"m": 1024, "n": 1152, "k": 384, "library": 180.2, "own": 171.0}, ...] GFLOP/s of
//  the three products of each weight IN x OUT (of ROWS rows, and its two gradients) and of a large
//  square, by oneDNN, which gets its right side in the layout that it prefers, and by the runtime,
//  which gets operands as a step has them; "copy": GB/s read and written by a copy larger than the
//  caches, "update": the same where four arrays are read and three written, as AdamW does}; figures
//  are sums over the processes.

#include "runtime/kernels/Gemm.h"

#include <dnnl.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <utility>
#include <vector>
#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double processSeconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

struct Shared {
  pthread_barrier_t barrier;
  double seconds[64];
};

/// Processor seconds of the slowest rank, the best of some rounds that all ranks begin together.
double measure(Shared &shared, int rank, int ranks, const std::function<void()> &work) {
  constexpr int least = 3, most = 50;
  constexpr double wanted = 0.15; // seconds of all rounds
  work();
  double best = 1e30;
  const double end = now() + wanted;
  for (int round = 0; round < most; ++round) {
    pthread_barrier_wait(&shared.barrier);
    const double begin = processSeconds();
    work();
    shared.seconds[rank] = processSeconds() - begin;
    pthread_barrier_wait(&shared.barrier);
    best = std::min(best, *std::max_element(shared.seconds, shared.seconds + ranks));
    // All ranks leave in the same round: the decision is rank 0's.
    if (rank == 0)
      shared.seconds[63] = now() > end && round + 1 >= least;
    pthread_barrier_wait(&shared.barrier);
    if (shared.seconds[63] != 0)
      break;
  }
  return best;
}

/// Sixteen floats, whatever the processor's vectors.
using Vector = float __attribute__((vector_size(64)));
constexpr long kSteps = 1 << 20;

/// Chains of multiplications and additions that depend on nothing but themselves: enough of them to
/// fill the latency of an instruction, few enough for the registers. Returns the flops.
#if defined(__AVX512F__)
constexpr int kChains = 16;
#else
constexpr int kChains = 4;
#endif
// What the compiler does not know it cannot compute in advance, and what it must write it cannot
// leave out.
volatile float seen = 0.5f;

double multiplyFloats() {
  Vector sums[kChains] = {};
  const float factor = seen;
  for (long step = 0; step < kSteps; ++step)
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i)
      sums[i] = sums[i] * factor + factor;
  for (const Vector &sum : sums)
    seen = sum[0] > 0 ? 0.5f : 0.25f;
  return 2.0 * 16 * kChains * kSteps;
}

#ifdef __AVX512BF16__
double multiplyPairs() {
  __m512 sums[kChains] = {};
  const auto factors = (__m512bh)_mm512_castps_si512(_mm512_set1_ps(seen));
  for (long step = 0; step < kSteps; ++step)
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i)
      sums[i] = _mm512_dpbf16_ps(sums[i], factors, factors);
  for (const __m512 &sum : sums)
    seen = sum[0] > 0 ? 0.5f : 0.25f;
  return 2.0 * 32 * kChains * kSteps;
}
#endif

/// GFLOP/s of all ranks; 0 if not known: a matrix unit multiplies bf16 faster than vectors do, and
/// its rate is that of products.
double arithmetic(Shared &shared, int rank, int ranks, bool half) {
  double (*multiply)() = half ? nullptr : multiplyFloats;
#if defined(__AVX512BF16__) && !defined(__AMX_BF16__)
  if (half)
    multiply = multiplyPairs;
#endif
  if (!multiply)
    return 0;
  double flops = 0;
  const double seconds = measure(shared, rank, ranks, [&] { flops = multiply(); });
  return flops * ranks / seconds / 1e9;
}

/// The right side in the layout that the library prefers: its packing is not measured.
double libraryGflops(Shared &shared, int rank, int ranks, dnnl::memory::data_type type, long m,
                     long n, long k) {
  using dnnl::memory;
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  memory::desc a({m, k}, type, memory::dims{k, 1}), b({k, n}, type, memory::format_tag::any);
  memory::desc c({m, n}, type, memory::dims{n, 1});
#if DNNL_VERSION_MAJOR >= 3
  dnnl::matmul::primitive_desc chosen(engine, a, b, c);
#else
  dnnl::matmul::primitive_desc chosen(dnnl::matmul::desc(a, b, c), engine);
#endif
  dnnl::matmul product(chosen);
  memory ma(a, engine), mb(chosen.weights_desc(), engine), mc(c, engine);
  for (memory *operand : {&ma, &mb})
    std::memset(operand->get_data_handle(), 0, operand->get_desc().get_size());
  const double seconds = measure(shared, rank, ranks, [&] {
    product.execute(stream, {{DNNL_ARG_SRC, ma}, {DNNL_ARG_WEIGHTS, mb}, {DNNL_ARG_DST, mc}});
    stream.wait();
  });
  return 2.0 * m * n * k * ranks / seconds / 1e9;
}

template <class In, class Out>
double ownGflops(Shared &shared, int rank, int ranks, const fsdp::rt::Gemm &g) {
  const std::vector<In> a(std::size_t(g.m * g.k), In(0.0f)), b(std::size_t(g.k * g.n), In(0.0f));
  std::vector<Out> c(std::size_t(g.m * g.n));
  const double seconds = measure(shared, rank, ranks,
                                 [&] { fsdp::rt::kernels::gemm(g, a.data(), b.data(), c.data()); });
  return 2.0 * double(g.m) * double(g.n) * double(g.k) * ranks / seconds / 1e9;
}

/// Prints what rank 0 has to say.
class Output {
public:
  explicit Output(int rank) : speaks(rank == 0) {}
  template <class... Arguments> void operator()(const char *format, Arguments... arguments) const {
    if (speaks)
      std::printf(format, arguments...);
  }

private:
  bool speaks;
};

/// y = x w, dx = dy w^T and dw = x^T dy of a weight in x out, with the strides that a step has.
template <class T>
void products(Shared &shared, int rank, int ranks,
              const std::vector<std::pair<long, long>> &weights, long rows, const Output &say) {
  const auto type = sizeof(T) == 2 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
  const char *separator = "";
  const auto product = [&]<class Out>(Out, const fsdp::rt::Gemm &g) {
    const double library = libraryGflops(shared, rank, ranks, type, g.m, g.n, g.k);
    const double own = ownGflops<T, Out>(shared, rank, ranks, g);
    say("%s{\"m\": %ld, \"n\": %ld, \"k\": %ld, \"library\": %.1f, \"own\": %.1f}", separator,
        long(g.m), long(g.n), long(g.k), library, own);
    separator = ", ";
  };
  for (const auto &[in, out] : weights) {
    product(T(0.0f), {rows, out, in, {1, 1, 1}, {in, 1, {}}, {out, 1, {}}, {out, 1, {}}});
    product(T(0.0f), {rows, in, out, {1, 1, 1}, {out, 1, {}}, {1, out, {}}, {in, 1, {}}});
    product(0.0f, {in, out, rows, {1, 1, 1}, {1, in, {}}, {out, 1, {}}, {out, 1, {}}});
  }
  constexpr long large = 2048;
  product(T(0.0f),
          {large, large, large, {1, 1, 1}, {large, 1, {}}, {large, 1, {}}, {large, 1, {}}});
}

void run(Shared &shared, int rank, int ranks, int argc, char **argv) {
  const Output say(rank);
  const bool half = std::strcmp(argv[2], "bf16") == 0;
  const double most = arithmetic(shared, rank, ranks, half);
  say(most > 0 ? "{\"arithmetic\": %.1f, \"products\": ["
               : "{\"arithmetic\": null, \"products\": [",
      most);
  std::vector<std::pair<long, long>> weights;
  for (int i = 4; i + 1 < argc; i += 2)
    weights.emplace_back(std::atol(argv[i]), std::atol(argv[i + 1]));
  half ? products<fsdp::rt::bf16>(shared, rank, ranks, weights, std::atol(argv[3]), say)
       : products<float>(shared, rank, ranks, weights, std::atol(argv[3]), say);
  constexpr std::size_t count = std::size_t(32) << 20; // 128 MiB an array
  // Not a multiple of pages apart: those would share the sets of the first cache.
  constexpr std::size_t apart = 272;
  std::vector<float> p(count, 1.0f), g(count + apart, 2.0f), m(count + 2 * apart, 3.0f),
      v(count + 3 * apart, 4.0f);
  const double copy = measure(shared, rank, ranks, [&] { std::copy_n(p.data(), count, g.data()); });
  const double update = measure(
      shared, rank, ranks,
      [=, p = p.data(), g = g.data() + apart, m = m.data() + 2 * apart, v = v.data() + 3 * apart] {
#pragma omp simd
        for (std::size_t i = 0; i < count; ++i) {
          m[i] = 0.9f * m[i] + 0.1f * g[i];
          v[i] = 0.9f * v[i] + 0.1f * g[i] * g[i];
          p[i] -= 0.001f * m[i] * v[i];
        }
      });
  const double gigabytes = 4e-9 * count * ranks;
  say("], \"copy\": %.2f, \"update\": %.2f}\n", 2 * gigabytes / copy, 7 * gigabytes / update);
  std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 0;
  const bool typed =
      argc >= 4 && (std::strcmp(argv[2], "f32") == 0 || std::strcmp(argv[2], "bf16") == 0);
  if (ranks < 1 || ranks > 60 || !typed || argc % 2 != 0) {
    std::fprintf(stderr, "usage: peak RANKS f32|bf16 ROWS [IN OUT]...\n");
    return 2;
  }
  if (const char *threads = std::getenv("OMP_NUM_THREADS");
      !threads || std::strcmp(threads, "1") != 0) {
    std::fprintf(stderr,
                 "peak: OMP_NUM_THREADS is not 1: products would run on more than one thread\n");
    return 2;
  }
  auto *shared = static_cast<Shared *>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->barrier, &attributes, static_cast<unsigned>(ranks));
  std::vector<pid_t> others;
  for (int rank = 1; rank < ranks; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      run(*shared, rank, ranks, argc, argv);
      _exit(0);
    }
    others.push_back(pid);
  }
  run(*shared, 0, ranks, argc, argv);
  int status, failed = 0;
  for (pid_t pid : others) {
    waitpid(pid, &status, 0);
    failed |= status;
  }
  return failed != 0;
}
