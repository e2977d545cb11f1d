//===- Failure.h - what went wrong first -----------------------------------------===//
#ifndef FSDP_EMULATOR_FAILURE_H
#define FSDP_EMULATOR_FAILURE_H

#include "cuda_runtime.h"

#include <string>

namespace emulator {

std::string formatted(const char *format, ...) __attribute__((format(printf, 1, 2)));

/// Keeps the first failure of the process: its error persists, and cudaGetErrorString returns its
/// text.
void recordFailure(cudaError_t error, const std::string &text);
/// cudaSuccess, or the error that sticks.
cudaError_t stuck();
/// An error of the calling thread's own call, with the text for cudaGetErrorString. Does not stick.
cudaError_t refuse(cudaError_t error, const std::string &text);
/// The error that sticks, else `error`.
cudaError_t result(cudaError_t error = cudaSuccess);
void forgetFailure();

} // namespace emulator

#endif // FSDP_EMULATOR_FAILURE_H
