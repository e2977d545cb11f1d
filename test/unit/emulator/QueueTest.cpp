//===- QueueTest.cpp - streams, events and copies under the emulator ---------------===//

#include "Queue.h"
#include "Emulation.h"
#include "Held.h"

#include <set>
#include <thread>
#include <vector>

using testing::HasSubstr;

namespace {

class Queue : public Emulation {};

__global__ void set(int *out, int value) { *out = value; }
__global__ void add(const int *in, int *out) { *out = *in + 1; }

/// The result of a chain over two streams; without the wait it depends on the order.
int chain(bool wait) {
  Buffer<int> x(1), y(1);
  cudaStream_t first, second;
  cudaEvent_t written;
  EXPECT_EQ(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking), cudaSuccess);
  EXPECT_EQ(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking), cudaSuccess);
  EXPECT_EQ(cudaEventCreateWithFlags(&written, cudaEventDisableTiming), cudaSuccess);
  EXPECT_EQ(launch(set, dim3(1), dim3(1), 0, first, x.data, 41), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(written, first), cudaSuccess);
  if (wait) {
    EXPECT_EQ(cudaStreamWaitEvent(second, written), cudaSuccess);
  }
  EXPECT_EQ(launch(add, dim3(1), dim3(1), 0, second, static_cast<const int *>(x.data), y.data),
            cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(written), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(first), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(second), cudaSuccess);
  return y.values()[0];
}

TEST_F(Queue, AMissingWaitShowsWhenDeferred) {
  EXPECT_EQ(chain(false), 42); // inline: nothing shows
  emulator::configure("deferred");
  std::set<int> with, without;
  for (int i = 0; i < 50; ++i) {
    with.insert(chain(true));
    without.insert(chain(false));
  }
  EXPECT_EQ(with, std::set<int>{42});
  EXPECT_EQ(without, (std::set<int>{0, 42})); // memory starts as -1
}

// A stream that waits is in the way of another one that shares its queue, and of no stream of
// another queue.
TEST_F(Queue, StreamsShareHardwareQueues) {
  for (int queues : {1, 2}) {
    emulator::reset();
    emulator::configure("deferred,deadlock=0.3,queues=" + std::to_string(queues));
    Buffer<int> x(1);
    cudaStream_t first, second;
    cudaEvent_t never, event;
    OK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    OK(cudaEventCreateWithFlags(&never, cudaEventDisableTiming));
    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    never->recorded = std::make_shared<emulator::Point>();
    OK(cudaStreamWaitEvent(first, never));
    OK(launch(set, dim3(1), dim3(1), 0, second, x.data, 41));
    EXPECT_EQ(cudaStreamSynchronize(second) == cudaSuccess, queues == 2);
    EXPECT_EQ(emulator::failure().empty(), queues == 2) << emulator::failure();
    emulator::complete(never->recorded);
  }
}

