//===- Roles.h - ranks that run different programs --------------*- C++ -*-===//
//
// [Note: roles] A plan has one program for each role. The role of a rank is its coordinate on the
// axes whose ranks run different programs (Program::roleAxes, such as `pipeline`), as one number,
// row-major. A storage names the roles that own it, an input those that load it: programs of other
// roles have the same row in their tables, without a place in the arena. So each rank knows all
// tensors of the model, and which ranks hold them, from the tables of its program. Whatever reads
// or writes storages (initial values, checkpoints, exports) asks `replicaAt`, and nothing else
// decides which ranks hold a tensor.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_PROGRAM_ROLES_H
#define FSDP_RUNTIME_PROGRAM_ROLES_H

#include "runtime/program/Program.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace fsdp::rt {

/// One of the ranks that hold the same part of a tensor.
struct Replica {
  std::size_t index; ///< among them, from 0
  std::size_t count; ///< of them
};

/// Of the shard of `storage` that the rank at `position` holds; nothing if its role does not own
/// the storage.
std::optional<Replica> replicaAt(const Program &program, const Storage &storage,
                                 const RankPosition &position);
/// Of the samples of `input` that the rank at `position` loads; nothing if its role loads none.
std::optional<Replica> replicaAt(const Program &program, const Input &input,
                                 const RankPosition &position);

/// The program of `plan` that the rank at `position` runs.
const Program &programAt(const Program &plan, const RankPosition &position);
/// The most bytes of the arenas of its programs: ranks on one machine map arenas of one size.
std::size_t arenaBytesOf(const Program &plan);
/// Of the sources of all its programs; 0: not known.
std::uint64_t digestOf(const Program &plan);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_PROGRAM_ROLES_H
