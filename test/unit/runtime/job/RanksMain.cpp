//===- RanksMain.cpp - jobs that the runtime's tests start ------------------===//
//
//   runtime-ranks MESH MODE [auto|shm|tcp|mpi|threads]     MESH as in "fsdp=2,tensor=3"
//
// Modes other than `conformance`, `where`, `steps`, `overlap`, `link` and `allocations` plant a
// fault in rank 1; `lose-first` in rank 0. ARENA_GIB is the size of a rank's arena, TRUST_NETWORK
// is
// --trust-network.
//
//===----------------------------------------------------------------------===//
#include "runtime/execution/Launch.h"
#include "runtime/job/Bootstrap.h"
#include "runtime/job/ErrorReport.h"
#include "runtime/launches/Collectives.h"
#include "test/unit/runtime/comm/Conformance.h"
#include "test/unit/runtime/program/MeshText.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

using namespace base;
using namespace fsdp::rt;

//===----------------------------------------------------------------------===//
// Every allocation of the process, counted while `counting`
//===----------------------------------------------------------------------===//

static std::atomic<bool> counting{false};
static std::atomic<long> allocations{0};

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED // brings its own malloc
#endif
#endif

// The second fork fails when FAIL_FORK is set.
extern "C" pid_t __fork();
extern "C" pid_t fork() noexcept {
  static int forks = 0;
  if (!std::getenv("FAIL_FORK") || ++forks != 2)
    return __fork();
  errno = EAGAIN;
  return -1;
}

#ifndef SANITIZED
extern "C" {
void *__libc_malloc(std::size_t);
void *__libc_calloc(std::size_t, std::size_t);
void *__libc_realloc(void *, std::size_t);
void *__libc_memalign(std::size_t, std::size_t);

static void count() {
  if (counting.load(std::memory_order_relaxed))
    allocations.fetch_add(1, std::memory_order_relaxed);
}
void *malloc(std::size_t bytes) {
  count();
  return __libc_malloc(bytes);
}
void *calloc(std::size_t n, std::size_t bytes) {
  count();
  return __libc_calloc(n, bytes);
}
void *realloc(void *old, std::size_t bytes) {
  count();
  return __libc_realloc(old, bytes);
}
void *aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void **result, std::size_t alignment, std::size_t bytes) {
  count();
  *result = __libc_memalign(alignment, bytes);
  return *result ? 0 : ENOMEM;
}
void *mmap(void *address, std::size_t bytes, int protection, int flags, int fd,
           off_t offset) noexcept {
  count();
  return reinterpret_cast<void *>(syscall(SYS_mmap, address, bytes, protection, flags, fd, offset));
}
}
#endif

