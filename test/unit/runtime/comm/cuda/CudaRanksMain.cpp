//===- CudaRanksMain.cpp - jobs of the CUDA runtime, emulated or on a GPU ---===//
//
//   cuda-ranks MESH MODE nccl|loopback     MESH as in "fsdp=2,tensor=3"
//
// Ranks are threads: on one device (loopback), or each on its own (nccl, which the emulator has
// between threads only). `conformance`, `steps`, `transfers`, `late-transfer`, `sender-ends`,
// `neighbors`, `neighbors-ahead`, `roles`, `roles-behind`, `roles-describe`, `grow`, `behind`,
// `ahead`, `outputs`, `large-gather`, `graph`, `graph-traced` and `unfinished` plant no fault;
// others do, most in rank 1; with `even-` before them, a unit is cut evenly, so that it is gathered
// from and to the arena itself; `count` asks for as many GPUs as the mesh has ranks, before there
// are ranks.
//
//===----------------------------------------------------------------------===//
#include "base/WaitCounter.h"
#include "runtime/execution/Device.h"
#include "runtime/execution/cuda/Launch.h"
#include "runtime/job/Bootstrap.h"
#include "runtime/job/ErrorReport.h"
#include "runtime/job/SharedJob.h"
#include "runtime/launches/Collectives.h"
#include "runtime/launches/Kernels.h"
#include "test/unit/runtime/comm/cuda/DeviceJob.h"
#include "test/unit/runtime/comm/cuda/GraphModes.h"
#include "test/unit/runtime/comm/cuda/RoleModes.h"
#include "test/unit/runtime/comm/cuda/TransferModes.h"
#include "test/unit/runtime/program/MeshText.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace base;
using namespace fsdp::rt;

//===----------------------------------------------------------------------===//
// Injected faults
//===----------------------------------------------------------------------===//

/// What NCCL is to say of its communicators, where it is not what they say; see the linker's
/// --wrap.
static std::atomic<ncclResult_t> asyncError{ncclSuccess};
#ifdef FSDP_CUDA_EMULATOR
#define GET_ASYNC_ERROR "_Z21ncclCommGetAsyncErrorP8ncclCommP12ncclResult_t"
ncclResult_t realGetAsyncError(ncclComm_t, ncclResult_t *) asm("__real_" GET_ASYNC_ERROR);
ncclResult_t plantedAsyncError(ncclComm_t, ncclResult_t *) asm("__wrap_" GET_ASYNC_ERROR);
ncclResult_t plantedAsyncError(ncclComm_t comm, ncclResult_t *error) {
  *error = asyncError.load();
  return *error == ncclSuccess ? realGetAsyncError(comm, error) : ncclSuccess;
}

/// Whether a rank stays away from the others when they join.
static std::atomic<bool> staysAway{false};
#define INIT_RANK "_Z22ncclCommInitRankConfigPP8ncclCommi12ncclUniqueIdiP12ncclConfig_t"
ncclResult_t realInitRank(ncclComm_t *, int, ncclUniqueId, int,
                          ncclConfig_t *) asm("__real_" INIT_RANK);
ncclResult_t plantedInitRank(ncclComm_t *, int, ncclUniqueId, int,
                             ncclConfig_t *) asm("__wrap_" INIT_RANK);
ncclResult_t plantedInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                             ncclConfig_t *config) {
  if (staysAway && rank == 1)
    sleep(1000);
  return realInitRank(comm, ranks, id, rank, config);
}

/// RANK1_NAME=VALUE in the environment: rank 1 alone has NAME=VALUE.
static thread_local int rankOfThread = -1;
extern "C" char *__real_getenv(const char *name);
extern "C" char *__wrap_getenv(const char *name) {
  if (rankOfThread >= 0)
    if (char *own = __real_getenv(format("RANK%d_%s", rankOfThread, name).c_str()))
      return own;
  return __real_getenv(name);
}

