//===- Program.h - the tables of a generated program ------------*- C++ -*-===//
//
// A generated program is a handful of functions that enqueue launches, and one constant
// table, `Program`, with the layout of the arena. The table is the driver's (`runTraining`)
// only description of the model. It is plain constexpr data: views of constant arrays,
// inline short lists, and string literals, so that a program starts without running
// constructors.
//
// test/e2e/handwritten/ has one that was written by hand.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_PROGRAM_PROGRAM_H
#define FSDP_RUNTIME_PROGRAM_PROGRAM_H

#include "runtime/program/ArenaSpan.h"
#include "runtime/program/Mesh.h"
#include "runtime/program/StepState.h"
#include "runtime/program/Storage.h"
#include "runtime/program/Table.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

// The context of the segments: runtime/execution/Context.h, or runtime/execution/cuda/Context.h, or
// the recording variant of either.
#ifdef FSDP_RECORD
inline namespace recording {
class Context;
}
#else
class Context;
#endif

/// The source of the samples of an input.
enum class Source {
  Tensor,  ///< a tensor of a safetensors file
  Tokens,  ///< tokens [i T, i T + T) of a token file are sample i
  Targets, ///< those one position later: the successor of each token
};

/// An input of the step, one row of the data set per sample. Tokens and targets have samples of
/// shape {T}, T being the context, and a `limit`: the vocabulary. All inputs of a program have
/// tensors as their source, or none has.
struct Input {
  const char *name;       ///< the tensor's name in a data file
  Shape sample;           ///< extents of one sample, without the sample dimension
  int sampleDim = 0;      ///< the index of the sample dimension among the slice's dimensions
  Buffer slice;           ///< this rank's samples
  std::int64_t batch;     ///< global batch, in samples
  std::int64_t rows;      ///< samples of one load: ceil(ceil(batch / ranks over the axes) / parts)
  AxisList axes = {};     ///< the axes over which samples are split
  std::int64_t limit = 0; ///< labels and tokens: values are in [0, limit); 0: any value
  Source source = Source::Tensor;
  /// Microbatches: loads that take a rank's samples of a batch, one after another.
  std::int64_t parts = 1;
  /// The roles that load it, by number; empty: all. The slice is elsewhere in programs of others.
  Table<int> roles = {};
};

/// A range of the arena that holds something from the start of launch `first` to the end of launch
/// `last`.
struct BufferLife {
  std::int64_t bytes;
  int first, last;
};

/// An all-gather, and the first launch that uses its result.
struct GatherUse {
  int gather, use;
};

/// The tables of a segment's plan for traces: constant, and read only where a run is traced.
/// Launches are numbered in issue order from 0.
struct SegmentTrace {
  Table<std::uint8_t> streams = {}; ///< of each launch
  Table<BufferLife> lives = {};
  Table<GatherUse> uses = {};
};

/// A straight-line piece of the program, enqueued whole.
struct Segment {
  const char *name;
  void (*run)(Context &);
  /// The streams are idle before later work is enqueued. Otherwise launches of this segment may
  /// still be running then, and later ones wait for events where they must.
  bool joined = true;
  SegmentTrace trace = {}; ///< read where a run is traced only
};

/// A segment, and how often it runs.
struct SegmentRuns {
  int segment; ///< in the table of the program
  std::int64_t times;
};

/// The segments enqueued for one step, in order.
struct ExecutionPlan {
  const char *name = nullptr;
  Table<SegmentRuns> runs = {}; ///< none if the program lacks this
  /// The numbers that `output` launches write for the log, by index. Equal on every rank.
  Table<const char *> outputs = {};
  /// Sums and weights are those of the first `StepState::samples` samples of the batch. Without it
  /// the walk takes whole batches only.
  bool countsSamples = false;
  /// The outputs, by index, that count values which are not finite where the model checks them
  /// ("NAME.check"), in the order of the model. The update is skipped unless all are 0.
  Table<int> checks = {};
};

/// A file that the model puts beside its weights in a checkpoint, for programs that load them.
struct ExtraFile {
  const char *name;
  const char *text;
};

/// An entry of the file that describes a model beside its weights, in JSON.
struct ConfigEntry {
  /// Where files have it, separated by '|'; '.' leads into an object:
  /// "rope_theta|rope_parameters.rope_theta".
  const char *names;
  const char *value; ///< JSON: the value that this program uses
  /// JSON: the value implied by a file that has none of the names, or null there; "": it must have
  /// one.
  const char *implied = "";
  const char *same = "[]"; ///< JSON: values that mean the same as `value`
  /// Of the program that described the model: the option that sets the value; "": none does.
  const char *option = "";
};

/// Entries with which weights are compared before training starts from them.
struct ModelConfig {
  const char *file = ""; ///< its name, beside the weights
  Table<ConfigEntry> entries = {};
};

/// Parameters that are trained beside a weight: the program computes with weight + scale * up *
/// down, in the shapes of files: down (rank, in), up (out, rank), weight (out, in).
struct Adapter {
  const char *weight, *down, *up; ///< names
  double scale = 1;
  bool transposed = false; ///< the weight is (in, out)
};

/// The adapters of a program, and the files that describe them next to their weights.
struct Adapters {
  Table<ExtraFile> files = {};
  Table<Adapter> products = {};
};

struct TextRun;
#ifdef FSDP_RECORD
inline void generateText(const TextRun &) {}
#else
/// The run of `generate` on one rank (runtime/train/TextGeneration.h). Error: the prompt is no text
/// of the model's tokens, has none, or is with the tokens asked for longer than the context.
void generateText(const TextRun &run);
#endif

