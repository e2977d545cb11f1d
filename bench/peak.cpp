// Prints the peak rates of this machine as JSON: matrix products by oneDNN, one thread in each of
// RANKS processes at once, and memory traffic. usage: peak RANKS [f32|bf16 M N K]...
//
// Seconds are of the processor: other work on the machine then changes the rates less.
//
// {"gemm": [{"type": "f32", "m": 1024, "n": 1024, "k": 1024, "gflops": 180.2}, ...],
//  "copy": GB/s read and written by a copy larger than the caches, "update": the same where three
//  arrays are read and two written in one loop}; figures are sums over the processes.

#include <dnnl.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <pthread.h>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <vector>

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double processorSeconds() {
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
  work();
  double best = 1e30;
  const double end = now() + 0.5;
  for (int round = 0; round < 5 || (round < 50 && best < 0.1); ++round) {
    pthread_barrier_wait(&shared.barrier);
    const double begin = processorSeconds();
    work();
    shared.seconds[rank] = processorSeconds() - begin;
    pthread_barrier_wait(&shared.barrier);
    best = std::min(best, *std::max_element(shared.seconds, shared.seconds + ranks));
    // All ranks leave in the same round: the decision is rank 0's.
    if (rank == 0)
      shared.seconds[63] = now() > end && round >= 4;
    pthread_barrier_wait(&shared.barrier);
    if (shared.seconds[63] != 0)
      break;
  }
  return best;
}

void fill(dnnl::memory &memory, std::size_t bytes) {
  std::memset(memory.get_data_handle(), 0, bytes);
}

double gemmSeconds(Shared &shared, int rank, int ranks, dnnl::memory::data_type type, long m,
                   long n, long k) {
  using dnnl::memory;
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  memory::desc a({m, k}, type, memory::dims{k, 1}), b({k, n}, type, memory::dims{n, 1});
  memory::desc c({m, n}, type, memory::dims{n, 1});
#if DNNL_VERSION_MAJOR >= 3
  dnnl::matmul::primitive_desc chosen(engine, a, b, c);
#else
  dnnl::matmul::primitive_desc chosen(dnnl::matmul::desc(a, b, c), engine);
#endif
  dnnl::matmul product(chosen);
  memory ma(a, engine), mb(b, engine), mc(c, engine);
  fill(ma, a.get_size()), fill(mb, b.get_size());
  return measure(shared, rank, ranks, [&] {
    product.execute(stream, {{DNNL_ARG_SRC, ma}, {DNNL_ARG_WEIGHTS, mb}, {DNNL_ARG_DST, mc}});
    stream.wait();
  });
}

void run(Shared &shared, int rank, int ranks, int argc, char **argv) {
  const auto say = [&](auto... arguments) {
    if (rank == 0)
      std::printf(arguments...);
  };
  say("{\"gemm\": [");
  for (int i = 2; i + 3 < argc; i += 4) {
    const bool half = std::strcmp(argv[i], "bf16") == 0;
    const long m = std::atol(argv[i + 1]), n = std::atol(argv[i + 2]), k = std::atol(argv[i + 3]);
    const double seconds =
        gemmSeconds(shared, rank, ranks,
                    half ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32, m, n, k);
    say("%s{\"type\": \"%s\", \"m\": %ld, \"n\": %ld, \"k\": %ld, \"gflops\": %.1f}",
        i == 2 ? "" : ", ", argv[i], m, n, k, 2.0 * m * n * k * ranks / seconds / 1e9);
  }
  constexpr std::size_t count = std::size_t(32) << 20; // 128 MiB an array
  std::vector<float> p(count, 1.0f), g(count, 2.0f), v(count, 3.0f);
  const double copy = measure(shared, rank, ranks, [&] { std::copy_n(p.data(), count, g.data()); });
  const double update = measure(shared, rank, ranks, [&] {
    for (std::size_t i = 0; i < count; ++i) {
      v[i] = 0.9f * v[i] + 0.1f * g[i];
      p[i] -= 0.001f * v[i];
    }
  });
  const double gigabytes = 4e-9 * count * ranks;
  say("], \"copy\": %.2f, \"update\": %.2f}\n", 2 * gigabytes / copy, 5 * gigabytes / update);
  std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 0;
  if (ranks < 1 || ranks > 60 || (argc - 2) % 4 != 0) {
    std::fprintf(stderr, "usage: peak RANKS [f32|bf16 M N K]...\n");
    return 2;
  }
  setenv("OMP_NUM_THREADS", "1", 1);
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