/// The value in a stream of a number that was copied out of pageable memory.
int found(bool synchronize) {
  Buffer<int> x(1), y(1);
  cudaStream_t stream;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  int number = 41;
  EXPECT_EQ(cudaMemcpy(x.data, &number, sizeof(int), cudaMemcpyHostToDevice), cudaSuccess);
  number = 0; // it has been read
  if (synchronize) {
    EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  }
  EXPECT_EQ(launch(add, dim3(1), dim3(1), 0, stream, static_cast<const int *>(x.data), y.data),
            cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  return y.values()[0];
}

TEST_F(Queue, ACopyOutOfPageableMemoryArrivesLateWhenDeferred) {
  EXPECT_EQ(found(false), 42);
  emulator::configure("deferred");
  std::set<int> with, without;
  for (int i = 0; i < 50; ++i) {
    with.insert(found(true));
    without.insert(found(false));
  }
  EXPECT_EQ(with, std::set<int>{42});
  EXPECT_EQ(without, (std::set<int>{0, 42})); // memory starts as -1
}

TEST_F(Queue, DeferredWorkRunsLateAndInOrder) {
  emulator::configure("deferred");
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  int *pinned;
  OK(cudaMallocHost(&pinned, sizeof(int)));
  *pinned = 0;
  Buffer<int> x(1);
  OK(launch(set, dim3(1), dim3(1), 0, stream, x.data, 7));
  OK(cudaMemcpyAsync(pinned, x.data, sizeof(int), cudaMemcpyDeviceToHost, stream));
  EXPECT_EQ(*pinned, 0);
  OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(*pinned, 7);
  // A copy out of pinned memory reads its contents when it runs, from pageable memory immediately.
  int pageable = 1;
  *pinned = 1;
  Buffer<int> y(2);
  OK(cudaMemcpyAsync(y.data, pinned, sizeof(int), cudaMemcpyHostToDevice, stream));
  OK(cudaMemcpyAsync(y.data + 1, &pageable, sizeof(int), cudaMemcpyHostToDevice, stream));
  *pinned = pageable = 2;
  OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(y.values(), (std::vector<int>{2, 1}));
  OK(cudaFreeHost(pinned));
  OK(cudaStreamDestroy(stream));
}

TEST_F(Queue, EventsDenoteTheirLatestRecord) {
  emulator::configure("deferred");
  cudaStream_t stream;
  cudaEvent_t event;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  OK(cudaEventCreate(&event));
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess); // never recorded
  Buffer<int> x(1);
  OK(launch(set, dim3(1), dim3(1), 0, stream, x.data, 7));
  OK(cudaEventRecord(event, stream));
  int asked = 0;
  while (cudaEventQuery(event) == cudaErrorNotReady)
    ASSERT_LT(++asked, 100); // asking moves things on
  EXPECT_EQ(x.values()[0], 7);
  cudaEvent_t later;
  float milliseconds = -1;
  OK(cudaEventCreate(&later));
  OK(cudaEventRecord(later, stream));
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, event, later), cudaErrorNotReady);
  OK(cudaEventSynchronize(later));
  OK(cudaEventElapsedTime(&milliseconds, event, later));
  EXPECT_GE(milliseconds, 0);
  OK(cudaEventDestroy(event));
  OK(cudaEventDestroy(later));
  OK(cudaStreamDestroy(stream));
}

TEST_F(Queue, HostFunctionsKeepTheirPlace) {
  for (const char *words : {"inline", "deferred"}) {
    emulator::configure(words);
    cudaStream_t stream;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    Buffer<int> x(1);
    struct Seen {
      int *device, value;
    } seen{x.data, 0};
    OK(launch(set, dim3(1), dim3(1), 0, stream, x.data, 7));
    OK(cudaLaunchHostFunc(
        stream, [](void *p) { static_cast<Seen *>(p)->value = *static_cast<Seen *>(p)->device; },
        &seen));
    OK(launch(set, dim3(1), dim3(1), 0, stream, x.data, 8));
    OK(cudaStreamSynchronize(stream));
    EXPECT_EQ(seen.value, 7);
    OK(cudaStreamDestroy(stream));
  }
}

TEST_F(Queue, RanksAsThreadsWaitForEachOther) {
  // Two ranks on one device: each waits for the other's event, made known through the host.
  for (const char *words : {"inline", "deferred,seed=3"}) {
    emulator::configure(words);
    Buffer<int> x(2), y(2);
    cudaEvent_t written[2];
    std::atomic<int> recorded{0};
    std::vector<std::thread> ranks;
    for (int r = 0; r < 2; ++r)
      ranks.emplace_back([&, r] {
        cudaStream_t stream;
        OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        OK(cudaEventCreate(&written[r]));
        OK(launch(set, dim3(1), dim3(1), 0, stream, x.data + r, 10 * (r + 1)));
        OK(cudaEventRecord(written[r], stream));
        for (++recorded; recorded < 2;)
          std::this_thread::yield();
        OK(cudaStreamWaitEvent(stream, written[1 - r]));
        OK(launch(add, dim3(1), dim3(1), 0, stream, static_cast<const int *>(x.data + 1 - r),
                  y.data + r));
        OK(cudaStreamSynchronize(stream));
        OK(cudaStreamDestroy(stream));
      });
    for (std::thread &rank : ranks)
      rank.join();
    EXPECT_EQ(y.values(), (std::vector<int>{21, 11}));
    for (cudaEvent_t event : written)
      OK(cudaEventDestroy(event));
  }
}

__global__ void diverge(int) {
  if (threadIdx.x)
    __syncthreads();
}