/// The plans that a program compiled with --generate has beside those of training: they take tokens
/// of one sample, the same on every rank, at given positions. Their inputs follow those of data
/// sets in the array of `Program::inputs`: token ids, and after them positions. Both plans keep the
/// state of their tokens that later ones read.
struct Generation {
  ExecutionPlan prefill = {}; ///< of several tokens, without scores; none where nothing is kept
  ExecutionPlan decode = {};  ///< of one token
  /// Scores of the token that follows the one of the last decode, `vocabulary` of them and padding.
  Buffer logits = {};
  std::int64_t vocabulary = 0;
  int prefillInput = 0;
  std::int64_t prefillTokens = 0; ///< of a prefill; the context is a multiple
  int decodeInput = 0;
  std::int64_t context = 0; ///< number of positions
  /// So that programs without this do not link the code that it needs.
  void (*generate)(const TextRun &) = nullptr;
};

/// A constant of the update rule: its default, which the command line overrides.
struct UpdateConstant {
  const char *name; ///< "weight_decay"; the option is --weight-decay
  float value;
  bool isFraction = false; ///< in [0, 1); others are at least 0
  /// It is 0, and the program has not the state that it needs with another value.
  bool isFixed = false;
};

/// The driver's description of a generated program.
struct Program {
  const char *name;
  Table<MeshAxis> axes = {};
  Table<int> deviceOrder = {};                ///< ranks in mesh order; empty for 0, 1, 2, …
  std::size_t arenaBytes = 0;                 ///< the compiler's plan for one rank
  Table<const char *> streams = {};           ///< names
  int events = 0;                             ///< how many
  Table<CommunicatorSpec> communicators = {}; ///< each over some axes
  Table<Storage> storages = {};
  Table<Input> inputs = {};
  Table<Segment> segments = {};
  /// One step: loss, gradients, update, and the step state advanced. It leaves numbers: "loss",
  /// "grad_norm" (before clipping) and "lr" are among them, the others are metrics.
  ExecutionPlan train = {};
  /// One batch; leaves parameters and step state alone. Its outputs, "loss" among them, are sums
  /// and weights, which the driver adds up over batches before it divides.
  ExecutionPlan evaluate = {};
  ArenaSpan<StepState> stepState;
  float defaultLearningRate = 0;    ///< `--lr` overrides it
  std::int64_t tokensPerSample = 1; ///< for the rate in the log; 1 where samples are not token rows
  const char *report = ""; ///< the compiler's memory report, a table that `--report` prints
  /// The default of `--communicator`: "auto", "shm", "tcp" or "mpi".
  const char *communicator = "auto";
  ScheduleOptions schedule = {}; ///< of the learning rate; the command line overrides it
  const char *updateRule = "";   ///< "adamw"
  Table<UpdateConstant> updateConstants = {}; ///< in the order of StepState::constants
  /// Norm to which gradients are clipped; 0: the program never clips. The command line overrides
  /// any but 0.
  float clip = 0;
  /// How updates of parameters differ; the command line overrides either. "PATTERN=X" each, and
  /// patterns: see base/ParameterGroups.h.
  Table<const char *> rateScales = {}, noDecay = {};
  /// Of the emitted source; 0: not known. Programs that differ, if only in a constant, have
  /// another.
  std::uint64_t digest = 0;
  const char *options = "";         ///< of the compiler that were given, as a shell reads them
  std::int64_t persistentBytes = 0; ///< of the arena: alive in every segment; for traces
  /// The updates that a step has left for the next one, which then does not perform them: before
  /// anything but the next step looks at parameters. Leaves no outputs. None where updates stand in
  /// their own step.
  ExecutionPlan drain = {};
  Table<ExtraFile> extraFiles = {};
  /// "v1:9d2f0c1e8a7b6543": of the model as it was described; "": not known.
  const char *modelDigest = "";
  ModelConfig config = {};
  const char *compilation = ""; ///< a JSON object: the compiler and its options; "": not known
  /// Of a training step on one rank: the products of forward, times three, without recomputation.
  /// 0: not known.
  double modelFlops = 0;
  /// Seconds for them at the peak of the compiler's machine; 0 if unknown.
  double peakSeconds = 0;
  Adapters adapters = {};
  Generation generation = {};
  /// Where ranks run different programs (runtime/program/Roles.h): the axes along which they
  /// differ, the name and the numbers of the role of this program, and the programs of all roles,
  /// this one included. The programs have the same axes, streams, communicators, storages and
  /// inputs, by the same numbers, and write the same outputs.
  AxisList roleAxes = {};
  const char *role = "";
  Table<int> roles = {};
  Table<const Program *> programs = {};
};

/// The programs of one model for several meshes, in the order in which the compiler was given
/// these; at least one. They have the same name, inputs, outputs and evaluation. A plan whose ranks
/// run different programs is here as one of these; Program::programs has all.
using Plans = Table<const Program *>;

/// The number of ranks over `axes`.
constexpr int ranksOver(const Program &program, const AxisList &axes) {
  int ranks = 1;
  for (int axis : axes)
    ranks *= program.axes[axis].size;
  return ranks;
}

/// The samples of a batch, over all ranks.
constexpr std::int64_t globalBatch(const Program &program) {
  return program.inputs.empty() ? 1 : program.inputs[0].batch;
}

/// Whether samples are rows of tokens: the model is one of language.
constexpr bool readsTokens(const Program &program) {
  for (const Input &input : program.inputs)
    if (input.source != Source::Tensor)
      return true;
  return false;
}

/// The number of ranks of the whole mesh.
constexpr int worldSize(const Program &program) {
  int ranks = 1;
  for (const MeshAxis &axis : program.axes)
    ranks *= axis.size;
  return ranks;
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_PROGRAM_PROGRAM_H
