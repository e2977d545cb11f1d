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

template <class Kernel, class R, class W, class I, class J> struct LaunchAction;

/// Kernel and addresses in a stream's slot.
template <class Kernel, class... R, class... W, std::size_t... I, std::size_t... J>
struct LaunchAction<Kernel, Reads<R...>, Writes<W...>, std::index_sequence<I...>,
                    std::index_sequence<J...>> {
  Kernel kernel;
  void *address[sizeof...(R) + sizeof...(W) + 1];

  static void perform(void *closure) {
    LaunchAction &action = *static_cast<LaunchAction *>(closure);
    action.kernel(static_cast<const R *>(action.address[I])...,
                  static_cast<W *>(action.address[sizeof...(R) + J])...);
  }
};

} // namespace detail

/// Enqueues `kernel(const R *..., W *...)` on a stream. A slice that is read and written is in both
/// lists. `name` is a literal. Kernels are function pointers or closures of plain values. `work` is
/// for traces.
template <class... R, class... W, class Kernel>
void launch(Context &c, int stream, const char *name, Reads<R...> read, Writes<W...> written,
            Kernel kernel, Work work = {}) {
  using Action = detail::LaunchAction<Kernel, Reads<R...>, Writes<W...>,
                                      std::index_sequence_for<R...>, std::index_sequence_for<W...>>;
  static_assert(isClosure<Action>, "capture or pass less, values and pointers only");
  Action action{kernel, {}};
  c.enqueue(stream, name, {read.ranges, sizeof...(R)}, {written.ranges, sizeof...(W)},
            action.address, &action, sizeof(action), Action::perform, work);
}

namespace detail {
/// The same without types, of `most` addresses at most.
template <class Kernel, std::size_t most> struct UntypedAction {
  Kernel kernel;
  void *address[most];

  static void perform(void *closure) {
    UntypedAction &action = *static_cast<UntypedAction *>(closure);
    action.kernel(action.address);
  }
};
} // namespace detail

/// Enqueues `kernel(void *const *addresses)`: the addresses of the slices that it reads, then of
/// those that it writes, `most` at most.
template <std::size_t most, class Kernel>
void launchUntyped(Context &c, int stream, const char *name, Table<ByteRange> read,
                   Table<ByteRange> written, const Kernel &kernel, const Work &work) {
  using Action = detail::UntypedAction<Kernel, most>;
  static_assert(isClosure<Action>, "capture or pass less, values and pointers only");
  Action action{kernel, {}};
  c.enqueue(stream, name, read, written, action.address, &action, sizeof(action), Action::perform,
            work);
}

/// `event` now denotes everything enqueued on `stream` so far.
void record(Context &c, int stream, int event);

/// Later work on `stream` starts after the latest record of `event` enqueued before this call.
void wait(Context &c, int stream, int event);

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
void output(Context &c, int stream, const char *name, int index, ArenaSpan<float> value);

/// Leaves a sum and its weight, as output `index` of a walk that evaluates.
void output(Context &c, int stream, const char *name, int index, ArenaSpan<double> sum,
            ArenaSpan<double> weight);

namespace detail {
void loadInput(Context &c, int stream, const char *name, int index, ByteRange target);
} // namespace detail

/// Copies this rank's part of input `index` into the arena.
template <class T>
void load_input(Context &c, int stream, const char *name, int index, ArenaSpan<T> target) {
  detail::loadInput(c, stream, name, index, target.range());
}

} // namespace fsdp::rt

#endif // FSDP_RECORD

#endif // FSDP_RUNTIME_EXECUTION_LAUNCH_H
