//===- Record.h - the same CUDA program, written down instead of performed --===//
//
// Compiled with -DFSDP_RECORD, a generated CUDA program prints one line for each action: the lines
// of runtime/execution/Record.h, with the same meaning. Header only: neither CUDA's headers nor a
// library are needed.
//
// Operands, streams, events and communicators are tokens that know what they stand for; the doubles
// of CUDA's, NCCL's and the kernels' functions print the tokens that they are given, in order.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_EXECUTION_CUDA_RECORD_H
#define FSDP_RUNTIME_EXECUTION_CUDA_RECORD_H

#ifndef FSDP_RECORD
#error "Record.h is the -DFSDP_RECORD variant of Context.h: include that"
#endif

#include "runtime/comm/Communicator.h"
#include "runtime/program/ArenaSpan.h"
#include "runtime/program/ExchangeLayout.h"
#include "runtime/program/KernelArguments.h"
#include "runtime/program/Mesh.h"
#include "runtime/program/Program.h"
#include "runtime/program/Table.h"

#include <cstdio>
#include <initializer_list>

namespace fsdp::rt {
inline namespace recording {

class Context;

/// Tokens: what a recording context gives instead of addresses and handles.
template <class T> struct RecordedIn {
  ByteRange range;
};
template <class T> struct RecordedOut {
  ByteRange range;
};
struct RecordedStream {
  const Context *context;
  int index;
};
struct RecordedEvent {
  int index;
};
struct RecordedComm {
  int index;
};
struct RecordedBlas {};
struct RecordedHostMemory {};

/// What a double was given: the ranges that its line lists. Anything that is no token (shapes,
/// counts, null pointers) is passed over.
struct ActionLine {
  const Context *context = nullptr; ///< null where there is nothing to write
  const char *kind = nullptr;
  int stream = -1, over = -1;
  ByteRange reads[64], writes[64];
  int readCount = 0, writeCount = 0;

  template <class T> void take(const T &) {}
  template <class T> void take(const RecordedIn<T> &in) { reads[readCount++] = in.range; }
  template <class T> void take(const RecordedOut<T> &out) { writes[writeCount++] = out.range; }
  void take(const RecordedComm &comm) { over = comm.index; }
  void take(const RecordedStream &token) {
    context = token.context;
    stream = token.index;
  }
  /// Goes on with what a later call of the same action takes: what it reads of the first one's
  /// results comes from inside.
  void goOn(const ActionLine &next) {
    const auto writesAlready = [this](ByteRange range) {
      for (int i = 0; i < writeCount; ++i)
        if (writes[i].offset == range.offset && writes[i].bytes == range.bytes)
          return true;
      return false;
    };
    for (int i = 0; i < next.readCount; ++i)
      if (!writesAlready(next.reads[i]))
        reads[readCount++] = next.reads[i];
    for (int i = 0; i < next.writeCount; ++i)
      if (!writesAlready(next.writes[i]))
        writes[writeCount++] = next.writes[i];
  }
};

/// What every double returns.
using RecordedStatus = ActionLine;

/// What the recorded program runs against: names and a file to write to.
class Context {
public:
  /// Records the program of the rank at coordinate 0 on every axis.
  Context(Table<MeshAxis> axes, Table<const char *> streams, Table<CommunicatorSpec> communicators,
          std::FILE *log = stdout)
      : axes_(axes), streams_(streams), communicators_(communicators), log_(log) {}

  int rank() const { return 0; }
  int coordinate(int) const { return 0; }
  int worldSize() const {
    int ranks = 1;
    for (const MeshAxis &axis : axes_)
      ranks *= axis.size;
    return ranks;
  }
  int rankIn(int) const { return 0; }
  int sizeOf(int index) const {
    int ranks = 1;
    for (int axis : communicators_[index].axes)
      ranks *= axes_[axis].size;
    return ranks;
  }

  template <class T> RecordedIn<T> in(ArenaSpan<T> slice) const {
    return {{slice.offset, slice.bytes()}};
  }
  template <class T> RecordedOut<T> out(ArenaSpan<T> slice) const {
    return {{slice.offset, slice.bytes()}};
  }
  RecordedStream stream(int index) const { return {this, index}; }
  RecordedEvent event(int index) const { return {index}; }
  RecordedComm comm(int index, int) const { return {index}; }
  RecordedBlas blas() const { return {}; }
  RecordedHostMemory output(int) const { return {}; }
  RecordedHostMemory sum(int) const { return {}; }
  RecordedHostMemory weight(int) const { return {}; }
  RecordedHostMemory staged(int) const { return {}; }

  Context &at(const char *name) {
    action_ = name;
    return *this;
  }
  void check(const RecordedStatus &line, const char *, int) const;
  template <class Second>
  void check(const InOrder<RecordedStatus, Second> &calls, const char *, int) const {
    RecordedStatus line = calls.first;
    line.goOn(calls.second());
    check(line, nullptr, 0);
  }

  std::FILE *log() const { return log_; }
  const char *action() const { return action_; }
  const char *streamName(int stream) const { return streams_[stream]; }
  const char *communicatorName(int index) const { return communicators_[index].name; }

private:
  Table<MeshAxis> axes_;
  Table<const char *> streams_;
  Table<CommunicatorSpec> communicators_;
  std::FILE *log_;
  const char *action_ = "";
};

namespace detail {

template <class... Args> RecordedStatus recordLaunch(const char *kind, const Args &...args) {
  ActionLine line;
  line.kind = kind;
  (line.take(args), ...);
  return line;
}

inline void printRanges(std::FILE *log, const char *label, const ByteRange *ranges, int count) {
  std::fprintf(log, " %s=[", label);
  for (int i = 0; i < count; ++i)
    std::fprintf(log, "%s%zu:%zu", i ? "," : "", ranges[i].offset, ranges[i].bytes);
  std::fputc(']', log);
}

} // namespace detail

inline void Context::check(const RecordedStatus &line, const char *, int) const {
  if (!line.context)
    return;
  std::fprintf(log_, "launch %s \"%s\"", streamName(line.stream), action_);
  detail::printRanges(log_, "reads", line.reads, line.readCount);
  detail::printRanges(log_, "writes", line.writes, line.writeCount);
  if (line.kind)
    std::fprintf(log_, " over=%s kind=%s", communicatorName(line.over), line.kind);
  std::fputc('\n', log_);
}

//===----------------------------------------------------------------------===//
// CUDA and NCCL
//===----------------------------------------------------------------------===//

enum { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum { ncclInt8, ncclUint8, ncclInt32, ncclInt = ncclInt32, ncclInt64, ncclFloat32 };
enum { ncclFloat = ncclFloat32, ncclFloat64, ncclDouble = ncclFloat64, ncclBfloat16 };
enum { ncclSum, ncclMax };

inline RecordedStatus cudaStreamWaitEvent(RecordedStream stream, RecordedEvent event,
                                          unsigned = 0) {
  std::fprintf(stream.context->log(), "wait %s %d\n", stream.context->streamName(stream.index),
               event.index);
  return {};
}
inline RecordedStatus cudaEventRecord(RecordedEvent event, RecordedStream stream) {
  std::fprintf(stream.context->log(), "record %s %d\n", stream.context->streamName(stream.index),
               event.index);
  return {};
}

/// A function of the program that is no collective, by its name: its double prints a launch. Each
/// kernel word of the runtime has one below; a program's own kernels get theirs in its kernels.h.
#define FSDP_RECORDED_KERNEL(name)                                                                 \
  template <class... Args>::fsdp::rt::recording::RecordedStatus name(const Args &...args) {        \
    return ::fsdp::rt::recording::detail::recordLaunch(nullptr, args...);                          \
  }
#define FSDP_RECORDED_COLLECTIVE(name, kind)                                                       \
  template <class... Args> RecordedStatus name(const Args &...args) {                              \
    return detail::recordLaunch(kind, args...);                                                    \
  }

FSDP_RECORDED_COLLECTIVE(ncclAllGather, "all_gather")
FSDP_RECORDED_COLLECTIVE(ncclReduceScatter, "reduce_scatter")
FSDP_RECORDED_COLLECTIVE(ncclAllReduce, "all_reduce")
FSDP_RECORDED_COLLECTIVE(ncclBroadcast, "broadcast")
FSDP_RECORDED_COLLECTIVE(all_gather, "all_gather")
FSDP_RECORDED_COLLECTIVE(all_to_all, "all_to_all")
FSDP_RECORDED_COLLECTIVE(collective_permute, "collective_permute")
FSDP_RECORDED_COLLECTIVE(receive, "receive")
FSDP_RECORDED_COLLECTIVE(reduce_scatter, "reduce_scatter")
FSDP_RECORDED_COLLECTIVE(send, "send")
FSDP_RECORDED_KERNEL(cudaMemcpyAsync)
FSDP_RECORDED_KERNEL(cudaMemsetAsync)

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

FSDP_RECORDED_KERNEL(advance)
FSDP_RECORDED_KERNEL(all_finite)
FSDP_RECORDED_KERNEL(all_slice)
FSDP_RECORDED_KERNEL(attention)
FSDP_RECORDED_KERNEL(attention_grad)
FSDP_RECORDED_KERNEL(concat)
FSDP_RECORDED_KERNEL(cross_entropy)
FSDP_RECORDED_KERNEL(cross_entropy_grad)
FSDP_RECORDED_KERNEL(dropout)
FSDP_RECORDED_KERNEL(embedding)
FSDP_RECORDED_KERNEL(embedding_grad)
FSDP_RECORDED_KERNEL(layer_norm)
FSDP_RECORDED_KERNEL(layer_norm_grad)
FSDP_RECORDED_KERNEL(learning_rate)
FSDP_RECORDED_KERNEL(matmul)
FSDP_RECORDED_KERNEL(pad)
FSDP_RECORDED_KERNEL(partial_cross_entropy)
FSDP_RECORDED_KERNEL(rms_norm)
FSDP_RECORDED_KERNEL(rms_norm_grad)
FSDP_RECORDED_KERNEL(microbatch_samples)
FSDP_RECORDED_KERNEL(next_microbatch)
FSDP_RECORDED_KERNEL(sample_count)
FSDP_RECORDED_KERNEL(shard_indices)
FSDP_RECORDED_KERNEL(shard_offset)
FSDP_RECORDED_KERNEL(shard_size)
FSDP_RECORDED_KERNEL(slice)
FSDP_RECORDED_KERNEL(square_sum)

#define FSDP_RECORDED_UNARY(name, Shape) FSDP_RECORDED_KERNEL(name)
FSDP_UNARY_KERNELS(FSDP_RECORDED_UNARY)
#undef FSDP_RECORDED_UNARY

#undef FSDP_RECORDED_COLLECTIVE

} // namespace recording
} // namespace fsdp::rt

#endif // FSDP_RUNTIME_EXECUTION_CUDA_RECORD_H
