//===- JobProcess.h - runs a job in a process of its own --------------------===//
#ifndef FSDP_TEST_UNIT_RUNTIME_JOBPROCESS_H
#define FSDP_TEST_UNIT_RUNTIME_JOBPROCESS_H

#include "base/Error.h"
#include "base/WaitCounter.h"
#include "test/unit/runtime/comm/FreePort.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

/// The result of a finished command.
struct Finished {
  int status = -1;    ///< exit status; 124 or 137 when it had to be stopped
  std::string output; ///< both standard streams
  double seconds = 0;

  /// Lines that begin with "error:".
  int errors() const {
    int count = 0;
    for (std::size_t at = 0; (at = output.find("error: ", at)) != std::string::npos; ++at)
      count += at == 0 || output[at - 1] == '\n';
    return count;
  }
  bool says(const std::string &text) const { return output.find(text) != std::string::npos; }
};

/// Seconds within which a job ends that nothing keeps waiting, on a busy machine too. What must not
/// wait has a timeout that is longer.
constexpr double kSoon = 60;
/// FSDP_TIMEOUT of such jobs.
#define FSDP_LONG_TIMEOUT "FSDP_TIMEOUT=110 "

/// Runs a shell command; one that hangs is ended after ten minutes, or the seconds of
/// FSDP_JOB_LIMIT (scripts/barrier-mutations). Launcher variables of the test's own are not passed
/// on.
inline Finished runCommand(const std::string &command) {
  const double start = base::now();
  const std::string limited = "timeout -k 5 ${FSDP_JOB_LIMIT:-600} " + command;
  std::FILE *pipe = popen(("env -u RANK -u WORLD_SIZE " + limited + " 2>&1").c_str(), "r");
  Finished result;
  char buffer[4096];
  while (std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe))
    result.output.append(buffer, n);
  int status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.seconds = base::now() - start;
  return result;
}

#ifdef CUDA_PROGRAMS
/// Path of an emulated CUDA program of the build, or of a mutant in the folder FSDP_CUDA_PROGRAMS
/// (scripts/barrier-mutations).
inline std::string cudaProgram(const std::string &name) {
  const char *mutants = std::getenv("FSDP_CUDA_PROGRAMS");
  const std::string mutant = mutants ? mutants + ("/" + name) : "";
  return access(mutant.c_str(), X_OK) == 0 ? mutant : CUDA_PROGRAMS "/" + name;
}
#endif

/// `env` is a list of NAME=VALUE, each followed by a space.
inline Finished runRanksProgram(const std::string &mesh, const std::string &mode,
                                const std::string &env = "") {
  return runCommand("env " + env + RANKS_PROGRAM + " " + mesh + " " + mode);
}

/// The same under mpirun with `ranks` processes.
inline Finished runUnderMpi(int ranks, const std::string &mesh, const std::string &mode,
                            const std::string &transport, const std::string &env = "") {
  return runCommand("env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 " + env +
                    MPIEXEC " --oversubscribe -n " + std::to_string(ranks) + " " + RANKS_PROGRAM +
                    " " + mesh + " " + mode + " " + transport);
}

/// A job that torchrun would start on several machines, which differ in a variable only.
struct TcpRun {
  int ranks = 2, perMachine = 1;
  int port = freePort();
  std::string env = "";           ///< NAME=VALUE, each followed by a space
  std::vector<std::string> own{}; ///< the same for single ranks
  std::string absent = "";        ///< ranks that are not started: " 1 3 "

  /// Shell commands that start a rank each and end with the first bad status.
  std::string command(const std::string &words) const {
    std::string text = "pids=; ";
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string number = std::to_string(rank);
      if (absent.find(" " + number + " ") != std::string::npos)
        continue;
      text += "env RANK=" + number + " WORLD_SIZE=" + std::to_string(ranks) +
              " LOCAL_RANK=" + std::to_string(rank % perMachine) +
              " LOCAL_WORLD_SIZE=" + std::to_string(perMachine) +
              " MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(port) +
              " FSDP_MACHINE=" + std::to_string(rank / perMachine) + " " + env +
              (static_cast<std::size_t>(rank) < own.size() ? own[rank] + " " : "") + words +
              " & pids=\"$pids $!\"; ";
    }
    return text + "status=0; for pid in $pids; do wait $pid || status=$?; done; exit $status";
  }
  Finished run(const std::string &mesh, const std::string &mode) const {
    return runCommand("env -u SLURM_STEP_ID sh -c '" +
                      command(RANKS_PROGRAM " " + mesh + " " + mode) + "'");
  }
};

#endif // FSDP_TEST_UNIT_RUNTIME_JOBPROCESS_H
