//===- MachineMemory.h - available memory of the machine ------------------===//
#ifndef FSDP_RUNTIME_JOB_MACHINEMEMORY_H
#define FSDP_RUNTIME_JOB_MACHINEMEMORY_H

#include <cstdint>
#include <string>

namespace fsdp::rt {

/// Bytes of memory; UINT64_MAX: not known, or without a limit.
struct MachineMemory {
  std::uint64_t total = UINT64_MAX, available = UINT64_MAX; ///< of the machine
  /// Of this process's control group (a container, a batch job): its limit, and the part of it that
  /// is not used, not counting cached files.
  std::uint64_t groupLimit = UINT64_MAX, groupAvailable = UINT64_MAX;

  /// Reads /proc and /sys below `root`.
  static MachineMemory read(const std::string &root = "");
};

/// Throws an Error if `ranks` arenas of `arenaBytes` do not fit into the available memory. Called
/// by the ranks of a machine before any of them uses its arena.
void requireMemory(const MachineMemory &memory, int ranks, std::uint64_t arenaBytes);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_MACHINEMEMORY_H
