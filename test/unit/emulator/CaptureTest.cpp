//===- CaptureTest.cpp - capture of streams, and graphs, under the emulator ---------===//

#include "Capture.h"
#include "Emulation.h"

#include <thread>
#include <vector>

namespace {

using testing::HasSubstr;

__global__ void set(int *out, int value) { *out = value; }
__global__ void add(const int *in, int *out) { *out = *in + 1; }

/// Two streams, an event, and numbers.
class GraphCapture : public Emulation {
protected:
  GraphCapture() {
    for (cudaStream_t *stream : {&first, &second})
      EXPECT_EQ(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), cudaSuccess);
    for (cudaEvent_t *event : {&fork, &join})
      EXPECT_EQ(cudaEventCreateWithFlags(event, cudaEventDisableTiming), cudaSuccess);
  }
  ~GraphCapture() override {
    for (cudaEvent_t event : {fork, join})
      EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
    for (cudaStream_t stream : {first, second})
      EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  }
  void begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal) {
    ASSERT_EQ(cudaStreamBeginCapture(first, mode), cudaSuccess);
  }
  void forkSecond() {
    OK(cudaEventRecord(fork, first));
    OK(cudaStreamWaitEvent(second, fork));
  }
  void joinSecond() {
    OK(cudaEventRecord(join, second));
    OK(cudaStreamWaitEvent(first, join));
  }
  cudaError_t setTo(cudaStream_t stream, int *out, int value) {
    return launch(set, dim3(1), dim3(1), 0, stream, out, value);
  }
  cudaError_t addTo(cudaStream_t stream, const int *in, int *out) {
    return launch(add, dim3(1), dim3(1), 0, stream, in, out);
  }
  /// Ends a capture that has become invalid, and begins with working streams again.
  void expectInvalid() {
    EXPECT_EQ(setTo(first, x.data, 1), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(cudaEventRecord(join, first), cudaErrorStreamCaptureInvalidated);
    cudaStreamCaptureStatus status;
    OK(cudaStreamIsCapturing(first, &status));
    EXPECT_EQ(status, cudaStreamCaptureStatusInvalidated);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(first, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
    OK(cudaStreamIsCapturing(first, &status));
    EXPECT_EQ(status, cudaStreamCaptureStatusNone);
    OK(setTo(first, x.data, 1));
    OK(cudaStreamSynchronize(first));
  }

  cudaStream_t first = nullptr, second = nullptr;
  cudaEvent_t fork = nullptr, join = nullptr;
  Buffer<int> x{1}, y{1}, z{1};
};

TEST_F(GraphCapture, RunsNothingUntilItsGraphIsLaunched) {
  OK(setTo(first, x.data, 1));
  begin();
  OK(addTo(first, x.data, x.data));
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  OK(cudaStreamEndCapture(first, &graph));
  EXPECT_EQ(x.values()[0], 1);
  OK(cudaGraphInstantiate(&executable, graph));
  for (int launches = 0; launches < 3; ++launches)
    OK(cudaGraphLaunch(executable, second));
  OK(cudaStreamSynchronize(second));
  EXPECT_EQ(x.values()[0], 4);
  OK(cudaGraphExecDestroy(executable));
  OK(cudaGraphDestroy(graph));
}

// A graph is ordered with its stream, and its nodes by what streams waited for.
TEST_F(GraphCapture, KeepsTheOrderOfStreamsAndEvents) {
  for (bool waits : {true, false}) {
    emulator::configure("deferred");
    begin();
    OK(setTo(first, x.data, 41));
    forkSecond();
    OK(addTo(second, x.data, y.data));
    if (waits)
      joinSecond();
    OK(addTo(first, y.data, z.data));
    if (!waits)
      joinSecond();
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    OK(cudaStreamEndCapture(first, &graph));
    OK(cudaGraphInstantiate(&executable, graph));
    int right = 0;
    for (int i = 0; i < 50; ++i) {
      for (int *number : {x.data, y.data, z.data})
        OK(setTo(first, number, -7));
      OK(cudaGraphLaunch(executable, first));
      OK(addTo(first, z.data, z.data));
      OK(cudaStreamSynchronize(first));
      right += z.values()[0] == 44;
    }
    if (waits)
      EXPECT_EQ(right, 50);
    else
      EXPECT_LT(right, 50);
    OK(cudaGraphExecDestroy(executable));
    OK(cudaGraphDestroy(graph));
  }
}

// Of copies, addresses may change from launch to launch.
TEST_F(GraphCapture, CopiesGetOtherSources) {
  int *places[2];
  for (int i = 0; i < 2; ++i) {
    OK(cudaHostAlloc(&places[i], sizeof(int)));
    *places[i] = 10 + i;
  }
  begin();
  OK(cudaMemcpyAsync(x.data, places[0], sizeof(int), cudaMemcpyHostToDevice, first));
  OK(addTo(first, x.data, y.data));
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  OK(cudaStreamEndCapture(first, &graph));
  OK(cudaGraphInstantiate(&executable, graph));
  std::size_t count = 0;
  OK(cudaGraphGetNodes(graph, nullptr, &count));
  ASSERT_EQ(count, 2u);
  cudaGraphNode_t nodes[2];
  OK(cudaGraphGetNodes(graph, nodes, &count));
  cudaGraphNodeType type;
  OK(cudaGraphNodeGetType(nodes[1], &type));
  EXPECT_EQ(type, cudaGraphNodeTypeKernel);
  cudaMemcpy3DParms copy;
  EXPECT_EQ(cudaGraphMemcpyNodeGetParams(nodes[1], &copy), cudaErrorInvalidValue);
  OK(cudaGraphMemcpyNodeGetParams(nodes[0], &copy));
  EXPECT_EQ(copy.srcPtr.ptr, places[0]);
  EXPECT_EQ(copy.dstPtr.ptr, x.data);
  EXPECT_EQ(copy.extent.width, sizeof(int));
  for (int i : {0, 1, 0}) {
    OK(cudaGraphExecMemcpyNodeSetParams1D(executable, nodes[0], x.data, places[i], sizeof(int),
                                          cudaMemcpyHostToDevice));
    OK(cudaGraphLaunch(executable, first));
    OK(cudaStreamSynchronize(first));
    EXPECT_EQ(y.values()[0], 11 + i);
  }
  const auto setTo = [&](cudaGraphNode_t node, const void *from, std::size_t bytes) {
    return cudaGraphExecMemcpyNodeSetParams1D(executable, node, x.data, from, bytes,
                                              cudaMemcpyHostToDevice);
  };
  EXPECT_EQ(setTo(nodes[1], places[0], 4), cudaErrorInvalidValue);
  EXPECT_EQ(setTo(nodes[0], places[0], 0), cudaErrorInvalidValue);
  EXPECT_EQ(setTo(nodes[0], &count, 4), cudaErrorInvalidValue); // pageable
  EXPECT_EQ(setTo(nodes[0], places[0], 8), cudaErrorInvalidValue);
  OK(cudaGraphExecDestroy(executable));
  OK(cudaGraphDestroy(graph));
  for (int *place : places)
    OK(cudaFreeHost(place));
}

// An external event is recorded by each launch, for the host and for other streams.
TEST_F(GraphCapture, LaunchesRecordExternalEvents) {
  emulator::configure("deferred");
  begin();
  OK(setTo(first, x.data, 5));
  OK(cudaEventRecordWithFlags(join, first, cudaEventRecordExternal));
  OK(setTo(first, y.data, 6));
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  OK(cudaStreamEndCapture(first, &graph));
  OK(cudaGraphInstantiate(&executable, graph));
  OK(cudaEventQuery(join)); // not recorded yet
  for (int launches = 0; launches < 3; ++launches) {
    OK(setTo(first, x.data, 0));
    OK(cudaGraphLaunch(executable, first));
    OK(cudaStreamWaitEvent(second, join));
    OK(addTo(second, x.data, z.data));
    OK(cudaStreamSynchronize(second));
    EXPECT_EQ(z.values()[0], 6);
    OK(cudaEventSynchronize(join));
    OK(cudaStreamSynchronize(first));
  }
  EXPECT_EQ(cudaEventRecordWithFlags(join, first, cudaEventRecordExternal), cudaErrorInvalidValue);
  OK(cudaGraphExecDestroy(executable));
  OK(cudaGraphDestroy(graph));
}

// Nothing that a capture contains runs, so that nothing can wait for it.
TEST_F(GraphCapture, RefusesWaitsOfTheHost) {
  struct Case {
    const char *name;
    std::function<cudaError_t()> call;
    cudaError_t expected;
  };
  int number = 0;
  int *memory = nullptr;
  const Case cases[] = {
      {"stream", [&] { return cudaStreamSynchronize(first); }, cudaErrorStreamCaptureUnsupported},
      {"stream query", [&] { return cudaStreamQuery(first); }, cudaErrorStreamCaptureUnsupported},
      {"device", [] { return cudaDeviceSynchronize(); }, cudaErrorStreamCaptureUnsupported},
      {"event", [&] { return cudaEventSynchronize(fork); }, cudaErrorCapturedEvent},
      {"event query", [&] { return cudaEventQuery(fork); }, cudaErrorCapturedEvent},
      {"other event query", [&] { return cudaEventQuery(join); },
       cudaErrorStreamCaptureUnsupported},
      {"allocation", [&] { return cudaMalloc(&memory, 4); }, cudaErrorStreamCaptureUnsupported},
      {"pinned", [&] { return cudaHostAlloc(&memory, 4); }, cudaErrorStreamCaptureUnsupported},
      {"free", [&] { return cudaFree(memory); }, cudaErrorStreamCaptureUnsupported},
      {"copy", [&] { return cudaMemcpy(&number, x.data, 4, cudaMemcpyDeviceToHost); },
       cudaErrorStreamCaptureUnsupported},
      {"memset", [&] { return cudaMemset(x.data, 0, 4); }, cudaErrorStreamCaptureUnsupported},
  };
  for (const Case &one : cases) {
    begin();
    OK(cudaEventRecord(fork, first));
    EXPECT_EQ(one.call(), one.expected) << one.name;
    expectInvalid();
  }
  EXPECT_EQ(cudaEventSynchronize(fork), cudaErrorCapturedEvent); // its capture has ended
  EXPECT_EQ(cudaStreamWaitEvent(first, fork), cudaErrorCapturedEvent);
  OK(cudaEventRecord(fork, first));
  OK(cudaEventSynchronize(fork));
}

TEST_F(GraphCapture, RefusesDependenciesOnOtherWork) {
  OK(cudaEventRecord(fork, second));
  begin();
  EXPECT_EQ(cudaStreamWaitEvent(first, fork), cudaErrorStreamCaptureIsolation);
  expectInvalid();

  begin();
  OK(cudaStreamBeginCapture(second, cudaStreamCaptureModeThreadLocal));
  OK(cudaEventRecord(fork, second));
  EXPECT_EQ(cudaStreamWaitEvent(first, fork), cudaErrorStreamCaptureMerge);
  cudaGraph_t graph = nullptr;
  OK(cudaStreamEndCapture(second, &graph));
  OK(cudaGraphDestroy(graph));
  expectInvalid();

  // The default stream waits for streams that are not non-blocking.
  cudaStream_t blocking;
  OK(cudaStreamCreate(&blocking));
  OK(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
  EXPECT_EQ(cudaMemsetAsync(x.data, 0, 4, nullptr), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(cudaStreamEndCapture(blocking, &graph), cudaErrorStreamCaptureInvalidated);
  OK(cudaStreamDestroy(blocking));
  begin();
  OK(cudaMemsetAsync(x.data, 0, 4, nullptr));
  OK(cudaStreamEndCapture(first, &graph));
  OK(cudaGraphDestroy(graph));
}

TEST_F(GraphCapture, EndsOnItsStreamAndThreadWithAllWorkJoined) {
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(first, &graph), cudaErrorIllegalState);
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeRelaxed),
            cudaErrorStreamCaptureUnsupported);
  begin();
  EXPECT_EQ(cudaStreamBeginCapture(first, cudaStreamCaptureModeRelaxed), cudaErrorIllegalState);
  forkSecond();
  OK(setTo(second, x.data, 1));
  std::thread([&] {
    EXPECT_EQ(cudaStreamEndCapture(first, &graph), cudaErrorStreamCaptureWrongThread);
  }).join();
  EXPECT_EQ(cudaStreamEndCapture(first, &graph), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(graph, nullptr);

  begin();
  forkSecond();
  OK(setTo(second, x.data, 1));
  EXPECT_EQ(cudaStreamEndCapture(second, &graph), cudaErrorStreamCaptureUnmatched);
  expectInvalid();
}

// Calls of other threads are refused by a global capture, and not by one of its thread.
TEST_F(GraphCapture, ModesSayWhichThreadsAreRestricted) {
  for (auto [mode, status] :
       {std::pair(cudaStreamCaptureModeGlobal, cudaErrorStreamCaptureUnsupported),
        {cudaStreamCaptureModeThreadLocal, cudaSuccess},
        {cudaStreamCaptureModeRelaxed, cudaSuccess}}) {
    begin(mode);
    std::thread([&, expected = status] { EXPECT_EQ(cudaEventQuery(join), expected); }).join();
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(first, &graph),
              status == cudaSuccess ? cudaSuccess : cudaErrorStreamCaptureInvalidated);
    if (graph)
      OK(cudaGraphDestroy(graph));
  }
}

