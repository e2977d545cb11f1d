//===- Runtime.h - includes of generated programs -------------------------===//
#ifndef FSDP_RUNTIME_RUNTIME_H
#define FSDP_RUNTIME_RUNTIME_H

#include "runtime/execution/Launch.h"
#include "runtime/launches/Collectives.h"
#include "runtime/launches/Gemm.h"
#include "runtime/launches/Kernels.h"
#include "runtime/launches/Optimizer.h"
#include "runtime/numerics/Random.h"
#include "runtime/numerics/VectorMath.h"
#include "runtime/program/Program.h"
#include "runtime/train/Driver.h"

#endif // FSDP_RUNTIME_RUNTIME_H
