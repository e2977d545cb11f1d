//===- Problem.h - a schedule as plain data ---------------------*- C++ -*-===//
// The problem of the planner, the wait elision and the checker: launches on streams that read and
// write byte ranges of buffers. No IR, so that all three can be fuzzed; ScheduleProblem.h
// translates.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_SCHEDULE_PROBLEM_H
#define PASSES_SCHEDULE_PROBLEM_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mlir::fsdp::schedule {

/// Every offset in the arena is a multiple of this many bytes.
constexpr int64_t kAlignment = 64;

/// A range of the arena. A persistent buffer (segment -1) keeps its contents from segment to
/// segment; another one belongs to one segment and is unwritten each time that segment starts.
struct Buffer {
  std::string name;
  int64_t size = 0;    ///< bytes
  int segment = -1;    ///< index in the role, or -1: persistent
  int64_t offset = -1; ///< bytes from the start of the arena, or -1: not planned yet
  /// The byte ranges [begin, end) of the members of a flat storage, in order; empty for other
  /// buffers. Bytes between them are padding.
  std::vector<std::pair<int64_t, int64_t>> members = {};
  /// Persistent buffers only: written before the first segment starts (parameters, optimizer
  /// states, the step state). Others (accumulators) are unwritten until a launch writes them.
  bool filled = true;

  bool isPersistent() const { return segment < 0; }
};

/// The bytes [begin, end) of a buffer.
struct Access {
  int buffer = 0;
  int64_t begin = 0, end = 0;

  bool operator==(const Access &other) const {
    return buffer == other.buffer && begin == other.begin && end == other.end;
  }
  bool overlaps(const Access &other) const {
    return buffer == other.buffer && begin < other.end && other.begin < end;
  }
};

/// The properties of a collective that must be equal on all ranks of a communicator.
struct Collective {
  int communicator = 0; ///< index in the problem
  std::string kind;     ///< mnemonic
  int64_t bytes = 0;    ///< of the whole value
  std::string arguments =
      {}; ///< other properties that must be equal, in the op's syntax: "sum", "dim 0"
  std::string type = {};  ///< of the elements
  std::string given = {}; ///< shape that one rank sends: "4x8", "scalar"; empty if it sends nothing
  std::string received = {}; ///< shape that one rank receives
  bool transfer = false;     ///< a send or a receive: their communicator has two roles

  bool operator==(const Collective &other) const {
    return communicator == other.communicator &&
           (kind == other.kind || (transfer && other.transfer)) && bytes == other.bytes &&
           arguments == other.arguments && type == other.type && given == other.given &&
           received == other.received;
  }
};

/// A T that few objects have: where there is none, it takes the space of a pointer. Copies are
/// deep.
template <typename T> class Boxed {
public:
  Boxed() = default;
  Boxed(T value) : value(std::make_unique<T>(std::move(value))) {}
  Boxed(std::optional<T> other) : value(other ? std::make_unique<T>(std::move(*other)) : nullptr) {}
  Boxed(const Boxed &other) : value(other ? std::make_unique<T>(*other) : nullptr) {}
  Boxed(Boxed &&) noexcept = default;
  Boxed &operator=(Boxed other) noexcept {
    value = std::move(other.value);
    return *this;
  }

  explicit operator bool() const { return value != nullptr; }
  bool has_value() const { return value != nullptr; }
  T &operator*() { return *value; }
  const T &operator*() const { return *value; }
  T *operator->() { return value.get(); }
  const T *operator->() const { return value.get(); }
  void reset() { value.reset(); }

private:
  std::unique_ptr<T> value;
};