namespace {

enum : int { kCompute, kGather };
constexpr const char *kStreams[] = {"compute", "gather"};

struct Units {
  ArenaSpan<float> piece, whole, gradient, sum;
  ShardLayout tile;
};

Units unitsOf(const Mesh &mesh) {
  const std::size_t total = 10007, ranks = mesh.size(), local = (total + ranks - 1) / ranks;
  return {{0, local}, {65536, total}, {2 * 65536, total}, {3 * 65536, local}, {1, local, 1, total}};
}

/// A step of a small program over the last communicator before the world: gather, compute, scatter.
void step(Context &c, const Units &u) {
  all_gather(c, kGather, "gather", 0, u.tile, u.piece, u.whole);
  record(c, kGather, 0);
  wait(c, kCompute, 0);
  launch(c, kCompute, "double", reads(u.whole), writes(u.gradient),
         [n = u.whole.count](const float *w, float *g) {
           for (std::size_t i = 0; i < n; ++i)
             g[i] = 2 * w[i];
         });
  record(c, kCompute, 1);
  wait(c, kGather, 1);
  reduce_scatter(c, kGather, "scatter", 0, u.tile, u.gradient, u.sum);
  record(c, kGather, 2);
  wait(c, kCompute, 2);
  all_reduce(c, kCompute, "norm", 0, ReduceOp::Sum, ArenaSpan<float>{u.sum.offset, 1},
             ArenaSpan<float>{4 * 65536, 1});
}

// The n-th element of the whole is n on every rank; gradients are twice that, summed over the
// ranks.
void checkStep(Context &c, const Units &u) {
  const std::size_t first = c.comm(0).rank() * u.tile.local;
  for (std::size_t i = 0; i < u.tile.held(c.comm(0).rank()); ++i) {
    float got = c.data(u.sum)[i], expected = 2.0f * float(first + i) * float(c.comm(0).size());
    if (got != expected)
      throw Error(format("element %zu got %g, expected %g", i, got, expected));
  }
  if (c.peakBytes() != 4 * 65536 + 4)
    throw Error(format("peak got %zu bytes, expected %d", c.peakBytes(), 4 * 65536 + 4));
}

/// Gathers that run ahead: unit i computes until unit i+1 has arrived.
int overlap(Context &c, const Units &u) {
  static std::atomic<int> arrived{0};
  const auto count = [](void *user, const StreamAction &) {
    ++*static_cast<std::atomic<int> *>(user);
  };
  c.observe(kGather, {count, &arrived});
  constexpr int kUnits = 5;
  for (int i = 0; i < kUnits; ++i) {
    all_gather(c, kGather, "gather", 0, u.tile, u.piece, u.whole);
    record(c, kGather, i);
  }
  for (int i = 0; i < kUnits; ++i) {
    wait(c, kCompute, i);
    launch(c, kCompute, "compute", reads(u.whole), writes(),
           [next = std::min(i + 2, kUnits)](const float *) {
             for (int tries = 0; arrived < next; ++tries) {
               if (tries == 60'000)
                 throw Error(
                     format("gather %d does not end while the unit before computes", next - 1));
               usleep(1000);
             }
           });
  }
  c.synchronize();
  return 0;
}

/// Each collective lasts at least as long as FSDP_LINK_BANDWIDTH=1000000 says for its bytes.
int limitedLink(Context &c, const Units &u) {
  const auto expect = [&](const char *name, std::size_t elements, auto &&collective) {
    const double begin = now(), seconds = static_cast<double>(elements * sizeof(float)) / 1e6;
    collective();
    c.synchronize();
    if (const double took = now() - begin; took < seconds)
      throw Error(format("%s took %g s, expected %g", name, took, seconds));
  };
  const auto ranks = static_cast<std::size_t>(c.comm(0).size());
  const std::size_t part = (ranks - 1) * u.whole.count / ranks;
  expect("all_gather", part,
         [&] { all_gather(c, kGather, "gather", 0, u.tile, u.piece, u.whole); });
  expect("reduce_scatter", part,
         [&] { reduce_scatter(c, kGather, "scatter", 0, u.tile, u.gradient, u.sum); });
  expect("all_reduce", 2 * part,
         [&] { all_reduce(c, kGather, "sum", 0, ReduceOp::Sum, u.whole, u.gradient); });
  expect("send and receive", u.piece.count, [&] {
    send(c, kGather, "send", 0, Peer{1}, u.piece);
    receive(c, kGather, "receive", 0, Peer{-1}, u.sum);
  });
  return 0;
}

/// Stops all processes of the job for three seconds while the others wait for this one.
void suspendJob(Context &c) {
  const pid_t group = getpgrp();
  if (fork() == 0) {
    setsid();
    usleep(300'000);
    kill(-group, SIGSTOP);
    usleep(3'000'000);
    kill(-group, SIGCONT);
    _exit(0);
  }
  launch(c, kCompute, "late", reads(), writes(), [] { usleep(1'000'000); });
}

/// The faults that a mode plants in rank 1, before its third step.
void plant(const std::string &mode, Context &c, const Units &u) {
  if (mode == "throw")
    throw Error("the planted fault");
  if (mode == "kernel")
    launch(c, kCompute, "faulty kernel", reads(), writes(),
           [] { throw Error("the planted fault of a kernel"); });
  if (mode == "sigkill")
    raise(SIGKILL);
  if (mode == "segv")
    raise(SIGSEGV);
  if (mode == "stop")
    raise(SIGSTOP);
  if (const char *ready = std::getenv("READY")) // all ranks have begun
    std::fclose(std::fopen(ready, "w"));
  if (mode == "spin")
    launch(c, kCompute, "endless", reads(), writes(), [] {
      for (volatile bool ever = true; ever;)
        usleep(1000);
    });
  if (mode == "exit")
    _exit(3);
  if (mode == "kind")
    reduce_scatter(c, kGather, "wrong kind", 0, u.tile, u.gradient, u.sum);
  if (mode == "count")
    all_gather(c, kGather, "wrong count", 0, ShardLayout{1, u.tile.local, 1, 10000}, u.piece,
               u.whole);
  if (mode == "group")
    collective_group(c, kGather, "wrong group", 0, all_gather(u.tile, u.piece, u.whole),
                     all_gather(u.tile, u.sum, u.gradient));
  if (mode == "unsent")
    receive(c, kGather, "unsent", 0, Peer{-1}, ArenaSpan<float>{u.sum.offset, 4});
  if (mode == "suspend")
    suspendJob(c);
  if (mode == "allocate")
    launch(c, kCompute, "allocates", reads(), writes(), [] { std::free(std::malloc(100)); });
}

/// The faults that a mode plants in ranks 0 and 1, before their third step.
void plantInBoth(const std::string &mode, Context &c, const Units &u) {
  const int rank = c.comm(0).rank();
  if (mode == "sizes" && rank == 0)
    send(c, kGather, "four", 0, Peer{1}, ArenaSpan<float>{u.sum.offset, 4});
  if (mode == "sizes" && rank == 1)
    receive(c, kGather, "five", 0, Peer{-1}, ArenaSpan<float>{u.sum.offset, 5});
  if (mode == "crossing" && rank < 2)
    receive(c, kGather, "crossing", 0, Peer{rank ? -1 : 1}, ArenaSpan<float>{u.sum.offset, 4});
}

int body(Job &job, const std::string &mode) {
  if (mode == "conformance") {
    std::size_t compared = runConformance(job);
    if (job.rank() == 0)
      std::printf("compared %zu\n", compared);
    return 0;
  }
  if (mode == "where") {
    std::printf("rank %d is %d here\n", job.rank(), job.localRank());
    return 0;
  }
  Context c(job, kStreams, 8);
  const Units u = unitsOf(job.mesh());
  for (std::size_t i = 0; i < u.tile.held(c.comm(0).rank()); ++i)
    c.data(u.piece)[i] = float(c.comm(0).rank() * u.tile.local + i);
  if (mode == "overlap")
    return overlap(c, u);
  if (mode == "link")
    return limitedLink(c, u);
  const int steps = mode == "allocations" || mode == "allocate" ? 200 : 5;
  for (int s = 0; s < steps; ++s) {
    if (s == 2 && mode == "lose-first" && job.rank() == 0)
      raise(SIGKILL);
    if (s == 2)
      plantInBoth(mode, c, u);
    if (s == 2 && job.rank() == 1) {
      if (mode == "leave")
        return 0;
      plant(mode, c, u);
    }
    if (s == 100)
      usleep(250'000); // threads that look around now and then come round too
    step(c, u);
    if (s < 2)
      c.synchronize();
    if (s == 0) {
      allocations = 0;
      counting = true;
    }
  }
  c.synchronize();
  counting = false;
  if ((mode == "allocations" || mode == "allocate") && allocations != 0)
    throw Error(format("%ld allocations after the first step", allocations.load()));
  checkStep(c, u);
  c.world().barrier();
  if (job.rank() == 0)
    std::printf("done\n");
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: runtime-ranks MESH MODE [auto|shm|tcp|mpi|threads]\n");
    return kExitBadCommandLine;
  }
  const MeshText text(argv[1]);
  JobOptions options;
  options.trustNetwork = std::getenv("TRUST_NETWORK");
  const char *arena = std::getenv("ARENA_GIB");
  options.arenaBytes = arena ? std::size_t(std::atol(arena)) << 30 : kConformanceArena;
  options.communicators = text.communicators();
  try {
    const std::string how = argc > 3 ? argv[3] : "auto";
    options.transport = how == "threads" ? Transport::Loopback : parseTransport(how);
    Mesh mesh(text.axes(), text.order());
    std::string mode = argv[2];
    return runRanks(mesh, options, [&](Job &job) { return body(job, mode); });
  } catch (const Error &error) {
    return report(error);
  }
}
