//===- RacesTest.cpp - accesses that nothing orders --------------------------------===//
//
// For each kind of order a kernel with it, and the same kernel without, which must fail with both
// places. The whole program reports its accesses.
//
//===----------------------------------------------------------------------===//

#include "Emulation.h"

#include <vector>

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

class Races : public Emulation {
protected:
  Races() { emulator::configure("races"); }
};

/// The error of the launch, or "". The same in order and for two random orders.
template <class... P, class... A>
std::string failureOf(void (*kernel)(P...), unsigned blocks, unsigned threads, A... arguments) {
  std::string first;
  for (const char *words : {"inline", "shuffle,seed=1", "shuffle,seed=2"}) {
    emulator::settings().shuffle = false;
    emulator::configure(words);
    const cudaError_t status =
        launch(kernel, dim3(blocks), dim3(threads), 256, nullptr, arguments...);
    const std::string text = emulator::failure();
    EXPECT_EQ(status, text.empty() ? cudaSuccess : cudaErrorLaunchFailure);
    emulator::reset();
    if (std::string(words) == "inline")
      first = text;
    else
      EXPECT_EQ(text.empty(), first.empty()) << words << ": " << text << first;
  }
  return first;
}

// Shared memory, in a block.

__global__ void rotate(int *out, bool waits) {
  __shared__ int values[64];
  values[threadIdx.x] = 1;
  if (waits)
    __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = values[(threadIdx.x + 1) % 64];
}

TEST_F(Races, AReadOfSharedMemoryNeedsABarrierAfterTheWrite) {
  Buffer<int> out(128);
  EXPECT_THAT(failureOf(rotate, 2, 64, out.data, true), IsEmpty());
  const std::string text = failureOf(rotate, 2, 64, out.data, false);
  EXPECT_THAT(text, AllOf(HasSubstr("rotate"), HasSubstr("block (0, 0, 0): thread (1, 0, 0) "),
                          HasSubstr("4 bytes at byte "), HasSubstr("of the static shared memory"),
                          HasSubstr("no barrier between them")));
  // Both places, by the lines of the kernel above.
  EXPECT_THAT(text, testing::ContainsRegex("reads .*RacesTest.cpp:[0-9]+.*wrote "
                                           ".RacesTest.cpp:[0-9]+|writes .*RacesTest.cpp:[0-9]+.*"
                                           "read .RacesTest.cpp:[0-9]+"));
}

__global__ void beyond(int *out, unsigned fixed, unsigned dynamic, bool reads) {
  __shared__ int first[8];
  __shared__ int second[8];
  FSDP_DYNAMIC_SHARED(int, values);
  if (threadIdx.x < 8)
    first[threadIdx.x] = second[threadIdx.x] = values[threadIdx.x] = 1;
  __syncthreads();
  int *element = fixed > 99 ? second - (fixed - 99) : fixed ? first + fixed : values + dynamic;
  if (threadIdx.x == 0 && reads)
    out[0] = *element + second[0];
  else if (threadIdx.x == 0)
    *element = 1;
}

// The dynamic part has 256 bytes.
TEST_F(Races, SharedMemoryOutsideOfAVariableIsNotAccessed) {
  Buffer<int> out(1);
  for (bool reads : {false, true}) {
    EXPECT_THAT(failureOf(beyond, 1, 32, out.data, 7u, 0u, reads), IsEmpty());
    EXPECT_THAT(failureOf(beyond, 1, 32, out.data, 0u, 7u, reads), IsEmpty());
    // From 100 on: elements before the second variable.
    for (unsigned index : {8u, 9u, 39u, 100u, 131u})
      EXPECT_THAT(failureOf(beyond, 1, 32, out.data, index, 0u, reads),
                  AllOf(HasSubstr(reads ? "reads 4 bytes behind " : "writes 4 bytes behind "),
                        HasSubstr("::first or before "), HasSubstr("::second (RacesTest.cpp:")));
    for (unsigned index : {64u, 65u, 1000u, 5000u, 200000u})
      EXPECT_THAT(failureOf(beyond, 1, 32, out.data, 0u, index, reads),
                  HasSubstr("byte " + std::to_string(4 * index) +
                            " of the dynamic shared memory, of which the launch asked for 256"));
  }
}