TEST_F(Queue, AfterAFailureNothingRuns) {
  emulator::configure("deferred");
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  int *pinned;
  OK(cudaMallocHost(&pinned, sizeof(int)));
  *pinned = 5;
  Buffer<int> x(1);
  OK(launch(diverge, dim3(1), dim3(2), 0, stream, 0)); // found later
  OK(launch(set, dim3(1), dim3(1), 0, stream, x.data, 7));
  OK(cudaMemcpyAsync(pinned, x.data, sizeof(int), cudaMemcpyDeviceToHost, stream));
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
  EXPECT_EQ(*pinned, 5);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  emulator::reset();
  OK(cudaFreeHost(pinned));
  OK(cudaStreamDestroy(stream));
}

TEST_F(Queue, NoDevices) {
  emulator::configure("devices=0");
  int count = -1;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorInsufficientDriver);
  EXPECT_EQ(count, 0);
  EXPECT_EQ(cudaSetDevice(0), cudaErrorNoDevice);
  EXPECT_THROW(emulator::configure("defered"), std::invalid_argument);
  for (const char *word : {"seed=x",
                           "seed=1e30",
                           "seed=0.5",
                           "devices=1e12",
                           "devices=-1",
                           "compute=7",
                           "queues=0.5",
                           "window=fail:1junk",
                           "window=1",
                           "products=none:1x",
                           "products=none:0",
                           "inline=1",
                           "launches=",
                           "calls=",
                           "memory=nan",
                           "devices= 2",
                           "devices=2 ",
                           "devices=0x2",
                           "devices=+-2",
                           "devices=02",
                           "memory=0x1p30",
                           "deadlock=inf",
                           "deadlock=-0",
                           "window=fail: 1",
                           "products=none:+-1",
                           "leaks=1"})
    EXPECT_THROW(emulator::configure(word), std::invalid_argument) << word;
}

TEST_F(Queue, SettingsOfTheEnvironmentAreNotOfATest) {
  for (const char *word : {"leaks", "launches=file", "calls=file"})
    EXPECT_THROW(emulator::configure(word), std::invalid_argument) << word;
  EXPECT_EXIT(
      {
        setenv("FSDP_EMULATOR", "launches=/nonexistent/file", 1);
        emulator::settingsOfEnvironment();
      },
      testing::ExitedWithCode(2),
      "got 'launches=/nonexistent/file', expected a file that can be written: No such file");
}

TEST_F(Queue, LeaksAreFailuresAtTheEnd) {
  // Tests of failures have left some.
  const std::string streams = std::to_string(emulator::streamsHeld() + 1),
                    events = std::to_string(emulator::eventsHeld + 1);
  EXPECT_EXIT(
      {
        void *memory = nullptr;
        cudaStream_t stream = nullptr;
        cudaEvent_t event = nullptr;
        if (cudaMalloc(&memory, 4) || cudaHostAlloc(&memory, 4, cudaHostAllocDefault) ||
            cudaHostAlloc(&memory, 4, cudaHostAllocDefault) || cudaStreamCreate(&stream) ||
            cudaEventCreate(&event))
          std::exit(0);
        emulator::failAtExitWhereAnyIsHeld();
        std::exit(0);
      },
      testing::ExitedWithCode(1),
      "not freed at the end of the process: .*allocations of device memory 1, allocations of "
      "pinned memory 2, streams " +
          streams + ", events " + events + "\n");
}

class Memory : public Emulation {};

std::string refusal(cudaError_t error) {
  EXPECT_EQ(error, cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  return cudaGetErrorString(cudaErrorInvalidValue);
}

TEST_F(Queue, StreamsAndEventsAreOfOneDevice) {
  emulator::configure("devices=2");
  Buffer<int> x(1);
  cudaStream_t first = nullptr;
  cudaEvent_t ofFirst = nullptr, ofSecond = nullptr;
  OK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  OK(cudaEventCreate(&ofFirst));
  OK(cudaEventRecord(ofFirst, first));
  OK(cudaSetDevice(1));
  OK(cudaEventCreate(&ofSecond));
  EXPECT_EQ(launch(set, dim3(1), dim3(1), 0, first, x.data, 1), cudaErrorInvalidResourceHandle);
  EXPECT_THAT(cudaGetErrorString(cudaErrorInvalidResourceHandle),
              HasSubstr("launched on a stream of device 0, while device 1 is the current one"));
  EXPECT_EQ(cudaEventRecord(ofSecond, first), cudaErrorInvalidResourceHandle);
  EXPECT_THAT(cudaGetErrorString(cudaErrorInvalidResourceHandle),
              HasSubstr("an event of device 1 is recorded on a stream of device 0"));
  OK(cudaEventRecord(ofSecond, nullptr));
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, ofFirst, ofSecond), cudaErrorInvalidResourceHandle);
  // Copies and waits may cross devices.
  OK(cudaMemsetAsync(x.data, 0, 4, first));
  OK(cudaStreamWaitEvent(first, ofSecond, 0));
  OK(cudaSetDevice(0));
  OK(launch(set, dim3(1), dim3(1), 0, first, x.data, 1));
  OK(cudaStreamSynchronize(first));
  OK(cudaEventDestroy(ofFirst));
  OK(cudaEventDestroy(ofSecond));
  OK(cudaStreamDestroy(first));
}

