//===- CheckpointLayout.h - the tensors in checkpoint files ---------------===//
//
// The tensor files of a checkpoint do not depend on the mesh: `model.safetensors` holds every
// parameter, and a file for each kind of optimizer state (`exp_avg.safetensors`) holds that state
// of each parameter that has it, under the parameter's name. All tensors are whole, in the order in
// which the model declares them. Each rank writes the ranges that its shards hold.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_TRAIN_CHECKPOINTLAYOUT_H
#define FSDP_RUNTIME_TRAIN_CHECKPOINTLAYOUT_H

#include "runtime/program/Program.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace fsdp::rt {

/// A tensor of a file: F32, whole.
struct CheckpointTensor {
  std::string name;
  std::vector<std::int64_t> shape; ///< in files
  std::size_t elements;
  std::uint64_t offset; ///< of its first byte in the file
};

struct CheckpointFile {
  std::string name;   ///< "exp_avg.safetensors"
  std::string header; ///< its first bytes, before the data of the tensors
  std::vector<CheckpointTensor> tensors;
  std::uint64_t bytes; ///< of the file
};

/// Consecutive elements of a tensor that are consecutive in a shard.
struct CheckpointPiece {
  std::size_t file, tensor;
  std::size_t inShard, inTensor, count; ///< elements
};

/// The part of a shard that a rank writes. Ranks that hold the same shard write a part of it each.
struct ShardShare {
  const Storage *storage;
  Buffer shard;
  std::size_t begin, end; ///< elements of the shard; all pieces are between them
  std::vector<CheckpointPiece> pieces;
};

class CheckpointLayout {
public:
  /// Error: a storage that is not f32.
  explicit CheckpointLayout(const Program &program);
  CheckpointLayout(const CheckpointLayout &) = delete;
  CheckpointLayout(CheckpointLayout &&) = default;

  /// `model.safetensors` first, the others in the order of their names.
  const std::vector<CheckpointFile> &files() const { return list; }
  /// The shares that the rank at these coordinates (one for each axis of the mesh) writes. The
  /// shares of all ranks cover every element of every tensor once.
  std::vector<ShardShare> sharesOf(const std::vector<int> &coordinates) const;
  /// A digest of names, shapes and states: the same on every mesh.
  std::string fingerprint() const;

private:
  struct Shard {
    const Storage *storage;
    Buffer buffer;
    std::size_t file;
    std::vector<std::size_t> tensors; ///< of each member
  };
  const Program &program;
  std::deque<Storage> replicated; ///< copies whose shards are not stored; `shards` points to them
  std::vector<CheckpointFile> list;
  std::vector<Shard> shards;
};

/// Sum over elements [first, first + count) of a tensor of hash(index, bits), modulo 2^64. Sums of
/// disjoint ranges add up to that of the whole tensor, in any order.
std::uint64_t checksum(const float *values, std::size_t first, std::size_t count);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_CHECKPOINTLAYOUT_H