__global__ void twoRounds(int *out, bool waits) {
  FSDP_DYNAMIC_SHARED(int, value);
  int sum = 0;
  for (int round = 0; round < 2; ++round) {
    if (threadIdx.x == 0)
      *value = round;
    __syncthreads();
    sum += *value;
    if (waits)
      __syncthreads();
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

TEST_F(Races, AWriteNeedsABarrierAfterAllReads) {
  Buffer<int> out(128);
  EXPECT_THAT(failureOf(twoRounds, 2, 64, out.data, true), IsEmpty());
  EXPECT_THAT(failureOf(twoRounds, 2, 64, out.data, false),
              AllOf(HasSubstr("byte 0 of the dynamic shared memory"),
                    HasSubstr("no barrier between them")));
}

__global__ void writeOne(int *out, bool everybody) {
  __shared__ int value;
  if (everybody || threadIdx.x == 5)
    value = 1;
  __syncthreads();
  out[threadIdx.x] = value;
}

TEST_F(Races, TwoThreadsMayNotWriteTheSame) {
  Buffer<int> out(32);
  EXPECT_THAT(failureOf(writeOne, 1, 32, out.data, false), IsEmpty());
  EXPECT_THAT(failureOf(writeOne, 1, 32, out.data, true),
              AllOf(HasSubstr("writes"), HasSubstr("wrote")));
}

/// Neighbours of each size are not the same memory.
template <class T> __global__ void writeNeighbours(T *out, unsigned step) {
  __shared__ T values[64];
  values[threadIdx.x] = 1;
  out[threadIdx.x / step] = 1;
}

TEST_F(Races, BytesAreDistinguished) {
  Buffer<char> bytes(64);
  Buffer<short> halves(64);
  EXPECT_THAT(failureOf(writeNeighbours<char>, 1, 64, bytes.data, 1u), IsEmpty());
  EXPECT_THAT(failureOf(writeNeighbours<char>, 1, 64, bytes.data, 2u), HasSubstr("1 bytes"));
  EXPECT_THAT(failureOf(writeNeighbours<short>, 1, 64, halves.data, 1u), IsEmpty());
  EXPECT_THAT(failureOf(writeNeighbours<short>, 1, 64, halves.data, 2u), HasSubstr("2 bytes"));
}

/// A vector, then its parts, then a copy of a structure.
struct alignas(16) Four {
  int part[4];
};
__global__ void widths(Four *out, bool waits) {
  __shared__ Four values[32];
  for (int i = 0; i < 4; ++i)
    values[threadIdx.x].part[i] = i;
  if (waits)
    __syncwarp();
  out[threadIdx.x] = values[threadIdx.x ^ 1];
}

TEST_F(Races, AccessesOfDifferentWidthsConflict) {
  Buffer<Four> out(32);
  EXPECT_THAT(failureOf(widths, 1, 32, out.data, true), IsEmpty());
  EXPECT_THAT(failureOf(widths, 1, 32, out.data, false), HasSubstr("no barrier between them"));
}

// In a warp.

enum class Through { Nothing, Syncwarp, HalfOfIt, Shuffle, Vote, OtherWarp };

__global__ void exchange(int *out, Through through) {
  __shared__ int values[64];
  const unsigned t = threadIdx.x, from = through == Through::OtherWarp ? t ^ 32 : t ^ 16;
  values[t] = int(t);
  if (through == Through::Syncwarp || through == Through::OtherWarp)
    __syncwarp();
  else if (through == Through::HalfOfIt)
    __syncwarp(t % 32 < 16 ? 0xffffu : 0xffff0000u);
  else if (through == Through::Shuffle)
    __shfl_xor_sync(0xffffffffu, 1, 1);
  else if (through == Through::Vote)
    __ballot_sync(0xffffffffu, 1);
  out[t] = values[from];
}

TEST_F(Races, OnlySyncwarpOrdersTheMemoryOfItsLanes) {
  Buffer<int> out(64);
  EXPECT_THAT(failureOf(exchange, 1, 64, out.data, Through::Syncwarp), IsEmpty());
  for (Through through :
       {Through::Nothing, Through::HalfOfIt, Through::Shuffle, Through::Vote, Through::OtherWarp})
    EXPECT_THAT(failureOf(exchange, 1, 64, out.data, through),
                HasSubstr("no barrier between them"));
}

/// Lane 0 synchronizes with lane 1, and lane 1 with lane 2, which gets only the accesses that lane
/// 1 had observed by then.
__global__ void relay(int *out, bool inOrder) {
  __shared__ int value;
  const unsigned t = threadIdx.x;
  if (t == 0)
    value = 1;
  if (inOrder) {
    if (t <= 1)
      __syncwarp(0x3);
    if (t == 1 || t == 2)
      __syncwarp(0x6);
  } else {
    if (t == 1 || t == 2)
      __syncwarp(0x6);
    if (t <= 1)
      __syncwarp(0x3);
  }
  if (t == 2)
    *out = value;
}

TEST_F(Races, OrderBetweenLanesIsTransitive) {
  Buffer<int> out(1);
  EXPECT_THAT(failureOf(relay, 1, 32, out.data, true), IsEmpty());
  EXPECT_THAT(failureOf(relay, 1, 32, out.data, false), HasSubstr("no barrier between them"));
}

// Global memory: threads of a block, and blocks.

__global__ void throughGlobal(int *values, int *out, bool waits) {
  int *mine = values + blockIdx.x * 64;
  mine[threadIdx.x] = 1;
  if (waits)
    __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = mine[63 - threadIdx.x];
}

TEST_F(Races, GlobalMemoryOfABlockNeedsTheBarrierToo) {
  Buffer<int> values(128), out(128);
  EXPECT_THAT(failureOf(throughGlobal, 2, 64, values.data, out.data, true), IsEmpty());
  EXPECT_THAT(failureOf(throughGlobal, 2, 64, values.data, out.data, false),
              AllOf(HasSubstr("of an allocation of 512 bytes"), HasSubstr("no barrier between")));
}

__global__ void writeByBlock(int *out, unsigned stride) {
  if (threadIdx.x == 0)
    out[blockIdx.x * stride] = 1;
}

TEST_F(Races, TwoBlocksMayNotWriteOneElement) {
  Buffer<int> out(4);
  EXPECT_THAT(failureOf(writeByBlock, 4, 32, out.data, 1u), IsEmpty());
  EXPECT_THAT(failureOf(writeByBlock, 4, 32, out.data, 0u),
              AllOf(HasSubstr("block (1, 0, 0): thread (0, 0, 0) writes 4 bytes at byte 0 of an "
                              "allocation of 16 bytes"),
                    HasSubstr("which thread (0, 0, 0) of block (0, 0, 0) wrote"),
                    HasSubstr("nothing orders blocks of one launch here")));
}

__global__ void readByBlock(const int *in, int *out, unsigned from, unsigned to) {
  const int value = in[(blockIdx.x + from) % gridDim.x];
  __syncthreads();
  out[(blockIdx.x + to) % gridDim.x] = value;
}

TEST_F(Races, ABlockMayNotReadWritesOfAnother) {
  Buffer<int> in(4), out(4);
  const int *same = out.data;
  EXPECT_THAT(failureOf(readByBlock, 4, 1, static_cast<const int *>(in.data), out.data, 1u, 0u),
              IsEmpty());
  EXPECT_THAT(failureOf(readByBlock, 4, 1, same, out.data, 0u, 0u), IsEmpty()); // its own element
  EXPECT_THAT(failureOf(readByBlock, 4, 1, same, out.data, 1u, 0u),
              HasSubstr("nothing orders blocks"));
}

TEST_F(Races, LaunchesAreOrdered) {
  Buffer<int> out(1);
  for (int i = 0; i < 3; ++i)
    OK(launch(writeByBlock, dim3(1), dim3(32), 0, nullptr, out.data, 0u));
}

// Atomic operations.

__global__ void count(unsigned *counter, bool atomically) {
  if (atomically)
    atomicAdd(counter, 1u);
  else
    ++*counter;
}

TEST_F(Races, AtomicOperationsDoNotConflict) {
  Buffer<unsigned> counter(1);
  OK(cudaMemset(counter.data, 0, 4));
  EXPECT_THAT(failureOf(count, 4, 64, counter.data, true), IsEmpty());
  EXPECT_EQ(counter.values()[0], 3u * 256);
  EXPECT_THAT(failureOf(count, 4, 1, counter.data, false), HasSubstr("nothing orders blocks"));
}

__global__ void readCounter(unsigned *out, bool waits) {
  __shared__ unsigned counter;
  if (threadIdx.x == 0)
    counter = 0;
  __syncthreads();
  atomicMax(&counter, threadIdx.x);
  if (waits)
    __syncthreads();
  out[threadIdx.x] = counter;
}

TEST_F(Races, AReadOfAtomicallyChangedMemoryNeedsABarrier) {
  Buffer<unsigned> out(64);
  EXPECT_THAT(failureOf(readCounter, 1, 64, out.data, true), IsEmpty());
  EXPECT_EQ(out.values()[7], 63u);
  EXPECT_THAT(failureOf(readCounter, 1, 64, out.data, false),
              testing::ContainsRegex("changed .atomically.|changes .atomically."));
}

/// The block that comes last adds up what all have written. Bits of `without`: 1 the fence before
/// the counter, 2 the fence after it, 4 the barrier; 8: fences are of the block.
__global__ void lastBlockSums(int *parts, unsigned *counter, int *out, unsigned without) {
  __shared__ bool last;
  parts[blockIdx.x * blockDim.x + threadIdx.x] = 1;
  if (!(without & 4))
    __syncthreads();
  if (threadIdx.x == 0) {
    if (without & 8)
      __threadfence_block();
    else if (!(without & 1))
      __threadfence();
    last = atomicAdd(counter, 1u) % gridDim.x == gridDim.x - 1;
    if (without & 8)
      __threadfence_block();
    else if (!(without & 2))
      __threadfence();
  }
  __syncthreads();
  if (last && threadIdx.x == blockDim.x - 1) {
    int sum = 0;
    for (unsigned i = 0; i < gridDim.x * blockDim.x; ++i)
      sum += parts[i];
    *out = sum;
  }
}

TEST_F(Races, FencesAndACounterOrderBlocks) {
  Buffer<int> parts(5 * 64), out(1);
  Buffer<unsigned> counter(1);
  const auto failureWithout = [&](unsigned what) {
    EXPECT_EQ(cudaMemset(counter.data, 0, 4), cudaSuccess);
    return failureOf(lastBlockSums, 5, 64, parts.data, counter.data, out.data, what);
  };
  EXPECT_THAT(failureWithout(0), IsEmpty());
  EXPECT_EQ(out.values()[0], 5 * 64);
  for (unsigned what : {1u, 2u, 3u, 4u, 8u})
    EXPECT_THAT(failureWithout(what), HasSubstr("nothing orders blocks of one launch here"))
        << what;
}

/// The same by the warps of a block, for which a fence of the block is enough.
__global__ void lastWarpSums(int *out, bool fences) {
  __shared__ int parts[4];
  __shared__ unsigned counter;
  if (threadIdx.x == 0)
    counter = 0;
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    parts[threadIdx.x / 32] = 1;
    if (fences)
      __threadfence_block();
    const bool last = atomicAdd(&counter, 1u) == 3;
    if (fences)
      __threadfence_block();
    if (last)
      out[blockIdx.x] = parts[0] + parts[1] + parts[2] + parts[3];
  }
}

TEST_F(Races, FencesOfABlockOrderItsWarps) {
  Buffer<int> out(3);
  EXPECT_THAT(failureOf(lastWarpSums, 3, 128, out.data, true), IsEmpty());
  EXPECT_EQ(out.values(), std::vector<int>(3, 4));
  EXPECT_THAT(failureOf(lastWarpSums, 3, 128, out.data, false),
              HasSubstr("no barrier between them"));
}

// Copies in the background.

/// Each thread copies four numbers and reads its own or its neighbour's.
__global__ void copyIn(const int *in, int *out, unsigned neighbour, bool waits, bool meets) {
  FSDP_DYNAMIC_SHARED(int, tile);
  ::emulator::copyInBackground(tile + 4 * threadIdx.x, in + 4 * threadIdx.x, 16, 16);
  ::emulator::commitCopies();
  if (waits)
    ::emulator::waitForCopies(0);
  if (meets)
    __syncthreads();
  out[threadIdx.x] = tile[4 * (threadIdx.x ^ neighbour)];
  ::emulator::waitForCopies(0);
}

TEST_F(Races, ACopyNeedsItsThreadsWaitAndABarrierForOthers) {
  Buffer<int> in(64), out(16);
  const int *from = in.data;
  EXPECT_THAT(failureOf(copyIn, 1, 16, from, out.data, 1u, true, true), IsEmpty());
  EXPECT_THAT(failureOf(copyIn, 1, 16, from, out.data, 0u, true, false), IsEmpty());
  EXPECT_THAT(failureOf(copyIn, 1, 16, from, out.data, 0u, false, true),
              HasSubstr("that copy has not been waited for"));
  EXPECT_THAT(failureOf(copyIn, 1, 16, from, out.data, 1u, false, true),
              HasSubstr("that copy has not been waited for"));
  EXPECT_THAT(failureOf(copyIn, 1, 16, from, out.data, 1u, true, false),
              testing::ContainsRegex("no barrier between them|has not been waited for"));
}

} // namespace