TEST_F(Memory, CopiesOutOfBoundsAndOfTheWrongKindAreRefused) {
  Buffer<char> device(100), other(100);
  char host[200] = {};
  EXPECT_THAT(refusal(cudaMemcpy(device.data, host, 101, cudaMemcpyHostToDevice)),
              HasSubstr("copy of target: got 101 bytes at 0 of an allocation, expected to end "
                        "within its 100 bytes"));
  EXPECT_THAT(refusal(cudaMemcpy(host, device.data + 60, 41, cudaMemcpyDeviceToHost)),
              HasSubstr("copy of source: got 41 bytes at 60"));
  EXPECT_THAT(refusal(cudaMemcpy(host, device.data, 10, cudaMemcpyHostToDevice)),
              HasSubstr("got host memory, expected device memory"));
  EXPECT_THAT(refusal(cudaMemcpy(device.data, host, 10, cudaMemcpyDeviceToDevice)),
              HasSubstr("got host memory, expected device memory"));
  EXPECT_THAT(refusal(cudaMemcpy(device.data, other.data, 10, cudaMemcpyHostToDevice)),
              HasSubstr("got device memory, expected host memory"));
  EXPECT_THAT(refusal(cudaMemcpy(device.data + 5, device.data, 10, cudaMemcpyDeviceToDevice)),
              HasSubstr("source and target overlap in 5 bytes"));
  EXPECT_THAT(refusal(cudaMemset(device.data + 1, 0, 100)), HasSubstr("got 100 bytes at 1"));
  EXPECT_THAT(refusal(cudaMemset(host, 0, 100)), HasSubstr("not CUDA's"));
  EXPECT_THAT(refusal(cudaFree(device.data + 1)), HasSubstr("no start of such an allocation"));
  OK(cudaMemcpy(device.data, host, 100, cudaMemcpyDefault));
}

TEST_F(Memory, StartsPoisonedAndIsCounted) {
  emulator::configure("memory=10000");
  std::size_t before, after, total;
  OK(cudaMemGetInfo(&before, &total));
  Buffer<float> x(10);
  for (float value : x.values())
    EXPECT_TRUE(std::isnan(value));
  OK(cudaMemGetInfo(&after, &total));
  EXPECT_EQ(before - after, 256u);
  EXPECT_EQ(total, 10000u);
  void *much = nullptr;
  EXPECT_EQ(cudaMalloc(&much, 9900), cudaErrorMemoryAllocation);
  EXPECT_EQ(much, nullptr);
}

__global__ void writeBehind(char *p) { p[100] = 0; }

TEST_F(Memory, AByteBehindAnAllocationIsFoundWhenItIsFreed) {
  char *data;
  OK(cudaMalloc(&data, 100));
  OK(launch(writeBehind, dim3(1), dim3(1), 0, nullptr, data));
  (void)cudaFree(data);
  EXPECT_EQ(emulator::failure(), "byte 100 was written behind an allocation of 100 bytes");
}

TEST_F(Memory, RowsWithPitch) {
  Buffer<int> device(12);
  OK(cudaMemset(device.data, 0, 48));
  int host[6] = {1, 2, 3, 4, 5, 6};
  OK(cudaMemcpy2DAsync(device.data + 1, 16, host, 8, 8, 3, cudaMemcpyHostToDevice));
  EXPECT_EQ(device.values(), (std::vector<int>{0, 1, 2, 0, 0, 3, 4, 0, 0, 5, 6, 0}));
}

} // namespace
