//===- Program.h - the tables of a generated program ------------*- C++ -*-===//
//
// A generated program is a handful of functions that enqueue launches, and one
// constant table, `Program`, that says what stands where in the arena. The
// table is all that the driver (`runTraining`) knows about the model. It is
// plain constexpr data: views of constant arrays, inline short lists, and
// string literals, so that a program starts without running constructors.
//
// test/e2e/handwritten/ has one that was written by hand.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_PROGRAM_H
#define FSDP_RUNTIME_PROGRAM_H

#include "runtime/Mesh.h"
#include "runtime/Slice.h"
#include "runtime/StepState.h"
#include "runtime/Table.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace fsdp::rt {

// What the segments run against: runtime/Context.h, or runtime/cuda/Context.h, or the recording
// variant of either.
#ifdef FSDP_RECORD
inline namespace recording {
class Context;
}
#else
class Context;
#endif

/// Extents of a tensor, in elements, row-major; at most eight: `{768, 3, 12, 64}`.
class Shape {
public:
  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<std::int64_t> extents) {
    for (std::int64_t extent : extents)
      values[count++] = extent;
  }

  constexpr std::size_t size() const { return count; }
  constexpr bool empty() const { return count == 0; }
  constexpr const std::int64_t *begin() const { return values; }
  constexpr const std::int64_t *end() const { return values + count; }
  constexpr std::int64_t operator[](std::size_t i) const { return values[i]; }

private:
  std::int64_t values[8] = {};
  std::size_t count = 0;
};

/// The number of elements of `shape`; one for a scalar.
constexpr std::int64_t elements(const Shape &shape) {
  std::int64_t product = 1;
  for (std::int64_t extent : shape)
    product *= extent;
  return product;
}

/// A slice of the arena whose element type stands in a table.
struct Buffer {
  constexpr Buffer() = default;
  template <typename T>
  constexpr Buffer(Slice<T> slice) : offset(slice.offset), count(slice.count), dtype(dtypeOf<T>) {}

  std::size_t offset = 0; ///< bytes from the start of the arena
  std::size_t count = 0;  ///< elements
  DType dtype = DType::F32;
};

/// How a parameter gets its first value. The value of an element depends on
/// the seed, the parameter's name and the element's index in the whole tensor:
/// never on the mesh.
struct Initializer {
  enum Kind { Constant, Normal, Uniform };

  static constexpr Initializer zeros() { return {Constant, 0, 0}; }
  static constexpr Initializer ones() { return {Constant, 1, 0}; }
  static constexpr Initializer constant(double value) { return {Constant, value, 0}; }
  static constexpr Initializer normal(double mean, double deviation) {
    return {Normal, mean, deviation};
  }
  /// Uniform in [low, high).
  static constexpr Initializer uniform(double low, double high) { return {Uniform, low, high}; }

  Kind kind;
  double a; ///< constant, mean or low
  double b; ///< standard deviation or high
};

/// One parameter within a storage.
struct Parameter {
  const char *name;   ///< its name in weight files
  const char *alias;  ///< a second name accepted on reading, or nullptr
  Shape shape;        ///< in memory, factors apart
  Shape fileShape;    ///< in weight files: the same elements in the same order
  std::size_t offset; ///< first element within the flat unit; 0 unless the storage is flat
  Initializer init;
  bool decay; ///< whether weight decay applies
};

/// An optimizer state of a storage, laid out exactly as the parameter shard.
struct State {
  const char *name; ///< such as "exp_avg"
  Buffer shard;
};

/// How a storage is cut over the ranks of its axes.
enum class Layout {
  Flat,       ///< members one after another in one vector, which is cut in equal pieces
  Dimension,  ///< one member, cut along one dimension
  Replicated, ///< one member or several one after another, whole on each rank
};

/// Parameters that are stored, gathered and updated together: a unit. An extent
/// of d elements is cut over the n ranks of the axes in pieces of p >= d / n
/// elements, as the shard's size says; coordinate r holds [r p, (r + 1) p), and
/// what lies past d is padding, which stays zero.
struct Storage {
  const char *name; ///< the unit's name
  Layout layout;
  AxisList axes;      ///< the axes it is cut over; empty when replicated
  int communicator;   ///< index of the communicator over these axes; -1 when replicated
  int dim;            ///< the dimension that is cut (Layout::Dimension); 0 otherwise
  std::size_t size;   ///< elements of the whole, without padding
  int firstParameter; ///< how many parameters the storages before this one have
  Buffer shard;       ///< this rank's piece, padding included
  Table<State> states;
  Table<Parameter> members;
};

/// Where the samples of an input come from.
enum class Source {
  Tensor,  ///< a tensor of a safetensors file
  Tokens,  ///< tokens [i T, i T + T) of a token file are sample i
  Targets, ///< those one further on: what follows each of the tokens
};

/// An input of the step, one row of the data set per sample. Tokens and targets have samples of
/// shape {T}, T being the context, and a `limit`: the vocabulary. All inputs of a program have
/// tensors as their source, or none has.
struct Input {
  const char *name;   ///< the tensor's name in a data file
  Shape sample;       ///< extents of one sample, without the sample dimension
  int sampleDim;      ///< where the sample dimension stands among the slice's dimensions
  Buffer slice;       ///< this rank's samples
  std::int64_t batch; ///< global batch, in samples
  std::int64_t rows;  ///< samples on this rank: ceil(batch / ranks over the axes)
  AxisList axes;      ///< the axes over which samples are split
  std::int64_t limit; ///< labels and tokens: values lie in [0, limit); 0 where any value is good
  Source source = Source::Tensor;
};

enum class SegmentKind {
  Train,    ///< one step: loss, gradients, update, and the step state advanced
  Evaluate, ///< loss and metrics of one batch; leaves parameters and step state alone
};

/// A straight-line piece of the program, enqueued whole. The streams are idle before and after it.
struct Segment {
  const char *name;
  SegmentKind kind;
  void (*run)(Context &);
  /// What `output` launches leave for the log, in the order of their indices. Equal on every rank.
  /// A train segment has "loss", "grad_norm" (before clipping) and "lr" among them, an evaluate
  /// segment "loss"; the others are metrics.
  Table<const char *> outputs;
};

/// Everything the driver knows about a generated program.
struct Program {
  const char *name;
  Table<MeshAxis> axes;
  Table<int> deviceOrder;                ///< ranks in mesh order; empty for 0, 1, 2, …
  std::size_t arenaBytes;                ///< the compiler's plan for one rank
  Table<const char *> streams;           ///< names
  int events;                            ///< how many
  Table<CommunicatorSpec> communicators; ///< each over some axes
  Table<Storage> storages;
  Table<Input> inputs;
  Table<Segment> segments; ///< one of kind Train, at most one of kind Evaluate
  Slice<StepState> stepState;
  float defaultLearningRate;    ///< `--lr` overrides it
  std::int64_t tokensPerSample; ///< for the rate in the log; 1 where samples are not token rows
  const char *report;           ///< the compiler's memory report, a table that `--report` prints
  /// How ranks talk unless `--communicator` says otherwise: "auto", "shm" or "mpi".
  const char *communicator = "auto";
};

/// The number of ranks over `axes`.
constexpr int ranksOver(const Program &program, const AxisList &axes) {
  int ranks = 1;
  for (int axis : axes)
    ranks *= program.axes[axis].size;
  return ranks;
}

/// The number of ranks of the whole mesh.
constexpr int worldSize(const Program &program) {
  int ranks = 1;
  for (const MeshAxis &axis : program.axes)
    ranks *= axis.size;
  return ranks;
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_PROGRAM_H
