//===- CudaDeviceMain.cpp - what a CUDA device waits for --------------------===//
//
// Runs walks whose segments end while their launches are under way, and looks at the device through
// every function of `Device` before they have run. Exit status 1 where a function does not wait.
// For the emulator's `deferred`: launches run as late as waits allow.
//
//===----------------------------------------------------------------------===//
#include "runtime/execution/Device.h"
#include "runtime/execution/cuda/Launch.h"
#include "runtime/job/Bootstrap.h"
#include "runtime/job/ErrorReport.h"
#include "runtime/job/SharedJob.h"
#include "runtime/launches/Kernels.h"

#include <cstddef>
#include <cstring>

using namespace base;
using namespace fsdp::rt;

namespace {

enum : int { kFirst, kSecond };
constexpr const char *kStreams[] = {"first", "second"};
constexpr const char *kOutputs[] = {"value"};

// The arena: the step state, another of its size, and spans of equal floats.
constexpr std::size_t kCount = 1000, kSpan = 4096;
constexpr ArenaSpan<float> kState{0, sizeof(StepBuffer) / 4}, kOther{kSpan, kState.count},
    kA{2 * kSpan, kCount}, kB{3 * kSpan, kCount}, kC{4 * kSpan, kCount}, kRow{5 * kSpan, 4},
    kLabel{6 * kSpan, 1}, kLoss{7 * kSpan, 1};

template <int stream, class From, class To> void copy(Context &c, From from, To to) {
  launch(c, stream, "copy", reads(from), writes(to), [&](auto *source, auto *target, WorkStream s) {
    return cudaMemcpyAsync(target, source, from.bytes(), cudaMemcpyDeviceToDevice, s);
  });
}
void copyAToB(Context &c) { copy<kFirst>(c, kA, kB); }
void copyBToC(Context &c) { copy<kSecond>(c, kB, kC); }
void copyStateToOther(Context &c) { copy<kFirst>(c, kState, kOther); }
void copyOtherToState(Context &c) { copy<kFirst>(c, kOther, kState); }
void outputA(Context &c) {
  copy<kFirst>(c, kA, kB);
  output(c, kFirst, "output", 0, ArenaSpan<float>{kB.offset, 1});
}
void lookUpLabel(Context &c) {
  cross_entropy(c, kFirst, "loss", LogitRows{1, 4}, kRow, ArenaSpan<std::int32_t>{kLabel.offset, 1},
                kLoss);
}
bool secondWasIdle = false;
void lookAtSecond(Context &c) { secondWasIdle = cudaStreamQuery(c.stream(kSecond)) == cudaSuccess; }

constexpr bool kJoined = true;
constexpr Segment kSegments[] = {
    {"copy_a_to_b", copyAToB, !kJoined},
    {"copy_b_to_c", copyBToC, !kJoined},
    {"copy_a_to_b_joined", copyAToB, kJoined},
    {"copy_state_to_other", copyStateToOther, !kJoined},
    {"copy_other_to_state", copyOtherToState, !kJoined},
    {"copy_other_to_state_joined", copyOtherToState, kJoined},
    {"output_a", outputA, !kJoined},
    {"look_up_label", lookUpLabel, !kJoined},
    {"look_at_second", lookAtSecond, kJoined},
};
enum : int {
  AToB,
  BToC,
  AToBJoined,
  StateToOther,
  OtherToState,
  OtherToStateJoined,
  OutputA,
  LookUpLabel,
  LookAtSecond
};

void require(bool holds, const char *what) {
  if (!holds)
    throw Error(std::string("the device does not wait: ") + what);
}

class Checks {
public:
  Checks(const Program &program, Job &job) : device_(target::open(program, job)) {}

  void run() {
    for (int round = 0; round < 20; ++round) {
      write(kA, float(++value_));
      run({AToB});
      require(holds(kB, value_), "read");

      write(kA, float(++value_));
      run({AToB});
      write(kB, -1);
      require(holds(kB, -1), "write, for what runs");

      write(kB, float(++value_));
      run({BToC}); // on a stream that waits for no other
      require(holds(kC, value_), "write, for its own copy");

      write(kA, float(++value_));
      run({AToBJoined, BToC});
      require(holds(kC, value_), "run, for a joined segment");

      write(kA, float(++value_));
      run({OutputA});
      require(device_->outputs()[0] == float(value_), "run, for outputs");

      copyToHost();
      stepState();

      // Only in the first round: later runs are traced, and end with idle streams. So many copies
      // that some are left, whatever the emulator has performed meanwhile.
      write(kB, float(++value_));
      run({BToC, BToC, BToC, BToC, BToC, BToC, BToC, BToC, BToC, BToC, BToC, BToC});
      device_->startTrace();
      run({LookAtSecond});
      require(secondWasIdle, "startTrace");
    }
  }

