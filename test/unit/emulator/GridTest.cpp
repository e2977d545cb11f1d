//===- GridTest.cpp - kernels under the emulator ---------------------------------===//

#include "Emulation.h"

#include "cuda_bf16.h"
#include "runtime/device/cuda/KernelLaunch.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

using testing::Each;
using testing::HasSubstr;

namespace {

class Grid : public Emulation {};

__global__ void numberThreads(int *out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] += int(block * 1000 + thread) + 1;
}

TEST_F(Grid, RunsEveryThreadOnceWithFewSwitches) {
  Buffer<int> out(6 * 24);
  OK(cudaMemset(out.data, 0, 6 * 24 * sizeof(int)));
  const std::uint64_t before = emulator::statistics().switches;
  OK(launch(numberThreads, dim3(3, 2), dim3(4, 3, 2), 0, nullptr, out.data));
  const std::vector<int> values = out.values();
  for (int i = 0; i < 6 * 24; ++i)
    EXPECT_EQ(values[i], i / 24 * 1000 + i % 24 + 1);
  EXPECT_EQ(emulator::statistics().switches - before, 6u);
}

/// The words behind thread, device and stream of each line of a file of `calls=FILE`.
std::vector<std::string> callsIn(const std::string &path) {
  std::vector<std::string> calls;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::size_t at = 0;
    for (int word = 0; word < 3; ++word)
      at = line.find('\t', at) + 1;
    calls.push_back(line.substr(at));
  }
  return calls;
}

