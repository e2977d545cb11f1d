//===- Launch.h - every action of a generated program -----------------------===//
//
// `launch`, `wait`, `record`: the operations on streams. Named calls (gemm, all_gather, adamw, ...)
// are thin templates over `launch`, so that the recording variant records each of them.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_EXECUTION_LAUNCH_H
#define FSDP_RUNTIME_EXECUTION_LAUNCH_H

#include "runtime/execution/Context.h"
#include "runtime/kernels/Kernels.h"
#include "runtime/kernels/Optimizer.h"

/// Performs the kernels of Kernels.def on this target.
#define FSDP_KERNEL_FUNCTION(name, function) kernels::function

#ifndef FSDP_RECORD

#include <utility>

namespace fsdp::rt {

/// The name of an action: a literal.
using ActionName = const char *;

namespace detail {

template <class Kernel, class ReadTypes, class WriteTypes> struct LaunchAction;

/// Kernel and addresses in a stream's slot.
template <class Kernel, class... R, class... W>
struct LaunchAction<Kernel, Reads<R...>, Writes<W...>> {
  Kernel kernel;
  void *address[sizeof...(R) + sizeof...(W) + 1];

  void operator()() { call(std::index_sequence_for<R...>(), std::index_sequence_for<W...>()); }
  template <std::size_t... I, std::size_t... J>
  void call(std::index_sequence<I...>, std::index_sequence<J...>) {
    kernel(static_cast<const R *>(address[I])..., static_cast<W *>(address[sizeof...(R) + J])...);
  }
};

} // namespace detail

/// Enqueues `kernel(const R *..., W *...)` on a stream. A slice that is read and written is in both
/// lists. `name` is a literal. Kernels are function pointers or closures of plain values. `work` is
/// for traces.
template <class... R, class... W, class Kernel>
void launch(Context &c, int stream, const char *name, Reads<R...> read, Writes<W...> written,
            Kernel kernel, Work work = {}) {
  detail::LaunchAction<Kernel, Reads<R...>, Writes<W...>> action{kernel, {}};
  const std::size_t bytes =
      c.resolve(read.ranges.data(), sizeof...(R), action.address) +
      c.resolve(written.ranges.data(), sizeof...(W), action.address + sizeof...(R));
  c.stream(stream).push(name, action, work, bytes);
}

/// `event` now denotes everything enqueued on `stream` so far.
inline void record(Context &c, int stream, int event) { c.stream(stream).record(c.event(event)); }

/// Later work on `stream` starts after the latest record of `event` enqueued before this call.
inline void wait(Context &c, int stream, int event) { c.stream(stream).wait(c.event(event)); }

/// A launch of a collective: `body(communicator, const R *..., W *...)`.
template <class... R, class... W, class Body>
void launchCollective(Context &c, int stream, const char *name, const char *kind, int over,
                      Reads<R...> read, Writes<W...> written, Body body) {
  Communicator *communicator = &c.comm(over, stream);
  launch(
      c, stream, name, read, written,
      [communicator, body](auto *...p) { body(*communicator, p...); }, Work{kind, 0});
}

/// Writes a number for the log, as output `index` of the walk. The slice may be reused after it.
inline void output(Context &c, int stream, const char *name, int index, ArenaSpan<float> value) {
  launch(
      c, stream, name, reads(value), writes(),
      [outputs = c.outputs, index](const float *value) { outputs[index] = *value; },
      Work{"output"});
  c.leftOutput(stream);
}

/// Leaves a sum and its weight, as output `index` of a walk that evaluates.
inline void output(Context &c, int stream, const char *name, int index, ArenaSpan<double> sum,
                   ArenaSpan<double> weight) {
  launch(
      c, stream, name, reads(sum, weight), writes(),
      [sums = c.sums, index](const double *sum, const double *weight) {
        sums[index] = {*sum, *weight};
      },
      Work{"output"});
  c.leftOutput(stream);
}

/// Copies this rank's part of input `index` into the arena.
template <class T>
void load_input(Context &c, int stream, const char *name, int index, ArenaSpan<T> target) {
  InputSource *source = c.inputs;
  launch(
      c, stream, name, reads(), writes(target),
      [source, index, bytes = target.bytes()](T *to) { source->load(index, to, bytes); },
      Work{"load_input", 0});
}

} // namespace fsdp::rt

#endif // FSDP_RECORD

#endif // FSDP_RUNTIME_EXECUTION_LAUNCH_H