/// The cost of one run of a launch on a rank, for models of time. Bytes are those of the arena:
/// each operand is read once, each result written once; a collective moves `Collective::bytes`.
struct LaunchCost {
  int64_t flops = 0; ///< a multiplication with an addition counts two
  int64_t bytesRead = 0, bytesWritten = 0;
  /// The product among its ops (dialect/nn/ProductCost.h): "matrix", "attention" or
  /// "attention_grad", its part of `flops`, its shape and the type of its operands; empty and 0
  /// where there is none. Both are texts of the module or constants.
  llvm::StringRef product = {}, productType = {};
  int64_t productFlops = 0, productExtent = 0;
  int64_t productKeys = 0; ///< of attention, the keys of a head
  /// Bytes of the loops fused after the product if they were a separate kernel.
  int64_t epilogueBytes = 0;
  bool epilogueIsBias = false;       ///< these loops only add a bias
  bool epilogueIsOperandSum = false; ///< they add up the rows of an operand, before the product
  /// Likewise of those loops that libraries of products do not compute with the product.
  int64_t remainingBytes = 0;
};

/// How a launch uses the number of the step, which changes once, at the end of a step.
enum class StepUse { none, reads, advances };

/// One kernel or collective. It starts when all earlier launches of its stream, all of `waits` and
/// the latest launch so far that recorded each event of `awaits` are complete.
struct Launch {
  std::string name;
  int stream = 0;         ///< index in the role
  std::vector<int> waits; ///< indices of launches of the segment
  std::vector<Access> reads, writes;
  /// Pairs (index in reads, index in writes) that may name the very same bytes: the kernel reads
  /// each element before it writes it.
  std::vector<std::pair<int, int>> inPlace;
  Boxed<Collective> collective;
  StepUse step = StepUse::none;
  /// Indices of events of the role. A launch that both awaits and records an event awaits the
  /// launch that recorded it before. An event without a recording is complete.
  std::vector<int> awaits = {}, records = {};
  /// The buffers' storages whose parameters the launch updates; empty for other launches. A storage
  /// is updated at most once between two launches that advance the step.
  std::vector<std::string> updates = {};
  /// Of updates: the index in `reads` of the flag without which it changes nothing, or -1.
  int condition = -1;
  bool deferred = false; ///< updates with the gradients of the step before
  /// Indices in `writes` of flags that the launch sets to false. An update on condition of a flag
  /// that is false does not count.
  std::vector<int> clears = {};
  // Texts of the module or constants.
  llvm::StringRef unit = {};      ///< of the model; empty if it belongs to no unit
  llvm::StringRef direction = {}; ///< "forward", "backward" or "update"
  llvm::StringRef kind = {};      ///< the op that it runs: "nn.einsum"; empty for constants
  LaunchCost cost = {};
  bool output = false; ///< of a step: the next one is enqueued once it is complete
  /// Bytes among `reads` and `writes` that the launch replaces by a minimum with a value: two
  /// launches that do so may run in either order.
  std::vector<Access> minima = {};
};

/// A straight line of launches in issue order.
struct Segment {
  std::string name;
  std::vector<Launch> launches;
  std::vector<int> next; ///< the segments that may follow, indices in the role
  bool joined = true;    ///< every stream is idle before the next segment starts
  std::string kind = {}; ///< the purpose of the segment
};

/// The runs of one step: segments of the role in order, each `times` times.
struct ExecutionPlan {
  std::string name;
  std::vector<int> segments;
  std::vector<int64_t> times;
};

/// The program of the ranks of one role.
struct Role {
  std::string name;
  std::vector<std::string> streams;
  std::vector<Buffer> buffers;
  std::vector<Segment> segments;
  int64_t arena = -1;                   ///< bytes, or -1: memory is not planned yet
  std::vector<std::string> events = {}; ///< names
  std::vector<ExecutionPlan> walks = {};
  /// An earlier role that is equal except for its peers, or -1: faults within a rank are reported
  /// for that role.
  int sameInside = -1;
};

/// Ranks that take part in collectives: a stream and a set of mesh axes; or a sender and a
/// receiver.
struct Communicator {
  std::string name;
  std::vector<int> roles; ///< whose ranks belong to it, indices in the problem
};

/// All roles and their communicators.
struct Problem {
  std::vector<Communicator> communicators;
  std::vector<Role> roles;
};

} // namespace mlir::fsdp::schedule

#endif // PASSES_SCHEDULE_PROBLEM_H