// Graphs of ranks meet in their collectives, also those that were captured in a group.
TEST(NcclGraphs, RepeatCollectives) {
  emulator::settings() = emulator::Settings();
  for (const char *words : {"devices=2", "devices=2,deferred,seed=5"}) {
    emulator::configure(words);
    setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", /*overwrite=*/1);
    onDevices(2, [](int rank, ncclUniqueId id) {
      ncclComm_t comm;
      ASSERT_EQ(ncclCommInitRank(&comm, 2, id, rank), ncclSuccess);
      cudaStream_t stream;
      OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      Buffer<int> mine(1), sum(1), other(1);
      OK(cudaMemset(mine.data, 0, sizeof(int)));
      OK(cudaDeviceSynchronize());
      const auto exchange = [&] {
        ASSERT_EQ(ncclGroupStart(), ncclSuccess);
        ASSERT_EQ(ncclSend(mine.data, 1, ncclInt32, 1 - rank, comm, stream), ncclSuccess);
        ASSERT_EQ(ncclRecv(other.data, 1, ncclInt32, 1 - rank, comm, stream), ncclSuccess);
        ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
      };
      exchange(); // connects
      OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
      OK(launch(add, dim3(1), dim3(1), 0, stream, static_cast<const int *>(mine.data), mine.data));
      ASSERT_EQ(ncclGroupStart(), ncclSuccess);
      ASSERT_EQ(ncclAllReduce(mine.data, sum.data, 1, ncclInt32, ncclSum, comm, stream),
                ncclSuccess);
      ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
      exchange();
      cudaGraph_t graph;
      cudaGraphExec_t executable;
      OK(cudaStreamEndCapture(stream, &graph));
      OK(cudaGraphInstantiate(&executable, graph));
      for (int launches = 1; launches <= 3; ++launches) {
        OK(cudaGraphLaunch(executable, stream));
        OK(cudaStreamSynchronize(stream));
        EXPECT_EQ(sum.values()[0], 2 * launches);
        EXPECT_EQ(other.values()[0], launches);
      }
      OK(cudaGraphExecDestroy(executable));
      OK(cudaGraphDestroy(graph));
      OK(cudaStreamDestroy(stream));
      EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
    });
    unsetenv("NCCL_LAUNCH_ORDER_IMPLICIT");
    emulator::reset();
  }
  emulator::settings() = emulator::Settings();
}

} // namespace
