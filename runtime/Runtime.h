//===- Runtime.h - what a generated program includes -----------------------===//
#ifndef FSDP_RUNTIME_RUNTIME_H
#define FSDP_RUNTIME_RUNTIME_H

#include "runtime/execution/Context.h"
#include "runtime/execution/Launch.h"
#include "runtime/launches/Attention.h"
#include "runtime/launches/Collectives.h"
#include "runtime/launches/CrossEntropy.h"
#include "runtime/launches/Dropout.h"
#include "runtime/launches/Embedding.h"
#include "runtime/launches/Gemm.h"
#include "runtime/launches/IndexShard.h"
#include "runtime/launches/Optimizer.h"
#include "runtime/launches/Parts.h"
#include "runtime/launches/RowNorm.h"
#include "runtime/launches/StepControl.h"
#include "runtime/launches/UnaryKernels.h"
#include "runtime/numerics/Random.h"
#include "runtime/numerics/VectorMath.h"
#include "runtime/program/ArenaSpan.h"
#include "runtime/program/Program.h"
#include "runtime/program/StepState.h"
#include "runtime/train/Driver.h"

#endif // FSDP_RUNTIME_RUNTIME_H
