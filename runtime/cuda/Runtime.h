//===- Runtime.h - what a generated CUDA program includes -------------------===//
#ifndef FSDP_RUNTIME_CUDA_RUNTIME_H
#define FSDP_RUNTIME_CUDA_RUNTIME_H

#include "runtime/Driver.h"
#include "runtime/KernelArguments.h"
#include "runtime/Program.h"
#include "runtime/Random.h"
#include "runtime/Slice.h"
#include "runtime/StepState.h"
#include "runtime/cuda/Check.h"
#include "runtime/cuda/Context.h"
#ifndef FSDP_RECORD
#include "runtime/cuda/Kernels.h"
#include "runtime/cuda/Matmul.h"
#endif

#endif // FSDP_RUNTIME_CUDA_RUNTIME_H
