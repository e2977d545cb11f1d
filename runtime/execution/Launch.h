//===- Launch.h - every action of a generated program -----------------------===//
//
// `launch`, `wait`, `record`: all that a stream is ever asked to do. Named calls (gemm, all_gather,
// adamw, ...) are thin templates over `launch`, so that the recording variant sees every one of
// them.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_EXECUTION_LAUNCH_H
#define FSDP_RUNTIME_EXECUTION_LAUNCH_H

#include "runtime/execution/Context.h"

#ifndef FSDP_RECORD

#include <utility>

namespace fsdp::rt {

namespace detail {

template <class Kernel, class ReadTypes, class WriteTypes> struct LaunchAction;

/// Kernel and addresses as they lie in a stream's slot.
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

/// Enqueues `kernel(const R *..., W *...)` on a stream. A slice that is read and written stands in
/// both lists. `name` is a literal. Kernels are function pointers or closures of plain values.
/// `work` is for traces.
template <class... R, class... W, class Kernel>
void launch(Context &c, int stream, const char *name, Reads<R...> read, Writes<W...> written,
            Kernel kernel, Work work = {}) {
  detail::LaunchAction<Kernel, Reads<R...>, Writes<W...>> action{kernel, {}};
  std::size_t i = 0, bytes = 0;
  for (ByteRange range : read.ranges) {
    c.touch(range);
    bytes += range.bytes;
    action.address[i++] = c.base() + range.offset;
  }
  for (ByteRange range : written.ranges) {
    c.touch(range);
    bytes += range.bytes;
    action.address[i++] = c.base() + range.offset;
  }
  c.stream(stream).push(name, action, work, bytes);
}

/// `event` now stands for everything enqueued on `stream` so far.
inline void record(Context &c, int stream, int event) { c.stream(stream).record(c.event(event)); }

/// What follows on `stream` starts after the latest record of `event` enqueued before this call.
inline void wait(Context &c, int stream, int event) { c.stream(stream).wait(c.event(event)); }

/// A launch that meets other ranks: `body(communicator, const R *..., W *...)`.
template <class... R, class... W, class Body>
void launchCollective(Context &c, int stream, const char *name, const char *kind, int over,
                      Reads<R...> read, Writes<W...> written, Body body) {
  Communicator *communicator = &c.comm(over, stream);
  launch(
      c, stream, name, read, written,
      [communicator, body](const R *...r, W *...w) { body(*communicator, r..., w...); },
      Work{kind, 0});
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