  /// A label that is out of range is an error of the walk that reads it.
  bool reportsLabel() {
    write(kLabel, 1); // as an integer, beyond any class
    try {
      run({LookUpLabel});
    } catch (const Error &) {
      return true;
    }
    return false;
  }

private:
  void copyToHost() {
    const std::shared_ptr<float> host = device_->hostMemory(kCount);
    write(kA, float(++value_));
    run({AToB});
    device_->copyToHost(kB, 0, kCount, host.get());
    device_->awaitCopies();
    require(host.get()[0] == float(value_) && host.get()[kCount - 1] == float(value_),
            "copyToHost or awaitCopies");
  }

  void stepState() {
    set(++value_);
    run({StateToOther});
    device_->finish();
    set(++value_);
    run({AToBJoined});   // the host sees this state
    run({OtherToState}); // the one before
    require(device_->state().step == value_ - 1, "state");
    run({OtherToStateJoined});
    require(device_->state().step == value_ - 1, "run, for a joined end");

    run({OtherToState});
    set(++value_);
    require(stepInArena() == value_, "setState, for what runs");

    set(++value_);
    run({StateToOther});
    device_->setSamples(value_);
    device_->setSamples(0);
    require(stepIn(kOther) == value_, "setState, for its own copy");

    run({OtherToState});
    device_->setSamples(++value_);
    run({StateToOther});
    require(samplesIn(kOther) == value_, "setSamples");

    run({OtherToState});
    device_->setLimits(float(++value_), 2);
    run({StateToOther});
    require(in(kOther).state.lossLimit == float(value_) && in(kOther).state.normLimit == 2,
            "setLimits");

    setBad();
    run({OtherToState});
    require(device_->firstBad() == 0, "firstBad");
  }

  void set(std::int64_t step) {
    StepState state{};
    state.step = step;
    device_->setState(state);
  }
  /// Floats that are a StepBuffer whose first bad gradient is 0 go to `kOther`.
  void setBad() {
    StepBuffer buffer{};
    buffer.bad = {0, 0};
    device_->write(kOther, [&](float *to) { std::memcpy(to, &buffer, sizeof buffer); });
  }
  StepBuffer in(ArenaSpan<float> span) {
    StepBuffer buffer;
    std::memcpy(&buffer, device_->read(span), sizeof buffer);
    return buffer;
  }
  std::int64_t stepIn(ArenaSpan<float> span) { return in(span).state.step; }
  std::int64_t samplesIn(ArenaSpan<float> span) { return in(span).state.samples; }
  std::int64_t stepInArena() { return stepIn(kState); }

  void write(ArenaSpan<float> span, float value) {
    device_->write(span, [&](float *to) { std::fill_n(to, span.count, value); });
  }
  bool holds(ArenaSpan<float> span, std::int64_t value) {
    const float *got = device_->read(span);
    return std::all_of(got, got + span.count, [&](float one) { return one == float(value); });
  }
  void run(std::initializer_list<int> segments) {
    std::vector<SegmentRuns> runs;
    for (int segment : segments)
      runs.push_back({segment, 1});
    ExecutionPlan plan;
    plan.name = "check";
    plan.runs = {runs.data(), runs.size()};
    plan.outputs = kOutputs;
    device_->run(plan, nullptr, /*prefetchNext=*/false);
  }

  std::unique_ptr<Device> device_;
  std::int64_t value_ = 0;
};

constexpr SegmentRuns kTrain[] = {{AToB, 1}};

Program program() {
  Program program{};
  program.name = "checks";
  program.streams = kStreams;
  program.segments = kSegments;
  program.arenaBytes = 8 * kSpan;
  program.stepState = {0, 1};
  program.train = {"train", kTrain, kOutputs};
  return program;
}

} // namespace

int main() {
  const Program checked = program();
  JobOptions options;
  options.transport = Transport::Loopback;
  options.timeoutSeconds = 60;
  const Mesh mesh({}, {});
  const SharedSegment::Layout layout = layoutOf(mesh, options);
  SharedSegment segment(Mapping::anonymous(SharedSegment::bytesFor(layout)), layout);
  SharedJob job(mesh, options, 0, segment);
  runRank(job, segment, 0, {}, [&](Job &started) {
    Checks checks(checked, started);
    checks.run();
    require(checks.reportsLabel(), "run, for a fault");
    return 0;
  });
  return segment.failure().raised() ? segment.failure().error().status() : kExitDone;
}
