//===- Storage.h - how parameters are stored -----------------------*- C++ -*-===//
//
// The part of a program's tables that kernels read too: plain constexpr data.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_PROGRAM_STORAGE_H
#define FSDP_RUNTIME_PROGRAM_STORAGE_H

#include "runtime/program/ArenaSpan.h"
#include "runtime/program/Mesh.h"
#include "runtime/program/Table.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace fsdp::rt {

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

/// A slice of the arena whose element type is in a table.
struct Buffer {
  constexpr Buffer() = default;
  template <typename T>
  constexpr Buffer(ArenaSpan<T> slice)
      : offset(slice.offset), count(slice.count), dtype(dtypeOf<T>) {}
  /// A number of floats without an address.
  static constexpr Buffer unplaced(std::size_t count) {
    Buffer buffer;
    buffer.offset = kNowhere;
    buffer.count = count;
    return buffer;
  }
  constexpr bool isPlaced() const { return offset != kNowhere; }

  static constexpr std::size_t kNowhere = SIZE_MAX;
  /// The offset where only programs of other roles have a place for it.
  static constexpr std::size_t kElsewhere = SIZE_MAX - 1;

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

/// How one dimension of a parameter is split in compute, or padded, or both: a rank has the part of
/// its index along `axes` (all of it, where there are none), of `part` elements; those past the
/// extent are zero.
struct Split {
  int dim;
  AxisList axes = {};
  std::int64_t part;
};

/// One parameter within a storage.
struct Parameter {
  const char *name;            ///< its name in weight files
  const char *alias = nullptr; ///< a second name accepted on reading, or nullptr
  Shape shape;                 ///< in memory, factors apart
  Shape fileShape;             ///< in weight files: the same elements in the same order
  std::size_t offset = 0;      ///< first element within the flat unit; 0 unless the storage is flat
  Initializer init;
  bool decay = false; ///< whether weight decay applies
  int position = 0;   ///< among all parameters, as the model declares them
  /// In the order of the dimensions. A rank stores, and computes with, its part.
  Table<Split> splits = {};
  bool frozen = false; ///< not trained
};

/// The extent of dimension `dim` of a rank's part of `parameter`.
constexpr std::int64_t partExtent(const Parameter &parameter, std::size_t dim) {
  for (const Split &split : parameter.splits)
    if (static_cast<std::size_t>(split.dim) == dim)
      return split.part;
  return parameter.shape[dim];
}

/// The number of elements of a rank's part of `parameter`.
constexpr std::int64_t partElements(const Parameter &parameter) {
  std::int64_t product = 1;
  for (std::size_t dim = 0; dim < parameter.shape.size(); ++dim)
    product *= partExtent(parameter, dim);
  return product;
}

/// An optimizer state of a storage, laid out as the parameter shard.
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
/// elements from d on are padding, which stays zero.
struct Storage {
  const char *name; ///< the unit's name
  Layout layout;
  AxisList axes = {};    ///< the axes it is cut over; empty when replicated
  int communicator = -1; ///< index of the communicator over these axes; -1 when replicated
  int dim = 0;           ///< the dimension that is cut (Layout::Dimension); 0 otherwise
  /// Elements of the members (of their parts, where they are split), without padding.
  std::size_t size;
  int firstParameter = 0; ///< how many parameters the storages before this one have
  Buffer shard;           ///< this rank's piece, padding included; unplaced where the copy holds it
  Table<State> states = {};
  Table<Parameter> members = {};
  Buffer copy = {}; ///< all members, without padding, on every rank, in f32 or bf16; empty where
                    ///< there is none
  /// Over which the members are split in compute, in the order of the mesh.
  AxisList splitAxes = {};
  /// The roles that own it (runtime/program/Roles.h), by number; empty: all. Its buffers are
  /// elsewhere in programs of other roles.
  Table<int> roles = {};

  constexpr bool hasCopy() const { return copy.count > 0; }
  /// The copy as a storage of its own, on each rank.
  constexpr Storage asReplicated() const {
    Storage storage = *this;
    storage.layout = Layout::Replicated;
    storage.axes = {};
    storage.communicator = -1;
    storage.dim = 0;
    storage.shard = copy;
    storage.states = {};
    storage.copy = {};
    return storage;
  }
};

/// Properties of one parameter's update.
struct UpdateSetting {
  float rateScale = 1; ///< factor of the learning rate
  bool decays = false; ///< whether weight decay applies

  constexpr bool operator==(const UpdateSetting &other) const {
    return rateScale == other.rateScale && decays == other.decays;
  }
};

/// The part of a shard that a kernel works on: the storage's table (a constant
/// of the program) and this rank's coordinate, which give the member of each
/// element.
struct ShardOf {
  const Storage *storage;
  int coordinate;
  /// Of all parameters of the program, on the host; null: the tables say where weight decay
  /// applies, and no rate is scaled.
  const UpdateSetting *settings = nullptr;

  /// Of a member of the storage.
  constexpr UpdateSetting settingOf(std::size_t member) const {
    return settings ? settings[static_cast<std::size_t>(storage->firstParameter) + member]
                    : UpdateSetting{1, storage->members[member].decay};
  }
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_PROGRAM_STORAGE_H
