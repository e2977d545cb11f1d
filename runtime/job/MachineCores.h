//===- MachineCores.h - cores that the ranks of a machine may use ---------===//
#ifndef FSDP_RUNTIME_JOB_MACHINECORES_H
#define FSDP_RUNTIME_JOB_MACHINECORES_H

#include <string>

namespace fsdp::rt {

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

#endif // FSDP_RUNTIME_JOB_MACHINECORES_H
