//===- Runtime.h - what a generated CUDA program includes -------------------===//
#ifndef FSDP_RUNTIME_CUDARUNTIME_H
#define FSDP_RUNTIME_CUDARUNTIME_H

#include "runtime/device/cuda/Check.h"
#include "runtime/execution/cuda/Context.h"
#include "runtime/numerics/Random.h"
#include "runtime/program/ArenaSpan.h"
#include "runtime/program/KernelArguments.h"
#include "runtime/program/Program.h"
#include "runtime/program/StepState.h"
#include "runtime/train/Driver.h"
#ifndef FSDP_RECORD
#include "runtime/kernels/cuda/Kernels.h"
#include "runtime/kernels/cuda/Matmul.h"
#endif

#endif // FSDP_RUNTIME_CUDARUNTIME_H
