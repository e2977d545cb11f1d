//===- CpuDevice.cpp - the arena is memory of the host --------------------===//

#include "runtime/device/Arena.h"
#include "runtime/device/Context.h"
#include "runtime/device/Device.h"
#include "runtime/device/Trace.h"
#include "runtime/device/WaitCounter.h"
#include "runtime/device/Workspace.h"

#include <optional>
#include <vector>

namespace fsdp::rt {

namespace {

class CpuDevice final : public Device {
public:
  CpuDevice(const Program &program, Job &job)
      : Device(job), program(program), left(mostOutputs(program)), leftSums(mostOutputs(program)),
        c(job, program.streams, program.events) {
    c.outputs = left.data();
    c.sums = leftSums.data();
  }

  int rankIn(int index) const override { return c.comm(index).rank(); }
  Communicator &world() override { return c.world(); }
  Communicator &communicator(int index) override { return c.comm(index); }

  void write(const Buffer &buffer, const std::function<void(float *)> &fill) override {
    fill(reinterpret_cast<float *>(c.base() + buffer.offset));
  }
  const float *read(const Buffer &buffer) override {
    return reinterpret_cast<const float *>(c.base() + buffer.offset);
  }
  void setState(const StepState &state) override { *c.data(program.stepState) = state; }
  void setSamples(std::int64_t samples) override { c.data(program.stepState)->samples = samples; }
  const StepState &state() const override { return *c.data(program.stepState); }

  void run(const Segment &segment, InputSource *source, bool) override {
    c.inputs = source;
    if (trace)
      traceBegin(segment);
    segment.run(c);
    if (trace)
      trace->enqueued(now());
    c.synchronize();
    if (trace)
      trace->end(now());
  }
  const float *outputs() const override { return left.data(); }
  const WeightedSum *sums() const override { return leftSums.data(); }

  void startTrace() override {
    trace.emplace(c.world(), program);
    const auto keep = [](void *track, const StreamAction &action) {
      static_cast<Trace::Track *>(track)->add(action);
    };
    for (int stream = 0; stream < c.streamCount(); ++stream) {
      c.observe(stream, {keep, &trace->track(static_cast<std::size_t>(stream))});
      traced.push_back(c.stream(stream).enqueued());
    }
    positions.resize(traced.size());
  }
  void writeTrace(const OutputPath &path) override { trace->write(path); }

  std::size_t peakBytes() const override { return c.peakBytes(); }
  std::size_t workspaceBytes() const override { return rt::workspaceBytes(); }

private:
  void traceBegin(const Segment &segment) {
    trace->begin(marked, now());
    for (std::size_t stream = 0; stream < traced.size(); ++stream)
      positions[stream] = c.stream(static_cast<int>(stream)).enqueued() - traced[stream];
    trace->segment(segment, positions);
  }

  const Program &program;
  // What the context's streams write outlives it.
  std::vector<float> left;
  std::vector<WeightedSum> leftSums;
  std::optional<Trace> trace;
  std::vector<std::uint64_t> traced,
      positions; ///< actions of each stream before the trace, and in it
  Context c;
};

} // namespace

namespace target {

const char *const communicatorNames = "auto, shm, tcp or mpi";

JobOptions jobOptions(const Program &program, const std::string &communicator) {
  if (communicator == "nccl" || communicator == "loopback")
    throw Error(format("option '--communicator' got '%s', which only programs compiled with "
                       "--target=cuda have; expected %s",
                       communicator.c_str(), communicatorNames),
                kExitBadCommandLine);
  JobOptions options;
  options.transport = parseTransport(communicator);
  options.program = program.name;
  options.arenaBytes = program.arenaBytes;
  options.communicators = program.communicators;
  return options;
}

void requireDevices(const JobOptions &, int) {}

std::unique_ptr<Device> open(const Program &program, Job &job) {
  populate(job.arena(), job.arenaBytes());
  return std::make_unique<CpuDevice>(program, job);
}

} // namespace target

} // namespace fsdp::rt
