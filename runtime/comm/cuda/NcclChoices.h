//===- NcclChoices.h - which features of NCCL are used --------------------===//
//
// Whether all-gathers use copy engines and whether the arena is registered as a window depends on
// environment variables and the version of NCCL. Nothing here calls NCCL or CUDA.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_COMM_CUDA_NCCLCHOICES_H
#define FSDP_RUNTIME_COMM_CUDA_NCCLCHOICES_H

#include "base/EnvironmentFlag.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fsdp::rt {

using base::Variables;

/// FSDP_NCCL_*, "0" or "1" each. Errors (bad command line): another value; copy engines without
/// windows.
struct NcclChoices {
  bool always = false;             ///< a communicator of one rank uses NCCL too
  bool window = true;              ///< the arena is registered with communicators
  std::optional<bool> copyEngines; ///< not set: depends on whyNoCopyEngines

  static NcclChoices from(Variables variables);
};

/// Null if copy engines may perform the all-gathers of a communicator of `ranks` ranks on `nodes`
/// nodes, otherwise the reason why not. `version` is that of ncclGetVersion, such as 22809.
///
/// [Note: copy engines] A communicator with CTA policy zero gathers between windows by copies,
/// which take no multiprocessor. From 2.29.2 on, GPUs of compute capability 10.0 gather more than
/// NCCL_SYM_CE_THRESHOLD elements so with any policy (taskAppend in enqueue.cc): that is set to
/// kNoSymmetricThreshold, so that the policy alone decides. By NCCL's sources and release notes
/// copy engines do not work everywhere:
/// - Two ranks, 2.29.7 to 2.31.1: the first one may hang (NVIDIA/nccl#2241). The team for multicast
/// is made by it, without
///   a barrier, as sym_kernels.cc makes it for more than two ranks only.
/// - 8 copies at a time from 512 MiB on, before 2.30.3: with an even number of such batches (9 to
/// 17 ranks, 25 to 33, ...)
///   the last synchronization uses the flags of the first one, and may end early (ncclMemOpSync).
///   From 2.29.2 on batches are not synchronized if NCCL was built for CUDA 12.8 or later; that
///   version cannot be queried, so the answer is no there too, at the cost of speed.
/// - Several nodes, from 2.30.7: the CPU forwards data between nodes, except where NVLink joins
///   them (ncclHierCeAvailable), which is unknown here.
const char *whyNoCopyEngines(int version, int ranks, int nodes);

/// Throws (no device) if NCCL cannot start the kernels of several communicators of a device in the
/// order of their launches, as NCCL_LAUNCH_ORDER_IMPLICIT requests: before version 12.3 of driver
/// or runtime, each kernel must end before the next one starts (getImplicitOrder in enqueue.cc), so
/// that in a chain of ranks a sum after a receive waits for a send after that sum. Versions are
/// CUDA's, such as 12030. The relevant runtime is the one that NCCL was built for, which cannot be
/// queried: that of the program is used instead.
void requireLaunchOrder(int driver, int runtime, int ranks);

/// A communicator of the program.
struct GatherGroup {
  std::string name;
  int ranks = 1, nodes = 1;
};
/// Whether a communicator that gathers between windows requests copy engines.
bool asksForCopyEngines(int version, const NcclChoices &choices, const GatherGroup &group);
/// Value of NCCL_SYM_CE_THRESHOLD that no number of elements exceeds.
constexpr const char *kNoSymmetricThreshold = "9223372036854775807";
/// Whether the environment makes NCCL gather by copy engines although a communicator does not
/// request them.
bool mayCopyUnasked(Variables variables);

/// Describes how all-gathers are performed: "all-gathers by copy engines, but not over 'data' (2
/// ranks: ...)"; names the variables of NCCL that override it. Empty if no communicator has two
/// ranks.
std::string describeGathers(int version, const NcclChoices &choices,
                            const std::vector<GatherGroup> &groups, Variables variables);

/// Equal on the ranks that NCCL considers to be on one node: by NCCL_HOSTID, else by the names of
/// host and boot.
std::uint64_t nodeKey(const char *hostId, const std::string &host, const std::string &boot);
std::uint64_t nodeKeyOfThisHost();

/// The most blocks of a kernel such that kernels of as many communicators fit on a device at once,
/// at least 1: a power of two, to which NCCL rounds up those of transfers.
int blocksOfEach(int multiprocessors, std::size_t communicators);

/// The round in which each rank of a group is connected with the one that it sends to, `step`
/// further; -1 if there is none. In one round every rank is at one end at most.
std::vector<int> transferRounds(int ranks, int step, bool inRing);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_CUDA_NCCLCHOICES_H