TEST_F(Grid, RecordsCallsWithoutPerformingThem) {
  const std::string file = testing::TempDir() + "recorded-calls";
  EXPECT_EXIT(
      {
        emulator::settings().calls = file;
        int *out = nullptr;
        cudaEvent_t event = nullptr;
        const bool enqueued = !cudaMalloc(reinterpret_cast<void **>(&out), 144 * sizeof(int)) &&
                              !launch(numberThreads, dim3(3, 2), dim3(4, 3, 2), 0, nullptr, out) &&
                              !cudaMemset(out, 1, 144 * sizeof(int)) && !cudaEventCreate(&event) &&
                              !cudaEventRecord(event, nullptr) && !cudaEventSynchronize(event);
        std::exit(enqueued && std::count(out, out + 144, 0) == 144 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  const std::vector<std::string> calls = callsIn(file);
  ASSERT_EQ(calls.size(), 4u);
  EXPECT_THAT(calls[0], testing::MatchesRegex("a kernel\t.*numberThreads.*\t6\t24\t0"));
  EXPECT_EQ(calls[1], "a memset");
  EXPECT_THAT(calls[2], testing::StartsWith("a time\t"));
  EXPECT_EQ(calls[3], "cudaEventSynchronize" + calls[2].substr(calls[2].find('\t')));
}

/// Sum of a block's threads: warps by shuffles, then the first warp over the others' sums.
__device__ float blockSum(float x) {
  __shared__ float ofWarp[32];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int bits = 16; bits; bits /= 2)
    x += __shfl_xor_sync(0xffffffffu, x, bits);
  if (lane == 0)
    ofWarp[warp] = x;
  __syncthreads();
  x = lane < blockDim.x / 32 ? ofWarp[lane] : 0.0f;
  for (int bits = 16; bits; bits /= 2)
    x += __shfl_xor_sync(0xffffffffu, x, bits);
  __syncthreads();
  return x;
}

__global__ void sumRows(const float *in, float *out, int columns) {
  float sum = 0;
  for (int i = int(threadIdx.x); i < columns; i += int(blockDim.x))
    sum += in[blockIdx.x * unsigned(columns) + unsigned(i)];
  sum = blockSum(sum);
  if (threadIdx.x == 0)
    out[blockIdx.x] = sum;
}

TEST_F(Grid, ReducesThroughShufflesAndSharedMemory) {
  for (unsigned threads : {32u, 256u, 1024u})
    for (const char *words : {"seed=1", "shuffle,seed=2", "shuffle,seed=3"}) {
      emulator::configure(words);
      std::vector<float> host(7 * 1000);
      for (std::size_t i = 0; i < host.size(); ++i)
        host[i] = float(i % 13);
      Buffer<float> in(host.size()), out(7);
      OK(cudaMemcpy(in.data, host.data(), host.size() * 4, cudaMemcpyHostToDevice));
      OK(launch(sumRows, dim3(7), dim3(threads), 0, nullptr, static_cast<const float *>(in.data),
                out.data, 1000));
      for (int row = 0; row < 7; ++row) {
        float expected = 0;
        for (int i = 0; i < 1000; ++i)
          expected += host[std::size_t(row * 1000 + i)];
        EXPECT_EQ(out.values()[std::size_t(row)], expected) << threads << " " << words;
      }
    }
}

// Memory that one warp reads in a round, another may write in the next: a barrier is missing. This
// is visible only if that warp is nine synchronizations ahead.
__global__ void overtake(int *out) {
  __shared__ int round;
  int seen = 0;
  for (int r = 0; r < 2; ++r) {
    if (threadIdx.x == 0)
      round = r;
    __syncthreads();
    __syncwarp();
    seen += round == r;
    for (int i = 0; i < 8; ++i)
      __syncwarp();
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = seen;
}

TEST_F(Grid, WarpsRunAheadWhereABarrierIsMissing) {
  emulator::configure("shuffle,seed=5");
  Buffer<int> out(32 * 64);
  OK(launch(overtake, dim3(32), dim3(64), 0, nullptr, out.data));
  int overtaken = 0;
  for (int seen : out.values())
    overtaken += seen != 2;
  EXPECT_GT(overtaken, 0);
}

__global__ void shuffles(int *out) {
  const int lane = int(threadIdx.x);
  int *mine = out + lane * 8;
  mine[0] = __shfl_sync(0xffffffffu, lane, 5);
  mine[1] = __shfl_up_sync(0xffffffffu, lane, 3);
  mine[2] = __shfl_down_sync(0xffffffffu, lane, 3);
  mine[3] = __shfl_xor_sync(0xffffffffu, lane, 1);
  mine[4] = __shfl_down_sync(0xffffffffu, lane, 1, 8);
  mine[5] = int(__ballot_sync(0xffffffffu, lane % 3 == 0));
  if (lane < 16)
    mine[6] = __shfl_xor_sync(0xffffu, lane, 8);
  else
    mine[6] = __shfl_xor_sync(0xffff0000u, lane, 4);
  mine[7] = __syncthreads_count(lane > 3);
}

TEST_F(Grid, WarpFunctionsAsDocumented) {
  for (const char *words : {"", "shuffle,seed=5"}) {
    emulator::configure(words);
    Buffer<int> out(32 * 8);
    OK(launch(shuffles, dim3(1), dim3(32), 0, nullptr, out.data));
    const std::vector<int> v = out.values();
    for (int lane = 0; lane < 32; ++lane) {
      const int *mine = v.data() + lane * 8;
      EXPECT_EQ(mine[0], 5);
      EXPECT_EQ(mine[1], lane < 3 ? lane : lane - 3);
      EXPECT_EQ(mine[2], lane > 28 ? lane : lane + 3);
      EXPECT_EQ(mine[3], lane ^ 1);
      EXPECT_EQ(mine[4], lane % 8 == 7 ? lane : lane + 1);
      EXPECT_EQ(unsigned(mine[5]), 0x49249249u);
      EXPECT_EQ(mine[6], lane < 16 ? lane ^ 8 : lane ^ 4);
      EXPECT_EQ(mine[7], 28);
    }
  }
}

__global__ void readUnwrittenShared(float *out) {
  __shared__ float fixed[8];
  FSDP_DYNAMIC_SHARED(float, dynamic);
  out[2 * blockIdx.x] = fixed[threadIdx.x];
  out[2 * blockIdx.x + 1] = dynamic[threadIdx.x];
  fixed[threadIdx.x] = dynamic[threadIdx.x] = 1;
}

TEST_F(Grid, SharedMemoryIsPoisonedBeforeEachBlock) {
  Buffer<float> out(4);
  OK(launch(readUnwrittenShared, dim3(2), dim3(1), 32, nullptr, out.data));
  for (float value : out.values())
    EXPECT_TRUE(std::isnan(value));
}

/// Each thread reads its neighbour's value; without a barrier the result depends on the order.
__global__ void rotate(int *out, bool meet) {
  __shared__ int values[64];
  values[threadIdx.x] = int(threadIdx.x);
  if (meet)
    __syncthreads();
  out[threadIdx.x] = values[(threadIdx.x + 1) % 64];
}

TEST_F(Grid, APlantedRaceChangesResults) {
  Buffer<int> out(64);
  std::vector<std::vector<int>> racy, met;
  for (const char *words : {"", "shuffle,seed=1", "shuffle,seed=2"}) {
    emulator::configure(words);
    OK(launch(rotate, dim3(1), dim3(64), 0, nullptr, out.data, false));
    racy.push_back(out.values());
    OK(launch(rotate, dim3(1), dim3(64), 0, nullptr, out.data, true));
    met.push_back(out.values());
  }
  EXPECT_NE(racy[0], racy[1]);
  EXPECT_NE(racy[1], racy[2]);
  EXPECT_EQ(met[0], met[1]);
  EXPECT_EQ(met[1], met[2]);
  EXPECT_THAT(met[0][63], 0);
}

__global__ void takeTickets(unsigned *next, unsigned *out) {
  if (threadIdx.x == 0)
    out[blockIdx.x + gridDim.x * blockIdx.y] = atomicAdd(next, 1u);
}

TEST_F(Grid, BlocksRunInOrderOrShuffled) {
  constexpr unsigned blocks = 5 * 4;
  const auto orderFor = [](const char *words) {
    emulator::configure(words);
    Buffer<unsigned> next(1), out(blocks);
    EXPECT_EQ(cudaMemset(next.data, 0, 4), cudaSuccess);
    EXPECT_EQ(launch(takeTickets, dim3(5, 4), dim3(32), 0, nullptr, next.data, out.data),
              cudaSuccess);
    return out.values();
  };
  const std::vector<unsigned> plain = orderFor(""), first = orderFor("shuffle,seed=1"),
                              second = orderFor("shuffle,seed=2");
  std::vector<unsigned> ascending(blocks);
  for (unsigned i = 0; i < blocks; ++i)
    ascending[i] = i;
  EXPECT_EQ(plain, ascending);
  EXPECT_NE(first, ascending);
  EXPECT_NE(first, second);
  EXPECT_THAT(first, testing::UnorderedElementsAreArray(ascending));
}

/// Copies three times four numbers, in two groups, and reads the first of each before and after the
/// wait for all groups but `pending`.
__global__ void copyInGroups(const int *in, int *out, unsigned pending) {
  FSDP_DYNAMIC_SHARED(int, tile);
  for (int i = 0; i < 12; ++i)
    tile[i] = 7;
  ::emulator::copyInBackground(tile, in, 16, 16);
  ::emulator::copyInBackground(tile + 4, in + 4, 16, 0);
  ::emulator::commitCopies();
  ::emulator::copyInBackground(tile + 8, in + 8, 16, 16);
  ::emulator::commitCopies();
  for (int i = 0; i < 3; ++i)
    out[i] = tile[4 * i];
  ::emulator::waitForCopies(pending);
  for (int i = 0; i < 3; ++i)
    out[3 + i] = tile[4 * i];
  ::emulator::waitForCopies(0);
}

// The previous contents are gone when a copy has begun; the copied data is available after the
// wait.
TEST_F(Grid, CopiesInTheBackgroundArriveAtTheirWait) {
  const std::vector<int> sent{10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21};
  Buffer<int> in(12), out(6);
  OK(cudaMemcpy(in.data, sent.data(), 48, cudaMemcpyHostToDevice));
  const auto seen = [&](unsigned pending) {
    EXPECT_EQ(launch(copyInGroups, dim3(1), dim3(1), 64, nullptr, static_cast<const int *>(in.data),
                     out.data, pending),
              cudaSuccess);
    return out.values();
  };
  EXPECT_THAT(seen(2), testing::ElementsAre(-1, -1, -1, -1, -1, -1));
  EXPECT_THAT(seen(1), testing::ElementsAre(-1, -1, -1, 10, 0, -1));
  EXPECT_THAT(seen(0), testing::ElementsAre(-1, -1, -1, 10, 0, 18));
}

enum class Copy { Waited, NotWaited, NotCommitted, ToGlobal, Misaligned };
__global__ void copyOnce(int *in, Copy how) {
  FSDP_DYNAMIC_SHARED(int, tile);
  ::emulator::copyInBackground(how == Copy::ToGlobal ? in + 4 : tile,
                               in + (how == Copy::Misaligned), 16, 16);
  if (how != Copy::NotCommitted)
    ::emulator::commitCopies();
  if (how != Copy::NotWaited)
    ::emulator::waitForCopies(0);
}

__global__ void divergentBarrier(int) {
  if (threadIdx.x % 2)
    __syncthreads();
}
__global__ void twoBarriers(int) {
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
}
__global__ void shuffleAfterReturn(int *out) {
  if (threadIdx.x == 3)
    return;
  *out = __shfl_xor_sync(0xffffffffu, int(threadIdx.x), 1);
}
__global__ void shuffleFromOutside(int *out) {
  if (threadIdx.x < 16)
    *out = __shfl_sync(0xffffu, int(threadIdx.x), 20);
}
__global__ void shuffleWithoutMyself(int *out) { *out = __shfl_sync(0xfffeu, 1, 1); }
__global__ void meetingsCross(int) {
  if (threadIdx.x < 8)
    __syncwarp(0xffffffffu);
  else
    __syncthreads();
}

template <class... A>
std::string failureOf(void (*kernel)(A...), unsigned threads, A... arguments) {
  EXPECT_EQ(launch(kernel, dim3(2), dim3(threads), 0, nullptr, arguments...),
            cudaErrorLaunchFailure);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure); // it sticks
  EXPECT_EQ(cudaGetErrorString(cudaErrorLaunchFailure), emulator::failure());
  const std::string text = emulator::failure();
  emulator::reset();
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return text;
}

TEST_F(Grid, WrongCopiesInTheBackgroundAreNamed) {
  Buffer<int> in(8);
  OK(launch(copyOnce, dim3(1), dim3(1), 64, nullptr, in.data, Copy::Waited));
  const auto failureBy = [&](Copy how) {
    EXPECT_EQ(launch(copyOnce, dim3(1), dim3(1), 64, nullptr, in.data, how),
              cudaErrorLaunchFailure);
    const std::string text = emulator::failure();
    emulator::reset();
    return text;
  };
  const auto notWaited = HasSubstr("thread (0, 0, 0): returned while 1 of its copies in the "
                                   "background have not been waited for");
  EXPECT_THAT(failureBy(Copy::NotWaited), notWaited);
  EXPECT_THAT(failureBy(Copy::NotCommitted), notWaited);
  EXPECT_THAT(failureBy(Copy::ToGlobal), HasSubstr("expected an address in shared memory"));
  EXPECT_THAT(failureBy(Copy::Misaligned), HasSubstr("expected a multiple of 16"));
  OK(launch(copyOnce, dim3(1), dim3(1), 64, nullptr, in.data, Copy::Waited));
}

TEST_F(Grid, DivergentMeetingsAreNamed) {
  for (const char *words : {"", "shuffle,seed=9"}) {
    emulator::configure(words);
    Buffer<int> out(1);
    EXPECT_THAT(failureOf(divergentBarrier, 64, 0),
                testing::AllOf(HasSubstr(", 0, 0): the threads of the block do not meet"),
                               HasSubstr("thread (0, 0, 0) has returned"),
                               HasSubstr("thread (1, 0, 0) waits in __syncthreads at "),
                               HasSubstr("GridTest.cpp:")));
    EXPECT_THAT(failureOf(twoBarriers, 64, 0), HasSubstr("thread (32, 0, 0) waits in"));
    EXPECT_THAT(failureOf(shuffleAfterReturn, 32, out.data), HasSubstr("returned"));
    EXPECT_THAT(failureOf(shuffleFromOutside, 32, out.data),
                HasSubstr("reads the lane 20, which takes no part"));
    EXPECT_THAT(failureOf(shuffleWithoutMyself, 32, out.data),
                HasSubstr("the mask 0xfffe lacks the calling lane "));
    EXPECT_THAT(failureOf(meetingsCross, 32, 0), HasSubstr("for the lanes 0xffffffff"));
  }
}

__global__ void nothing(int) {}

// The kernels of this program do not report their accesses.
TEST_F(Grid, RacesNeedInstrumentedKernels) {
  emulator::configure("races");
  EXPECT_EQ(launch(nothing, dim3(1), dim3(1), 0, nullptr, 0), cudaErrorLaunchFailure);
  EXPECT_THAT(emulator::failure(), HasSubstr("FSDP_EMULATOR has `races`, but the kernels of this "
                                             "program do not tell their accesses"));
}

TEST_F(Grid, LimitsOfALaunch) {
  const auto refused = [](dim3 grid, dim3 block, std::size_t shared) {
    EXPECT_EQ(launch(nothing, grid, block, shared, nullptr, 0), cudaErrorInvalidConfiguration);
    const std::string text = cudaGetErrorString(cudaErrorInvalidConfiguration);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    return text;
  };
  EXPECT_THAT(refused(dim3(1), dim3(1025), 0), HasSubstr("a block of (1025, 1, 1)"));
  EXPECT_THAT(refused(dim3(1), dim3(1, 1, 65), 0), HasSubstr("at most 64 along z"));
  EXPECT_THAT(refused(dim3(0), dim3(32), 0), HasSubstr("a grid of (0, 1, 1)"));
  EXPECT_THAT(refused(dim3(1, 65536), dim3(32), 0), HasSubstr("a grid of (1, 65536, 1)"));
}

__global__ void staticShared(float *out) {
  __shared__ float fixed[256];
  fixed[threadIdx.x] = 1;
  __syncthreads();
  *out = fixed[(threadIdx.x + 1) % blockDim.x];
}

__global__ void fillDynamic(int count) {
  FSDP_DYNAMIC_SHARED(float, values);
  for (int i = int(threadIdx.x); i < count; i += int(blockDim.x))
    values[i] = 1;
}
#ifdef __clang__ // gcc has no gaps
__global__ void fillFixed(int *out) {
  __shared__ int values[32];
  values[threadIdx.x] = int(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = values[threadIdx.x];
}
TEST_F(Grid, AWriteBehindASharedVariableIsFoundAtTheEnd) {
  Buffer<int> out(64);
  OK(launch(fillFixed, dim3(2), dim3(32), 0, nullptr, out.data));
  EXPECT_EQ(emulator::failure(), "");
  (void)launch(fillFixed, dim3(2), dim3(33), 0, nullptr, out.data);
  EXPECT_THAT(emulator::failure(), HasSubstr("fillFixed: wrote behind "));
  EXPECT_THAT(emulator::failure(), HasSubstr("fillFixed(int*)::values"));
}
#endif
TEST_F(Grid, AccessesBehindDynamicSharedMemoryAreFound) {
  OK(launch(fillDynamic, dim3(1), dim3(32), 4096, nullptr, 1024));
  OK(launch(fillDynamic, dim3(1), dim3(32), 1000, nullptr, 250));
  EXPECT_EQ(emulator::failure(), "");
  (void)launch(fillDynamic, dim3(1), dim3(32), 1000, nullptr, 251);
  EXPECT_THAT(emulator::failure(),
              HasSubstr("fillDynamic: wrote behind its 1000 bytes of dynamic shared memory"));
  emulator::reset();
  Buffer<int> any(1); // with it the handler of signals
  EXPECT_DEATH((void)launch(fillDynamic, dim3(1), dim3(32), 1024, nullptr, 4096),
               "cuda emulator: kernel at .*, block \\(0, 0, 0\\), thread \\([0-9]+, 0, 0\\)");
}

// Static and dynamic shared memory of a block have 48 KiB together, and 227 KiB on request.
TEST_F(Grid, LimitsOfSharedMemory) {
  Buffer<float> out(1);
  const auto refused = [](auto kernel, std::size_t shared, auto argument) {
    EXPECT_EQ(launch(kernel, dim3(1), dim3(32), shared, nullptr, argument), cudaErrorInvalidValue);
    return std::string(cudaGetErrorString(cudaErrorInvalidValue));
  };
  EXPECT_THAT(refused(nothing, 49153, 0),
              HasSubstr("49153 bytes of dynamic shared memory beside 0 of static: "
                        "expected at most 49152"));
  OK(launch(staticShared, dim3(1), dim3(32), 48 * 1024 - 1024, nullptr, out.data));
  EXPECT_THAT(
      refused(staticShared, 48 * 1024 - 1023, out.data),
      HasSubstr(
          "staticShared: 48129 bytes of dynamic shared memory beside 1024 of static: expected at "
          "most 48128, or more (to 232448 together)"));
  cudaFuncAttributes attributes;
  OK(cudaFuncGetAttributes(&attributes, staticShared));
  EXPECT_EQ(attributes.sharedSizeBytes, 1024u);
  EXPECT_EQ(attributes.maxDynamicSharedSizeBytes, 48 * 1024 - 1024);
  OK(cudaFuncSetAttribute(staticShared, cudaFuncAttributeMaxDynamicSharedMemorySize, 48 * 1024));
  OK(launch(staticShared, dim3(1), dim3(32), 48 * 1024, nullptr, out.data));
  EXPECT_EQ(cudaFuncSetAttribute(staticShared, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 226 * 1024 + 1),
            cudaErrorInvalidValue);
  OK(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024));
  OK(launch(nothing, dim3(1), dim3(32), 227 * 1024, nullptr, 0));
  EXPECT_THAT(refused(nothing, 227 * 1024 + 1, 0), HasSubstr("expected at most 232448"));
  EXPECT_EQ(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 232449),
            cudaErrorInvalidValue);
}

__global__ void dynamicShared(float *out) { *out = 1; }

// The runtime requests a kernel's attributes when a launch needs more than the previous ones.
TEST_F(Grid, AttributesOfAKernelAreRequestedOnce) {
  Buffer<float> out(1);
  const auto asked = [&](std::size_t shared) {
    const std::uint64_t before = emulator::statistics().attributes;
    EXPECT_EQ(fsdp::rt::device::launchKernel(dynamicShared, dim3(1), 32, shared, nullptr, out.data),
              cudaSuccess);
    return emulator::statistics().attributes - before;
  };
  EXPECT_EQ(asked(0), 0u);
  EXPECT_EQ(asked(1024), 1u);
  EXPECT_EQ(asked(1024), 0u);
  EXPECT_EQ(asked(100 * 1024), 1u);
  EXPECT_EQ(asked(2048), 0u);
  EXPECT_EQ(asked(100 * 1024), 0u);
}

__global__ void writeAt(float *p) { *p = 1; }
TEST_F(Grid, DeathOutsideOfMemoryIsNamed) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  Buffer<float> out(64);
  EXPECT_DEATH((void)launch(writeAt, dim3(1), dim3(1), 0, nullptr, out.data + 64),
               "block \\(0, 0, 0\\), thread \\(0, 0, 0\\): access outside of any allocation");
}

