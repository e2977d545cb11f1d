//===- CpuDevice.cpp - the device of CPU programs -------------------------===//

#include "base/WaitCounter.h"
#include "runtime/device/Mapping.h"
#include "runtime/device/StreamingStores.h"
#include "runtime/device/Workspace.h"
#include "runtime/execution/Context.h"
#include "runtime/execution/Device.h"
#include "runtime/execution/Trace.h"
#include "runtime/kernels/Gemm.h"
#include "runtime/program/Roles.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace fsdp::rt {

using namespace base;

namespace {

class CpuDevice final : public Device {
public:
  CpuDevice(const Program &program, Job &job)
      : Device(job), program(program), outputValues(mostOutputs(program)),
        outputSums(mostOutputs(program)), c(job, program.streams, program.events) {
    c.outputs = outputValues.data();
    c.sums = outputSums.data();
  }

  Communicator &world() override { return c.world(); }

  void write(const Buffer &buffer, const std::function<void(float *)> &fill) override {
    finish();
    if (buffer.dtype != DType::BF16)
      return fill(reinterpret_cast<float *>(c.base() + buffer.offset));
    std::vector<float> values(buffer.count);
    fill(values.data());
    std::copy(values.begin(), values.end(), reinterpret_cast<bf16 *>(c.base() + buffer.offset));
  }
  const float *read(const Buffer &buffer) override {
    finish();
    return reinterpret_cast<const float *>(c.base() + buffer.offset);
  }
  std::shared_ptr<float> hostMemory(std::size_t count) override {
    std::shared_ptr<float> memory(new float[count], std::default_delete<float[]>());
    populate(reinterpret_cast<std::byte *>(memory.get()), count * sizeof(float),
             "the copy that --save-async writes",
             "besides its arena, or saves without --save-async");
    return memory;
  }
  void copyToHost(const Buffer &buffer, std::size_t first, std::size_t count, float *to) override {
    copyBytes(to, read(buffer) + first, count * sizeof(float));
  }
  void awaitCopies() override {}
  void setState(const StepState &state) override {
    finish();
    *c.data(program.stepState) = state;
    *c.data(badGradients(program.stepState)) = BadGradients();
    samplesSet = state.samples;
    limitsSet = {state.lossLimit, state.normLimit};
  }
  void setUpdates(std::vector<UpdateSetting> settings) override {
    updates = std::move(settings);
    c.updateSettings = updates.empty() ? nullptr : updates.data();
  }
  void setSamples(std::int64_t samples) override {
    if (samples == samplesSet)
      return;
    finish();
    c.data(program.stepState)->samples = samplesSet = samples;
  }
  void setLimits(float loss, float norm) override {
    if (limitsSet == std::pair(loss, norm))
      return;
    finish();
    StepState &state = *c.data(program.stepState);
    state.lossLimit = loss;
    state.normLimit = norm;
    limitsSet = {loss, norm};
  }
  const StepState &state() override {
    finish();
    return *c.data(program.stepState);
  }
  int firstBad() override {
    finish();
    return c.data(badGradients(program.stepState))->first();
  }

  void run(const ExecutionPlan &plan, InputSource *source, bool) override {
    c.inputs = source;
    if (trace)
      trace->begin(marked, now());
    std::int64_t number = 0;
    forEachSegment(program, plan, [&](const Segment &segment, bool wait) {
      if (wait)
        c.synchronize();
      if (trace)
        traceSegment(segment, isOneSegment(plan) ? Mark() : Mark{segment.name, ++number});
      segment.run(c);
    });
    if (trace)
      trace->enqueued(now());
    underWay = !endsJoined(program, plan);
    underWay ? c.awaitOutputs() : c.synchronize();
    if (trace)
      trace->end(now());
  }
  void finish() override {
    if (underWay)
      c.synchronize();
    underWay = false;
  }
  const float *outputs() const override { return outputValues.data(); }
  const WeightedSum *sums() const override { return outputSums.data(); }

  void startTrace() override {
    trace.emplace(c.world(), program);
    const auto keep = [](void *track, const StreamAction &action) {
      static_cast<Trace::Track *>(track)->add(action);
    };
    for (int stream = 0; stream < c.streamCount(); ++stream) {
      c.observe(stream, {keep, &trace->track(static_cast<std::size_t>(stream))});
      actionsBefore.push_back(c.stream(stream).enqueued());
    }
    positions.resize(actionsBefore.size());
  }
  void writeTrace(const OutputPath &path) override {
    finish();
    trace->write(path);
  }

  std::size_t peakBytes() const override { return c.peakBytes(); }
  std::size_t workspaceBytes() const override { return rt::workspaceBytes(); }
  int threads() const override { return c.threads(); }

private:
  void traceSegment(const Segment &segment, Mark mark) {
    for (std::size_t stream = 0; stream < actionsBefore.size(); ++stream)
      positions[stream] = c.stream(static_cast<int>(stream)).enqueued() - actionsBefore[stream];
    trace->segment(segment, positions, mark);
  }

  const Program &program;
  std::int64_t samplesSet = 0;       ///< the value in the arena's step state
  std::pair<float, float> limitsSet; ///< likewise
  bool underWay = false;             ///< enqueued work may still run
  // Written by the context's streams, so they outlive the context.
  std::vector<float> outputValues;
  std::vector<WeightedSum> outputSums;
  std::vector<UpdateSetting> updates; ///< read by the context's streams
  std::optional<Trace> trace;
  std::vector<std::uint64_t> actionsBefore,
      positions; ///< number of actions of each stream before the trace, and in it
  Context c;
};

} // namespace

namespace target {

const char *const communicatorNames = "auto, shm, tcp or mpi";
const bool computesOnThreads = true;

JobOptions jobOptions(const Program &program, const std::string &communicator) {
  if (communicator == "nccl" || communicator == "loopback")
    throw Error(format("option '--communicator' got '%s', which only programs compiled with "
                       "--target=cuda have; expected %s",
                       communicator.c_str(), communicatorNames),
                kExitBadCommandLine);
  JobOptions options;
  options.transport = parseTransport(communicator);
  options.program = program.name;
  options.arenaBytes = arenaBytesOf(program);
  options.communicators = program.communicators;
  return options;
}

void requireDevices(const JobOptions &, int) {}

std::string libraries() { return kernels::gemmLibrary(); }

std::unique_ptr<Device> open(const Program &program, Job &job) {
  populate(job.arena(), job.arenaBytes(), "the arena", "(--report prints the memory of a rank)");
  return std::make_unique<CpuDevice>(program, job);
}

} // namespace target

} // namespace fsdp::rt