/// RANK1_CUBLASLT in the environment: rank 1 has a later version of cuBLASLt.
#define LT_VERSION "_Z18cublasLtGetVersionv"
std::size_t realLtVersion() asm("__real_" LT_VERSION);
std::size_t plantedLtVersion() asm("__wrap_" LT_VERSION);
std::size_t plantedLtVersion() { return realLtVersion() + (std::getenv("CUBLASLT") ? 100 : 0); }

/// FORK=fail: no process can be started; FORK=kill: a started process dies immediately.
extern "C" pid_t __fork();
extern "C" pid_t fork() noexcept {
  const char *fault = std::getenv("FORK");
  if (fault && !std::strcmp(fault, "fail")) {
    errno = EAGAIN;
    return -1;
  }
  const pid_t pid = __fork();
  if (pid == 0 && fault)
    raise(SIGKILL);
  return pid;
}
#endif

namespace {

//===----------------------------------------------------------------------===//
// Steps on two streams
//===----------------------------------------------------------------------===//

/// A unit that is gathered, doubled by being summed with itself, and scattered; total is uneven.
struct Unit {
  ArenaSpan<float> piece, whole, gradient, sum, norm;
  ShardLayout tile;
};

Unit unitOf(const Mesh &mesh, bool even) {
  const std::size_t total = even ? mesh.size() * 1024 : 10007, ranks = mesh.size(),
                    local = (total + ranks - 1) / ranks;
  return {{0, local},         {65536, total}, {2 * 65536, total},
          {3 * 65536, local}, {4 * 65536, 1}, {1, local, 1, total}};
}

void step(Context &c, const Unit &u, bool fault) {
  wait(c, kGather, 1);
  all_gather(c, kGather, "gather", 0, u.tile, u.piece, u.whole);
  record(c, kGather, 0);
  wait(c, kCompute, 0);
  launch(c, kCompute, "copy", reads(u.whole), writes(u.gradient),
         [&](const float *from, float *to, WorkStream stream) {
           return cudaMemcpyAsync(to, from, u.whole.bytes(), cudaMemcpyDeviceToDevice, stream);
         });
  record(c, kCompute, 1);
  wait(c, kGather, 1);
  ShardLayout tile = u.tile;
  if (fault)
    ++tile.local;
  reduce_scatter(c, kGather, "scatter", 0, tile, u.gradient, u.sum);
  all_reduce(c, kGather, "norm", 0, ReduceOp::Sum, ArenaSpan<float>{u.sum.offset, 1}, u.norm);
  output(c, kGather, "output", 0, u.norm);
}

int steps(Job &job, Context &c, const std::string &mode, bool even) {
  const Unit u = unitOf(job.mesh(), even);
  const auto me = static_cast<std::size_t>(c.rankIn(0)),
             ranks = static_cast<std::size_t>(c.sizeOf(0));
  std::vector<float> values(u.piece.count, -1); // padding that must not arrive anywhere
  for (std::size_t i = 0; i < u.tile.held(me); ++i)
    values[i] = float(me * u.tile.local + i);
  CHECK(c, "start", cudaMemcpy(c.base(), values.data(), u.piece.bytes(), cudaMemcpyHostToDevice));
  CHECK(c, "start", cudaStreamSynchronize(nullptr));
  for (int s = 0; s < 5; ++s) {
    const bool planted = s == 2 && job.rank() == 1;
    // The other ranks are to wait for rank 1 in this step, not to end the step before.
    if (s == 2 && mode == "throw")
      c.world().barrier();
    if (planted && mode == "throw")
      throw Error("the planted fault");
    if (planted && mode == "leave")
      return 0;
    if (planted && mode == "sleep")
      sleep(1000);
    if (planted && mode == "invalid")
      CHECK(c, "wrong copy",
            cudaMemcpyAsync(nullptr, c.base(), 4, cudaMemcpyDeviceToDevice, c.stream(0)));
    if (planted && (mode == "label" || mode == "id")) {
      const ArenaSpan<std::int32_t> number{u.norm.offset + 64, 1};
      const ArenaSpan<float> row{u.norm.offset + 128, 4}, result{u.norm.offset + 192, 4};
      const std::int32_t seven = 7;
      CHECK(c, "start", cudaMemcpy(c.touch(number.range()), &seven, 4, cudaMemcpyHostToDevice));
      CHECK(c, "start", cudaDeviceSynchronize()); // streams do not wait for the default one
      if (mode == "label")
        cross_entropy(c, 0, "loss", LogitRows{1, 4}, row, number, result);
      else
        embedding(c, 0, "look", EmbeddingShape{1, 2, 2}, row, number, result);
      c.synchronize();
    }
    if (planted && mode == "blas")
      CHECK(c, "product", CUBLAS_STATUS_NOT_SUPPORTED);
    if (planted && mode == "joined") {
      // Work on the first call's result must not start if there is none.
      const float before = 7;
      CHECK(c, "start", cudaMemcpy(c.base(), &before, 4, cudaMemcpyHostToDevice));
      CHECK(c, "start", cudaStreamSynchronize(nullptr));
      const auto failing = [&] {
        const ArenaSpan<float> a{1024, 4}, product{0, 4};
        gemm(c, 0, "product and kernel",
             Gemm{2, 2, 2, {1, 1, 1}, {3, 3, {}}, {3, 3, {}}, {3, 3, {}}}, reads(a, a),
             writes(product), [&](const float *, float *to, WorkStream stream) {
               return cudaMemsetAsync(to, 0, 4, stream);
             });
      };
      try {
        failing();
      } catch (const Error &error) {
        float after = 0;
        CHECK(c, "look", cudaStreamSynchronize(c.stream(0)));
        CHECK(c, "look", cudaMemcpy(&after, c.base(), 4, cudaMemcpyDeviceToHost));
        if (after != before)
          throw Error("the second call of an action was made though the first had failed");
        throw;
      }
    }
    if (planted && mode == "remote")
      asyncError = ncclRemoteError;
    if (s == 2 && mode == "remote")
      sleep(1000);
    step(c, u, planted && mode == "kind");
    c.synchronize();
    float expected = 0;
    for (std::size_t r = 0; r < ranks; ++r)
      expected += u.tile.held(r) ? float(r * u.tile.local) * float(ranks) : 0;
    if (*c.output(0) != expected)
      throw Error(format("got a norm of %g, expected %g", *c.output(0), expected));
  }
  CHECK(c, "end",
        cudaMemcpy(values.data(), c.base() + u.sum.offset, u.sum.bytes(), cudaMemcpyDeviceToHost));
  for (std::size_t i = 0; i < u.sum.count; ++i) {
    const float expected = i < u.tile.held(me) ? float(me * u.tile.local + i) * float(ranks) : 0;
    if (values[i] != expected)
      throw Error(format("element %zu got %g, expected %g", i, values[i], expected));
  }
  if (c.peakBytes() != u.norm.offset + 4)
    throw Error(format("peak got %zu bytes, expected %zu", c.peakBytes(), u.norm.offset + 4));
  c.world().barrier();
  if (job.rank() == 0)
    std::printf("done\n");
  return 0;
}

/// A walk that does not ask for the same inputs each time, or for more than there is room for.
int stage(Context &c, const Program &program, const std::string &mode) {
  struct Numbers final : InputSource {
    char next = 0;
    void load(int, void *target, std::size_t bytes) override { std::memset(target, ++next, bytes); }
  } numbers;
  const ExecutionPlan &walk = program.train;
  if (mode == "pin") {
    c.begin(walk, &numbers);
    c.staged(1);
    return 0;
  }
  // Two microbatches a run; those of the next are fetched while the device copies.
  char expected = 0;
  for (int run = 0; run < 4; ++run) {
    c.begin(walk, &numbers);
    for (int i = 0; i < 2; ++i)
      if (static_cast<const char *>(c.staged(0))[3] != ++expected)
        throw Error("got another batch than the next");
    if (run > 0)
      c.stageAhead();
  }
  c.begin(walk, &numbers);
  if (static_cast<const char *>(c.staged(0))[0] != ++expected || numbers.next != expected + 1)
    throw Error("got a batch that was not fetched ahead");
  c.staged(1);
  return 0;
}

/// Walks that are not joined: what the host fetches for later ones replaces no batch that is still
/// to be copied, however late the stream runs.
int stageBehind(Context &c, const ExecutionPlan &walk) {
  struct Numbers final : InputSource {
    float next = 0;
    void load(int, void *target, std::size_t bytes) override {
      std::fill_n(static_cast<float *>(target), bytes / sizeof(float), ++next);
    }
  } numbers;
  constexpr int runs = 8;
  for (int run = 0; run < runs; ++run) {
    c.begin(walk, &numbers);
    const ArenaSpan<float> place{static_cast<std::size_t>(run) * 64, 4};
    load_input(c, 1, "load", 0, place);
    if (run % 3) // else the next walk fetches its batches itself
      c.stageAhead();
  }
  c.synchronize();
  for (int run = 0; run < runs; ++run) {
    float got = 0;
    CHECK(c, "read", cudaMemcpy(&got, c.base() + run * 64, sizeof got, cudaMemcpyDeviceToHost));
    if (got != static_cast<float>(run + 1))
      throw Error(format("walk %d got batch %g", run + 1, got));
  }
  return 0;
}

/// What the host fetches ahead waits for no copy of the same walk, to which the stream has not
/// come: on a device that runs late the copy is still to be made.
int stageAhead(Context &c, const ExecutionPlan &walk) {
  struct Numbers final : InputSource {
    void load(int, void *target, std::size_t bytes) override { std::memset(target, 1, bytes); }
  } numbers;
  c.begin(walk, &numbers);
  load_input(c, kGather, "load", 0, ArenaSpan<float>{0, 4});
  c.stageAhead();
  const cudaError_t status = cudaStreamQuery(c.stream(kGather));
  if (status != cudaErrorNotReady)
    throw Error("the host waited for a copy of the walk before it fetched the batch of the next");
  c.synchronize();
  return 0;
}

/// Outputs of either stream, which are there when the host has waited for outputs, and for nothing
/// else.
int awaitOutputs(Context &c) {
  for (int run = 1; run <= 32; ++run) {
    const int stream = run % 2 ? kGather : kCompute;
    const ArenaSpan<float> value{static_cast<std::size_t>(stream) * 64, 1};
    CHECK(c, "fill", cudaMemsetAsync(c.touch(value.range()), run, value.bytes(), c.stream(stream)));
    output(c, stream, "output", 0, value);
    c.awaitOutputs();
    float expected;
    std::memset(&expected, run, sizeof expected);
    if (std::memcmp(c.output(0), &expected, sizeof expected) != 0)
      throw Error(format("output %d got %g, expected %g", run, *c.output(0), expected));
  }
  return 0;
}

/// A gather of more elements than those that NCCL gathers by copy engines on its own.
int gatherLarge(Context &c) {
  const std::size_t count = (std::size_t(8) << 20) + 64,
                    ranks = static_cast<std::size_t>(c.sizeOf(0)),
                    me = static_cast<std::size_t>(c.rankIn(0));
  const ArenaSpan<bool> piece{me * count, count}, whole{0, ranks * count};
  if (me != 0) // it is zero, and so is that of rank 0
    CHECK(c, "fill", cudaMemsetAsync(c.touch(piece.range()), 1, count, c.stream(kGather)));
  all_gather(c, kGather, "gather", 0, ShardLayout{1, count, 1, ranks * count}, piece, whole);
  c.synchronize();
  for (std::size_t at : {std::size_t(0), count - 1})
    for (std::size_t r = 0; r < ranks; ++r) {
      std::uint8_t got = 0;
      CHECK(c, "end", cudaMemcpy(&got, c.base() + r * count + at, 1, cudaMemcpyDeviceToHost));
      if (got != (r != 0))
        throw Error(format("byte %zu of rank %zu got %d", at, r, int(got)));
    }
  c.world().barrier();
  if (me == 0)
    std::printf("done\n");
  return 0;
}

/// More sums than are remembered, of which rank 1 comes to the first `joined` ones.
int many(Job &job, Context &c, int joined) {
  const ArenaSpan<float> value{0, 1};
  for (int i = 0; i < 300; ++i) {
    if (i == joined && job.rank() == 1)
      sleep(1000);
    all_reduce(c, kGather, "sum", 0, ReduceOp::Sum, value, value);
  }
  c.synchronize();
  return 0;
}

/// Rank 1 fails while the others have collectives of two communicators enqueued.
int failBehind(Job &job, Context &c) {
  const ArenaSpan<float> value{0, 1};
  for (bool isFirst : {true, false}) { // communicators are made at the first
    if (!isFirst && job.rank() == 1)
      throw Error("the planted fault");
    all_reduce(c, kGather, "one", 1, ReduceOp::Sum, value, value);
    all_reduce(c, kGather, "behind", 0, ReduceOp::Sum, value, value);
    if (!isFirst)
      sleep(1); // the monitor hears of it before the host waits
    c.synchronize();
  }
  return 0;
}

/// A workspace grows while kernels that use it have not run.
int grow(Context &c) {
  StreamWorkspace workspace;
  constexpr std::size_t kCount = 64, kTimes = 5;
  for (std::size_t i = 0; i < kTimes; ++i) {
    const ArenaSpan<float> target{i * kCount * sizeof(float), kCount};
    std::byte *memory = nullptr;
    CHECK(c, "grow", workspace.reserve(target.bytes() << i, memory));
    CHECK(c, "fill", cudaMemsetAsync(memory, int(i + 1), target.bytes(), c.stream(kCompute)));
    CHECK(c, "copy",
          cudaMemcpyAsync(c.touch(target.range()), memory, target.bytes(), cudaMemcpyDeviceToDevice,
                          c.stream(kCompute)));
  }
  c.synchronize();
  std::vector<char> got(kTimes * kCount * sizeof(float));
  CHECK(c, "read", cudaMemcpy(got.data(), c.base(), got.size(), cudaMemcpyDeviceToHost));
  for (std::size_t i = 0; i < got.size(); ++i)
    if (got[i] != char(i / (kCount * sizeof(float)) + 1))
      throw Error(format("byte %zu got %d", i, got[i]));
  return 0;
}

int body(Job &job, Program program, const std::string &asked) {
  const bool even = asked.rfind("even-", 0) == 0;
  const std::string mode = even ? asked.substr(5) : asked;
  if (cudaError_t status =
          cudaSetDevice(job.options().transport == Transport::Nccl ? job.rank() : 0))
    throw Error(cudaGetErrorString(status));
#ifdef FSDP_CUDA_EMULATOR
  if (mode == "join")
    staysAway = true;
  rankOfThread = job.rank();
#endif
  const bool hasRoles = mode.rfind("roles", 0) == 0;
  const int role = hasRoles ? job.mesh().coordinate(job.rank(), 0) : 0;
  const std::vector<CommunicatorSpec> ofRole = communicatorsOfRole(role);
  if (hasRoles) {
    program.communicators = {ofRole.data(), ofRole.size()};
    program.roleAxes = {0};
    program.arenaBytes = arenaOfRole(role);
  }
  Context c(job, program);
  const std::unique_ptr<SegmentGraphs> segmentGraphs = SegmentGraphs::make(c);
  if (hasRoles)
    return roles(c, mode);
  if (mode == "graph-behind")
    return runGraphsBehind(c, segmentGraphs.get());
  if (mode.rfind("graph", 0) == 0)
    return runGraphs(c, segmentGraphs.get(), mode);
  if (mode == "inputs" || mode == "pin")
    return stage(c, program, mode);
  if (mode == "describe") {
    if (job.rank() == 0)
      std::printf("%s\n", c.describeCollectives().c_str());
    c.world().barrier();
    return 0;
  }
  if (mode == "memory") {
    steps(job, c, "steps", even);
    launch(c, kCompute, "workspace", reads(), writes(), [&](WorkStream stream) { // not libraries'
      std::byte *bytes = nullptr;
      return stream.workspace->reserve(std::size_t(64) << 20, bytes);
    });
    if (job.rank() == 0)
      std::printf("libraries: %zu MiB\n", c.libraryBytes().value_or(0) >> 20);
    c.world().barrier();
    return 0;
  }
  if (mode == "transfers")
    return transfers(c);
  if (mode == "neighbors" || mode == "neighbors-ahead")
    return neighbors(c, mode == "neighbors-ahead");
  if (mode == "late-transfer" || mode == "sender-ends")
    return lateTransfer(c, mode == "sender-ends");
  if (mode == "grow")
    return grow(c);
  if (mode == "fail-behind")
    return failBehind(job, c);
  if (mode == "unfinished") {
    CHECK(c, "fill", cudaMemsetAsync(c.base(), 1, 4096, c.stream(kCompute)));
    return 0;
  }
  if (mode == "behind")
    return stageBehind(c, program.train) + stageBehind(c, program.evaluate);
  if (mode == "ahead")
    return stageAhead(c, program.train) + stageAhead(c, program.evaluate);
  if (mode == "outputs")
    return awaitOutputs(c);
  if (mode == "large-gather")
    return gatherLarge(c);
  if (mode == "many" || mode == "split")
    return many(job, c, mode == "many");
  if (mode != "conformance")
    return steps(job, c, mode, even);
  DeviceJob device(job, c);
  const std::size_t compared = runConformance(device);
  c.world().barrier();
  if (job.rank() == 0)
    std::printf("compared %zu\n", compared);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: cuda-ranks MESH MODE nccl|loopback\n");
    return kExitBadCommandLine;
  }
  const MeshText text(argv[1]);
  JobOptions options;
  options.transport = std::string(argv[3]) == "nccl" ? Transport::Nccl : Transport::Loopback;
  options.communicators = text.communicators();
  const char *timeout = std::getenv("FSDP_TIMEOUT");
  options.timeoutSeconds = timeout ? std::atof(timeout) : 60;
  Program program{};
  program.streams = kStreams;
  program.communicators = options.communicators;
  program.events = 2;
  program.arenaBytes = kArena;
  static constexpr Input inputs[] = {
      {"x", {4}, 0, ArenaSpan<float>{0, 4}, 1, 1, {}, 0},
      {"huge", {4}, 0, ArenaSpan<float>{0, std::size_t(1) << 50}, 1, 1, {}, 0}};
  program.inputs = inputs;
  const std::string mode = argv[2];
  if (mode == "neighbors" || mode == "neighbors-ahead") {
    program.streams = kWays;
    program.communicators = options.communicators = kTransfers;
  }
  if (mode == "graph-behind") {
    program.segments = graphs::kBehind;
    program.train = {"train", graphs::kBehindRuns};
  } else if (mode.rfind("graph", 0) == 0) {
    program.segments = graphs::kSegments;
    program.train = {"train", graphs::kRuns, graphs::kOutputs};
  }
  const std::vector<CommunicatorSpec> ofFirst = communicatorsOfRole(0);
  if (mode.rfind("roles", 0) == 0) {
    program.streams = kRoleStreams;
    program.events = 4;
    options.communicators = {ofFirst.data(), ofFirst.size()};
  }
  try {
    if (mode == "count")
      target::requireDevices(options, Mesh(text.axes(), text.order()).size());
    if (mode == "name")
      target::jobOptions(program, argv[3]);
  } catch (const Error &error) {
    return report(error);
  }
  if (mode == "count" || mode == "name")
    return kExitDone;

  // As runRanks does for loopback, with either way to talk.
  const Mesh mesh(text.axes(), text.order());
  const SharedSegment::Layout layout = layoutOf(mesh, options);
  SharedSegment segment(Mapping::anonymous(SharedSegment::bytesFor(layout)), layout);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < mesh.size(); ++rank)
    ranks.emplace_back([&, rank] {
      JobOptions own = options;
      own.localRank = rank;
      SharedJob job(mesh, own, rank, segment);
      runRank(job, segment, rank, {}, [&](Job &started) { return body(started, program, mode); });
    });
  for (std::thread &rank : ranks)
    rank.join();
  return segment.failure().raised() ? segment.failure().error().status() : kExitDone;
}
