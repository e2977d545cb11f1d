//===- Record.h - the same program, written down instead of performed ------===//
//
// Compiled with -DFSDP_RECORD, a generated program prints one line for each action instead of
// performing it; that log must equal the compiler's schedule. Header only, nothing to link.
//
//   record STREAM EVENT
//   wait STREAM EVENT
//   launch STREAM "name" reads=[offset:bytes,...] writes=[offset:bytes,...]
//   launch STREAM "name" reads=[...] writes=[...] over=COMMUNICATOR kind=all_gather
//
// Offsets and lengths are bytes; streams and communicators are the names in the program's tables.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_EXECUTION_RECORD_H
#define FSDP_RUNTIME_EXECUTION_RECORD_H

#ifndef FSDP_RECORD
#error "Record.h is the -DFSDP_RECORD variant of Context.h and Launch.h: include those"
#endif

#include "runtime/comm/Communicator.h"
#include "runtime/device/Work.h"
#include "runtime/program/ArenaSpan.h"
#include "runtime/program/Mesh.h"
#include "runtime/program/StepState.h"
#include "runtime/program/Storage.h"
#include "runtime/program/Table.h"

#include <cstdio>

namespace fsdp::rt {
inline namespace recording {

using ActionName = const char *;

/// Represents a kernel of a CUDA program, which is not a host function.
struct RecordedKernel {
  template <class... A> void operator()(const A &...) const {}
};

/// The context of the recorded program: names and the output file.
class Context {
public:
  /// Records the program of the rank at coordinate 0 on every axis.
  Context(Table<MeshAxis> axes, Table<const char *> streams, Table<CommunicatorSpec> communicators,
          std::FILE *log = stdout)
      : axes_(axes), streams_(streams), communicators_(communicators), log_(log) {}

  std::FILE *log() const { return log_; }
  const char *streamName(int stream) const { return streams_[stream]; }
  const char *communicatorName(int index) const { return communicators_[index].name; }
  int rank() const { return 0; }
  int coordinate(int) const { return 0; }
  int worldSize() const {
    int ranks = 1;
    for (const MeshAxis &axis : axes_)
      ranks *= axis.size;
    return ranks;
  }
  int rankIn(int) const { return 0; }
  const UpdateSetting *updateSettings = nullptr;

private:
  Table<MeshAxis> axes_;
  Table<const char *> streams_;
  Table<CommunicatorSpec> communicators_;
  std::FILE *log_;
};

namespace detail {

inline void printRanges(std::FILE *log, const char *label, Table<ByteRange> ranges) {
  std::fprintf(log, " %s=[", label);
  const char *separator = "";
  for (const ByteRange &range : ranges) {
    std::fprintf(log, "%s%zu:%zu", separator, range.offset, range.bytes);
    separator = ",";
  }
  std::fputc(']', log);
}

} // namespace detail

namespace detail {

inline void print(Context &c, int stream, const char *name, Table<ByteRange> read,
                  Table<ByteRange> written, const char *kind = nullptr, int over = 0) {
  std::fprintf(c.log(), "launch %s \"%s\"", c.streamName(stream), name);
  detail::printRanges(c.log(), "reads", read);
  detail::printRanges(c.log(), "writes", written);
  if (kind)
    std::fprintf(c.log(), " over=%s kind=%s", c.communicatorName(over), kind);
  std::fputc('\n', c.log());
}

} // namespace detail

template <class... R, class... W, class Kernel>
void launch(Context &c, int stream, const char *name, Reads<R...> read, Writes<W...> written,
            const Kernel &, Work = {}) {
  detail::print(c, stream, name, {read.ranges, sizeof...(R)}, {written.ranges, sizeof...(W)});
}

template <std::size_t most, class Kernel>
void launchUntyped(Context &c, int stream, const char *name, Table<ByteRange> read,
                   Table<ByteRange> written, const Kernel &, const Work &) {
  detail::print(c, stream, name, read, written);
}

template <class... R, class... W, class Body>
void launchCollective(Context &c, int stream, const char *name, const char *kind, int over,
                      Reads<R...> read, Writes<W...> written, const Body &) {
  detail::print(c, stream, name, {read.ranges, sizeof...(R)}, {written.ranges, sizeof...(W)}, kind,
                over);
}

inline void record(Context &c, int stream, int event) {
  std::fprintf(c.log(), "record %s %d\n", c.streamName(stream), event);
}

inline void wait(Context &c, int stream, int event) {
  std::fprintf(c.log(), "wait %s %d\n", c.streamName(stream), event);
}

template <class T>
void load_input(Context &c, int stream, const char *name, int, ArenaSpan<T> target) {
  launch(c, stream, name, reads(), writes(target), 0);
}

template <class... T>
void output(Context &c, int stream, const char *name, int, ArenaSpan<T>... values) {
  launch(c, stream, name, reads(values...), writes(), 0);
}

} // namespace recording
} // namespace fsdp::rt

#endif // FSDP_RUNTIME_EXECUTION_RECORD_H
