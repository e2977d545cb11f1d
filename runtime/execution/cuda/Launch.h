//===- Launch.h - every action of a generated CUDA program ------------------===//
//
// The counterpart of the CPU's runtime/execution/Launch.h, with the same calls: generated programs
// of both targets have one text. An action that CUDA, NCCL or cuBLASLt refuses throws an `Error`
// with the file and line of the call, the action, the rank and the library's message.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_EXECUTION_CUDA_LAUNCH_H
#define FSDP_RUNTIME_EXECUTION_CUDA_LAUNCH_H

#include "runtime/execution/cuda/Context.h"
#include "runtime/kernels/cuda/Kernels.h"
#include "runtime/kernels/cuda/Matmul.h"
#include "runtime/kernels/cuda/ProductEpilogue.h"
#include "runtime/program/ShardUpdates.h"

#include <cstring>
#include <tuple>
#include <utility>

/// Enqueues the kernels of Kernels.def on this target.
#define FSDP_KERNEL_FUNCTION(name, function) name

namespace fsdp::rt {

/// The name of an action, a literal, and where a program calls it.
struct ActionName {
  const char *text, *file;
  int line;

  ActionName(const char *text, const char *file = __builtin_FILE(), int line = __builtin_LINE())
      : text(text), file(file), line(line) {}
};

namespace detail {

template <class T> constexpr ArenaSpan<T> sliceOf(ByteRange range) {
  return {range.offset, range.bytes / sizeof(T)};
}

/// Whether the action is noted alone, since a segment is being prepared. Else what waits for it is
/// enqueued.
bool isPrepared(Context &c, int stream, const ActionName &name, const Work &work);

/// Begins an action: writes the addresses of its slices, those read and then those written. The
/// name is set before, so that errors in them, a hang and an asynchronous failure are attributed to
/// this action.
WorkStream beginLaunch(Context &c, int stream, const ActionName &name, const Work &work,
                       Table<ByteRange> read, Table<ByteRange> written, void **addresses);

template <class... R, class... W, class Kernel, std::size_t... I, std::size_t... J>
void launchNow(Context &c, int stream, const ActionName &name, const Work &work,
               const Reads<R...> &read, const Writes<W...> &written, const Kernel &kernel,
               std::index_sequence<I...>, std::index_sequence<J...>) {
  constexpr std::size_t reads = sizeof...(R), writes = sizeof...(W);
  void *at[reads + writes + 1];
  const WorkStream on =
      beginLaunch(c, stream, name, work, {read.ranges, reads}, {written.ranges, writes}, at);
  c.check(kernel(static_cast<const R *>(at[I])..., static_cast<W *>(at[reads + J])..., on),
          name.file, name.line);
}
} // namespace detail

/// Enqueues `kernel(const R *..., W *..., stream)`, which returns a status. `work` is for traces.
template <class... R, class... W, class Kernel>
void launch(Context &c, int stream, ActionName name, Reads<R...> read, Writes<W...> written,
            const Kernel &kernel, Work work = {}) {
  if (!detail::isPrepared(c, stream, name, work))
    detail::launchNow(c, stream, name, work, read, written, kernel, std::index_sequence_for<R...>(),
                      std::index_sequence_for<W...>());
}

/// Enqueues `kernel(void *const *addresses, stream)`: the addresses of the slices that it reads,
/// then of those that it writes, `most` at most.
template <std::size_t most, class Kernel>
void launchUntyped(Context &c, int stream, ActionName name, Table<ByteRange> read,
                   Table<ByteRange> written, const Kernel &kernel, const Work &work) {
  if (detail::isPrepared(c, stream, name, work))
    return;
  void *addresses[most];
  const WorkStream on = detail::beginLaunch(c, stream, name, work, read, written, addresses);
  c.check(kernel(addresses, on), name.file, name.line);
}

/// `event` now denotes everything enqueued on `stream` so far.
void record(Context &c, int stream, int event, const char *file = __builtin_FILE(),
            int line = __builtin_LINE());

/// Later work on `stream` starts after the latest record of `event` enqueued before this call.
void wait(Context &c, int stream, int event, const char *file = __builtin_FILE(),
          int line = __builtin_LINE());

/// A launch of a collective: `body(communicator, const R *..., W *..., stream)`.
template <class... R, class... W, class Body>
void launchCollective(Context &c, int stream, ActionName name, const char *kind, int over,
                      Reads<R...> read, Writes<W...> written, const Body &body) {
  if (__builtin_expect(c.isPreparing(), 0))
    return;
  const auto call = [&](auto... p) { return body(c.comm(over, stream), p...); };
  if (std::strcmp(kind, "receive") == 0) // may be held behind others
    detail::launchNow(c, stream, name, Work{kind}, read, written, call,
                      std::index_sequence_for<R...>(), std::index_sequence_for<W...>());
  else
    launch(c, stream, name, read, written, call, Work{kind});
}

namespace detail {
void loadInput(Context &c, int stream, const ActionName &name, int index, ByteRange target);
} // namespace detail

/// Copies this rank's part of input `index`, which is in pinned memory before the segment runs,
/// into the arena.
template <class T>
void load_input(Context &c, int stream, ActionName name, int index, ArenaSpan<T> target) {
  detail::loadInput(c, stream, name, index, target.range());
}

/// Leaves a number, or a sum and its weight, as output `index` of the walk; the host reads it after
/// the segment.
void output(Context &c, int stream, ActionName name, int index, ArenaSpan<float> value);
void output(Context &c, int stream, ActionName name, int index, ArenaSpan<double> sum,
            ArenaSpan<double> weight);

/// Enqueues a product of matrices of float, or of bf16 to bf16 or float.
template <class In, class Out>
void gemm(Context &c, int stream, ActionName name, const Gemm &product, ArenaSpan<In> a,
          ArenaSpan<In> b, ArenaSpan<Out> out) {
  launch(
      c, stream, name, reads(a, b), writes(out),
      [&](auto... p) { return matmul(c.blas(), product, p...); }, gemmWork(product));
}

namespace detail {
/// The kernel of a gemm, after its product.
template <class In, class... R, class Out, class... W, class Kernel>
void launchBehindProduct(Context &c, int stream, ActionName name, const Reads<In, In, R...> &read,
                         const Writes<Out, W...> &written, const Kernel &kernel) {
  Reads<R..., Out> rest;
  std::copy_n(read.ranges + 2, sizeof...(R), rest.ranges);
  rest.ranges[sizeof...(R)] = written.ranges[0];
  launch(c, stream, name, rest, written, kernel);
}
} // namespace detail

/// Enqueues a product, the first two slices that are read by one another into the first that is
/// written, then `kernel(const R *..., const Out *product, Out *, W *..., stream)`, which may write
/// over the product, if the product was enqueued.
template <class In, class... R, class Out, class... W, class Kernel>
void gemm(Context &c, int stream, ActionName name, const Gemm &product, Reads<In, In, R...> read,
          Writes<Out, W...> written, const Kernel &kernel) {
  const ArenaSpan<Out> result = detail::sliceOf<Out>(written.ranges[0]);
  gemm(c, stream, name, product, detail::sliceOf<In>(read.ranges[0]),
       detail::sliceOf<In>(read.ranges[1]), result);
  detail::launchBehindProduct(c, stream, name, read, written, kernel);
}

/// Likewise where cuBLASLt may compute work of the kernel with the product, in one call.
template <class In, class... R, class Out, class... W, class Loops, class Rest>
void gemm(Context &c, int stream, ActionName name, const Gemm &product, Reads<In, In, R...> read,
          Writes<Out, W...> written, const ProductEpilogue<Loops, Rest> &epilogue) {
  if (__builtin_expect(c.isPreparing(), 0))
    return;
  const auto operand = [&](int number) -> const void * {
    return number < 0 ? nullptr
                      : c.base() + read.ranges[2 + static_cast<std::size_t>(number)].offset;
  };
  const auto result = [&](std::size_t number) { return c.base() + written.ranges[number].offset; };
  const bool keepsSum = epilogue.function == ProductFunction::gelu && sizeof...(W) > 0;
  const EpilogueOperands operands{operand(epilogue.bias), operand(epilogue.residual),
                                  epilogue.function, keepsSum ? result(0) : nullptr,
                                  operand(epilogue.argument)};
  const void *a = c.base() + read.ranges[0].offset, *b = c.base() + read.ranges[1].offset;
  void *to = result(keepsSum);
  constexpr cudaDataType_t in = CudaDataType<In>::value, out = CudaDataType<Out>::value;
  if (!c.blas().takes(product, in, out, a, b, to, operands))
    return gemm(c, stream, name, product, read, written, *epilogue.loops);
  launch(
      c, stream, name, read, written,
      [&](const In *, const In *, const R *..., Out *, W *..., WorkStream on) {
        return c.blas().multiply(product, in, out, a, b, to, on, operands);
      },
      gemmWork(product));
  if (epilogue.rest)
    detail::launchBehindProduct(c, stream, name, read, written, *epilogue.rest);
}

/// Enqueues a product into the first slice that is written, and the sum of the rows of one of its
/// operands into the second: in one call where cuBLASLt has both, else the product, then
/// `kernel(const In *operand, Out *sum, stream)`.
template <class In, class Out, class Kernel>
void gemm(Context &c, int stream, ActionName name, const OperandSum &product, Reads<In, In> read,
          Writes<Out, Out> written, const Kernel &kernel) {
  if (__builtin_expect(c.isPreparing(), 0))
    return;
  const auto address = [&](const ByteRange &range) { return c.base() + range.offset; };
  EpilogueOperands operands;
  operands.operandSum = address(written.ranges[1]);
  operands.sumsRight = product.ofRight;
  const void *a = address(read.ranges[0]), *b = address(read.ranges[1]);
  void *to = address(written.ranges[0]);
  constexpr cudaDataType_t in = CudaDataType<In>::value, out = CudaDataType<Out>::value;
  if (c.blas().takes(product, in, out, a, b, to, operands)) {
    launch(
        c, stream, name, read, written,
        [&](const In *, const In *, Out *, Out *, WorkStream on) {
          return c.blas().multiply(product, in, out, a, b, to, on, operands);
        },
        gemmWork(product));
    return;
  }
  const Gemm &alone = product;
  gemm(c, stream, name, alone, detail::sliceOf<In>(read.ranges[0]),
       detail::sliceOf<In>(read.ranges[1]), detail::sliceOf<Out>(written.ranges[0]));
  launch(c, stream, name, reads(detail::sliceOf<In>(read.ranges[product.ofRight])),
         writes(detail::sliceOf<Out>(written.ranges[1])), kernel);
}

/// Enqueues updates by the generated `rule`.
template <int N, class Rule>
cudaError_t perform_updates(const ShardUpdates<N> &updates, const Rule &rule, cudaStream_t stream) {
  return rule(updates, stream);
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_EXECUTION_CUDA_LAUNCH_H
