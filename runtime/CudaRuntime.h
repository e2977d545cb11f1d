//===- CudaRuntime.h - includes of generated CUDA programs ----------------===//
//
// Compiled with -DFSDP_RECORD it does not need CUDA's headers: the record of an action is the same
// on all targets.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_CUDARUNTIME_H
#define FSDP_RUNTIME_CUDARUNTIME_H

#ifdef FSDP_RECORD
#include "runtime/Runtime.h"
#else
#include "runtime/execution/cuda/Launch.h"
#include "runtime/launches/Collectives.h"
#include "runtime/launches/Kernels.h"
#include "runtime/launches/Optimizer.h"
#include "runtime/launches/cuda/Attention.h"
#include "runtime/numerics/Random.h"
#include "runtime/program/Program.h"
#include "runtime/train/Driver.h"
#endif

#endif // FSDP_RUNTIME_CUDARUNTIME_H
