//===- Machine.h - memory and cores for the ranks of a machine ------------===//
#ifndef FSDP_RUNTIME_JOB_MACHINE_H
#define FSDP_RUNTIME_JOB_MACHINE_H

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

/// Cores that the ranks of a machine may use.
struct MachineCores {
  int own = 1;      ///< those that this process may run on: its affinity
  int launcher = 0; ///< those of the launcher that may have bound it to some of them; 0: there is
                    ///< none, and the ranks of the machine share the cores of this process
  double quota = 0; ///< cores' worth of time that control groups allow its ranks together; 0: no
                    ///< limit

  /// The affinity of this process and of its launcher, and the limits of control groups, which are
  /// read below `root`.
  static MachineCores read(const std::string &root = "");

  /// Cores for each of `ranks` ranks of this machine, at least 1.
  int perRank(int ranks) const;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_JOB_MACHINE_H
