#include "runtime/comm/cuda/NcclChoices.h"
#include "base/Error.h"
#include "runtime/numerics/Random.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <unistd.h>

namespace fsdp::rt {

using namespace base;

namespace {

/// Variables that override how this program configures all-gathers.
constexpr const char *kOverriding[] = {
    "NCCL_CTA_POLICY",  "NCCL_WIN_ENABLE", "NCCL_CUMEM_ENABLE", "NCCL_NVLS_ENABLE",
    "NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL",  "NCCL_CONF_FILE",    "NCCL_SYM_CE_THRESHOLD"};

/// The value of a variable that is not empty and that this program has not set, or null.
const char *overriding(const char *name, Variables variables) {
  const char *value = variables(name);
  const bool own = value && !std::strcmp(name, "NCCL_SYM_CE_THRESHOLD") &&
                   !std::strcmp(value, kNoSymmetricThreshold);
  return own || (value && !*value) ? nullptr : value;
}

} // namespace

NcclChoices NcclChoices::from(Variables variables) {
  NcclChoices choices;
  choices.always = environmentFlag("FSDP_NCCL_ALWAYS", "", variables).value_or(false);
  choices.window = environmentFlag("FSDP_NCCL_WINDOW", "", variables).value_or(true);
  choices.copyEngines = environmentFlag("FSDP_NCCL_COPY_ENGINES", "", variables);
  if (choices.copyEngines.value_or(false) && !choices.window)
    throw Error("environment variable 'FSDP_NCCL_COPY_ENGINES' got '1' and 'FSDP_NCCL_WINDOW' got "
                "'0', expected one of them only: copy engines gather between windows",
                kExitBadCommandLine);
  return choices;
}

const char *whyNoCopyEngines(int version, int ranks, int nodes) {
  if (version < 22800)
    return "NCCL has none before 2.28";
  if (nodes > 1 && version >= 23007) // before, NCCL has none between them unless NVLink joins them
    return "several nodes: NCCL 2.30.7 and later send through the CPU";
  if (ranks == 2 && version >= 22907 && version < 23102)
    return "2 ranks: NCCL 2.29.7 to 2.31.1 may hang";
  // In place a rank copies to the others only, else to itself too.
  for (int copies : {ranks - 1, ranks})
    if (version < 23003 && copies > 8 && (copies + 7) / 8 % 2 == 0)
      return "NCCL before 2.30.3 races at this number of ranks";
  return nullptr;
}

void requireLaunchOrder(int driver, int runtime, int ranks) {
  if (driver >= 12030 && runtime >= 12030)
    return;
  throw Error(format("got a driver of CUDA %d.%d and a runtime of CUDA %d.%d for %d ranks, "
                     "expected 12.3 or later: NCCL cannot "
                     "order the kernels of its communicators there, and ranks would wait for one "
                     "another; update the driver or "
                     "the toolkit",
                     driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10, ranks),
              kExitNoDevice)
      .byAll();
}

bool asksForCopyEngines(int version, const NcclChoices &choices, const GatherGroup &group) {
  return choices.copyEngines.value_or(!whyNoCopyEngines(version, group.ranks, group.nodes));
}

bool mayCopyUnasked(Variables variables) {
  return overriding("NCCL_CTA_POLICY", variables) || overriding("NCCL_SYM_CE_THRESHOLD", variables);
}

std::string describeGathers(int version, const NcclChoices &choices,
                            const std::vector<GatherGroup> &groups, Variables variables) {
  std::string without;
  std::size_t several = 0, refused = 0;
  for (const GatherGroup &group : groups) {
    if (group.ranks < 2)
      continue;
    ++several;
    if (choices.copyEngines || asksForCopyEngines(version, choices, group))
      continue;
    ++refused;
    without += format("%s'%s' (%s)", without.empty() ? "" : ", ", group.name.c_str(),
                      whyNoCopyEngines(version, group.ranks, group.nodes));
  }
  if (!several)
    return "";
  std::string text;
  if (!choices.window)
    text = choices.copyEngines.value_or(false)
               ? "all-gathers by kernels (FSDP_NCCL_WINDOW=0 of a rank, in spite of "
                 "FSDP_NCCL_COPY_ENGINES=1)"
               : "all-gathers by kernels (FSDP_NCCL_WINDOW=0)";
  else if (choices.copyEngines && !*choices.copyEngines)
    text = "all-gathers by kernels (FSDP_NCCL_COPY_ENGINES=0)";
  else if (refused == several)
    text = "all-gathers by kernels over " + without;
  else if (refused)
    text = "all-gathers by copy engines, by kernels over " + without;
  else
    text = choices.copyEngines ? "all-gathers by copy engines (FSDP_NCCL_COPY_ENGINES=1)"
                               : "all-gathers by copy engines";
  const char *separator = "; set: ";
  for (const char *name : kOverriding)
    if (const char *value = overriding(name, variables)) {
      text += format("%s%s=%s", separator, name, value);
      separator = ", ";
    }
  return text;
}

std::uint64_t nodeKey(const char *hostId, const std::string &host, const std::string &boot) {
  return hashName(hostId ? std::string(hostId) : host + boot);
}

std::uint64_t nodeKeyOfThisHost() {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return nodeKey(std::getenv("NCCL_HOSTID"), host, boot);
}

int blocksOfEach(int multiprocessors, std::size_t communicators) {
  int blocks = 1;
  while (2 * static_cast<std::size_t>(blocks) * communicators <=
         static_cast<std::size_t>(multiprocessors))
    blocks *= 2;
  return blocks;
}

std::vector<int> transferRounds(int ranks, int step, bool inRing) {
  std::vector<int> rounds(static_cast<std::size_t>(ranks), -1);
  const auto follows = [&](int rank) { // -1: nothing
    const int next = rank + step;
    return inRing ? (next + ranks) % ranks : next < 0 || next >= ranks ? -1 : next;
  };
  for (int start = 0; start < ranks; ++start) {
    const int before = start - step;
    if (!inRing && before >= 0 && before < ranks)
      continue; // not the first of its chain
    int rank = start;
    for (int hop = 0; follows(rank) >= 0 && rounds[static_cast<std::size_t>(rank)] < 0; ++hop) {
      // In a ring of an odd number of ranks, the last transfer and the first one share a rank.
      rounds[static_cast<std::size_t>(rank)] = follows(rank) == start && hop % 2 == 0 ? 2 : hop % 2;
      rank = follows(rank);
    }
  }
  return rounds;
}

} // namespace fsdp::rt
