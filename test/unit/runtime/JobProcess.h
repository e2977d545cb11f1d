//===- JobProcess.h - runs a job in a process of its own --------------------===//
#ifndef FSDP_TEST_UNIT_RUNTIME_JOBPROCESS_H
#define FSDP_TEST_UNIT_RUNTIME_JOBPROCESS_H

#include "runtime/Progress.h"

#include <cstdio>
#include <string>
#include <sys/wait.h>

/// What a finished command left.
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

/// Runs a shell command, for at most a minute. Launcher variables of the test's own are not passed
/// on.
inline Finished runCommand(const std::string &command) {
  const double start = fsdp::rt::now();
  std::FILE *pipe =
      popen(("env -u RANK -u WORLD_SIZE timeout -k 5 150 " + command + " 2>&1").c_str(), "r");
  Finished result;
  char buffer[4096];
  while (std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe))
    result.output.append(buffer, n);
  int status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.seconds = fsdp::rt::now() - start;
  return result;
}

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

#endif // FSDP_TEST_UNIT_RUNTIME_JOBPROCESS_H
