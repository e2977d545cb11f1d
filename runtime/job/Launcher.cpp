#include "runtime/job/Launcher.h"
#include "base/Error.h"
#include "base/PrintableText.h"
#include "runtime/job/Process.h"

#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace fsdp::rt {

using namespace base;

namespace {

class Reader {
public:
  explicit Reader(const Environment &environment) : environment_(environment) {}

  bool has(const char *name) const { return environment_(name) != nullptr; }
  std::string text(const char *name) const {
    const char *value = environment_(name);
    return value ? value : "";
  }
  /// A number in [low, high]; `absent` when the variable is not set.
  int number(const char *name, int low, int high, int absent) const {
    const char *value = environment_(name);
    if (!value)
      return absent;
    char *end = nullptr;
    long number = std::strtol(value, &end, 10);
    if (end == value || *end || number < low || number > high)
      throw Error(format("launcher variable '%s' got '%s', expected a number from %d to %d", name,
                         value, low, high));
    return static_cast<int>(number);
  }

private:
  const Environment &environment_;
};

constexpr int kMaxRanks = 65535;

// Process id and start time of the parent: the same for all ranks of a machine, as one launcher
// daemon starts them, and different for different parents.
std::string parentKey() {
  const int parent = static_cast<int>(getppid());
  return format("%d-%llu", parent, static_cast<unsigned long long>(startTimeOf(parent)));
}

void findPort(const Reader &read, LaunchEnvironment &found) {
  constexpr int kLast = 65535, kTorchruns = 29500;
  found.port = read.number("FSDP_PORT", 1, kLast, 0);
  found.portFrom = "FSDP_PORT";
  if (found.port)
    return;
  found.port = read.number("MASTER_PORT", 1, kLast, kTorchruns);
  found.portFrom =
      read.has("MASTER_PORT") ? "MASTER_PORT" : "the default port, as MASTER_PORT is not set";
  const std::string agent = read.text("TORCHELASTIC_USE_AGENT_STORE");
  if (agent != "True" && agent != "true" && agent != "1")
    return;
  found.portFrom =
      format("the port next to MASTER_PORT %d, which torchrun's store uses", found.port);
  found.port += found.port < kLast ? 1 : -1;
}

/// Error: NNODES asks for several machines, but without a launcher a process uses this machine
/// only.
void requireOneMachine(const Reader &read) {
  const std::string nodes = read.text("NNODES");
  if (!nodes.empty() && nodes != "1")
    throw Error(format("NNODES is '%s', but no launcher has started this process, which alone runs "
                       "on one machine: start it with torchrun, mpirun or srun on the machines of "
                       "the job, or unset NNODES to run on this machine only",
                       printable(nodes, 64).c_str()));
}

} // namespace

std::optional<LaunchEnvironment> detectLauncher(const Environment &environment) {
  Reader read(environment);
  LaunchEnvironment found;
  const char *rank = nullptr, *size = nullptr, *localRank = "", *localSize = "";
  if (read.has("RANK") && read.has("WORLD_SIZE")) {
    // Other launchers set these variables too, and users who start ranks by hand.
    found.by = read.has("TORCHELASTIC_RUN_ID") ? "torchrun" : "the launcher";
    rank = "RANK", size = "WORLD_SIZE", localRank = "LOCAL_RANK", localSize = "LOCAL_WORLD_SIZE";
    found.key = parentKey();
    for (const char *name :
         {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"})
      found.key += "-" + read.text(name);
  } else if (read.has("OMPI_COMM_WORLD_RANK") && read.has("OMPI_COMM_WORLD_SIZE")) {
    found.by = "Open MPI";
    rank = "OMPI_COMM_WORLD_RANK", size = "OMPI_COMM_WORLD_SIZE";
    localRank = "OMPI_COMM_WORLD_LOCAL_RANK", localSize = "OMPI_COMM_WORLD_LOCAL_SIZE";
    found.key = read.text("PMIX_NAMESPACE") + read.text("OMPI_MCA_ess_base_jobid");
  } else if (read.has("PMI_RANK") && read.has("PMI_SIZE")) {
    found.by = "PMI";
    rank = "PMI_RANK", size = "PMI_SIZE", localRank = "MPI_LOCALRANKID",
    localSize = "MPI_LOCALNRANKS";
  } else if (read.has("SLURM_PROCID") && read.has("SLURM_STEP_ID") && read.has("SLURM_NTASKS")) {
    // Only in a step: a batch script has SLURM_PROCID too, but is one process.
    found.by = "Slurm";
    rank = "SLURM_PROCID", localRank = "SLURM_LOCALID";
    size = read.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
    found.key = read.text("SLURM_JOB_ID") + "-" + read.text("SLURM_STEP_ID");
  } else {
    requireOneMachine(read);
    return std::nullopt;
  }
  found.size = read.number(size, 1, kMaxRanks, 1);
  found.rank = read.number(rank, 0, found.size - 1, 0);
  found.address = read.text("MASTER_ADDR");
  // With MASTER_ADDR but without the number of local ranks, some ranks may be on other machines.
  const bool apart = std::strcmp(rank, "RANK") == 0 && !found.address.empty();
  found.localSize = read.number(localSize, 1, found.size, apart ? 0 : found.size);
  if (found.by == "Slurm" && read.number("SLURM_STEP_NUM_NODES", 1, kMaxRanks,
                                         read.number("SLURM_NNODES", 1, kMaxRanks, 1)) > 1)
    found.localSize = 0; // several machines; the number of local ranks is not needed
  found.localRank = read.number(localRank, 0, found.size - 1, found.oneMachine() ? found.rank : -1);
  findPort(read, found);
  if (found.key.empty())
    found.key = parentKey() + "-" + read.text("PMI_JOBID");
  if (read.has("FSDP_JOB_ID"))
    found.key = found.by + "-" + read.text("FSDP_JOB_ID");
  return found;
}

static const char *valueOf(const char *name) { return std::getenv(name); }

std::optional<LaunchEnvironment> detectLauncher() { return detectLauncher(valueOf); }

} // namespace fsdp::rt
