//===- cuda_runtime_api.h - the same as cuda_runtime.h --------------------------===//
#ifndef FSDP_EMULATOR_CUDA_RUNTIME_API_H
#define FSDP_EMULATOR_CUDA_RUNTIME_API_H

#include "cuda_runtime.h"

#endif // FSDP_EMULATOR_CUDA_RUNTIME_API_H
