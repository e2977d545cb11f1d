//===- CudaRanksJob.h - jobs of cuda-ranks that tests run -------------------===//
#ifndef FSDP_TEST_UNIT_RUNTIME_COMM_CUDA_CUDARANKSJOB_H
#define FSDP_TEST_UNIT_RUNTIME_COMM_CUDA_CUDARANKSJOB_H

#include "test/unit/runtime/job/JobProcess.h"

#include <gtest/gtest.h>
#include <ostream>
#include <string>

inline Finished runCudaRanks(const std::string &mesh, const std::string &mode,
                             const std::string &how, const std::string &emulator,
                             const std::string &env = "") {
  return runCommand("env FSDP_EMULATOR=" + emulator + " " + env + cudaProgram("cuda-ranks") + " " +
                    mesh + " " + mode + " " + how);
}

struct Backend {
  const char *how, *emulator;
};
inline void PrintTo(const Backend &backend, std::ostream *out) {
  *out << backend.how << " " << backend.emulator;
}

/// The job ends soon with status 1 and one error, `text`.
inline void expectOneError(const Finished &job, const std::string &text) {
  EXPECT_EQ(job.status, 1) << job.output;
  EXPECT_EQ(job.errors(), 1) << job.output;
  EXPECT_TRUE(job.says(text)) << job.output;
  EXPECT_LT(job.seconds, kSoon);
}

#endif // FSDP_TEST_UNIT_RUNTIME_COMM_CUDA_CUDARANKSJOB_H
