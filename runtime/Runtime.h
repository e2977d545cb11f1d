//===- Runtime.h - what a generated program includes -----------------------===//
#ifndef FSDP_RUNTIME_RUNTIME_H
#define FSDP_RUNTIME_RUNTIME_H

#include "runtime/execution/Context.h"
#include "runtime/execution/Launch.h"
#include "runtime/kernels/Attention.h"
#include "runtime/kernels/CrossEntropy.h"
#include "runtime/kernels/Dropout.h"
#include "runtime/kernels/Embedding.h"
#include "runtime/kernels/Gemm.h"
#include "runtime/kernels/IndexShard.h"
#include "runtime/kernels/Optimizer.h"
#include "runtime/kernels/Parts.h"
#include "runtime/kernels/RowNorm.h"
#include "runtime/kernels/StepControl.h"
#include "runtime/kernels/UnaryKernels.h"
#include "runtime/launches/Collectives.h"
#include "runtime/numerics/Random.h"
#include "runtime/numerics/VectorMath.h"
#include "runtime/program/ArenaSpan.h"
#include "runtime/program/Program.h"
#include "runtime/program/StepState.h"
#include "runtime/train/Driver.h"

#endif // FSDP_RUNTIME_RUNTIME_H