__global__ void copyOne(const float *from, float *to) { *to = *from; }
TEST_F(Grid, DeathOfAHostThatTouchesTheDevicesMemory) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  emulator::configure("guard");
  Buffer<float> a(64), b(64);
  const std::vector<float> sent(64, 3.0f);
  OK(cudaMemcpy(a.data, sent.data(), 256, cudaMemcpyHostToDevice));
  OK(launch(copyOne, dim3(1), dim3(1), 0, nullptr, static_cast<const float *>(a.data + 5),
            b.data + 6));
  EXPECT_EQ(b.values()[6], 3.0f);
  EXPECT_DEATH(static_cast<volatile float *>(b.data)[6] = 1,
               "the host touches byte 24 of an allocation of 256 bytes of device memory");
  EXPECT_DEATH(static_cast<void>(static_cast<volatile float *>(a.data)[63]), "touches byte 252");
}

TEST_F(Grid, BfloatRoundsToNearestEven) {
  EXPECT_EQ(__bfloat16_as_ushort(__float2bfloat16(1.0f)), 0x3f80);
  EXPECT_EQ(__bfloat16_as_ushort(__float2bfloat16(1.00390625f)), 0x3f80); // a tie, down to even
  EXPECT_EQ(__bfloat16_as_ushort(__float2bfloat16(1.01171875f)), 0x3f82); // a tie, up to even
  EXPECT_EQ(__bfloat16_as_ushort(__float2bfloat16(1.00391f)), 0x3f81);
  EXPECT_EQ(__bfloat16_as_ushort(__float2bfloat16(3.4e38f)), 0x7f80);
  EXPECT_EQ(__bfloat16_as_ushort(__float2bfloat16(NAN)), 0x7fff);
  EXPECT_EQ(__bfloat162float(__ushort_as_bfloat16(0xc040)), -3.0f);
}

} // namespace
