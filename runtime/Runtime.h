//===- Runtime.h - what a generated program includes -----------------------===//
#ifndef FSDP_RUNTIME_RUNTIME_H
#define FSDP_RUNTIME_RUNTIME_H

#include "runtime/Attention.h"
#include "runtime/Collectives.h"
#include "runtime/Context.h"
#include "runtime/CrossEntropy.h"
#include "runtime/Driver.h"
#include "runtime/Dropout.h"
#include "runtime/Embedding.h"
#include "runtime/Gemm.h"
#include "runtime/Launch.h"
#include "runtime/Optimizer.h"
#include "runtime/Parts.h"
#include "runtime/Program.h"
#include "runtime/Random.h"
#include "runtime/RowNorm.h"
#include "runtime/Slice.h"
#include "runtime/StepControl.h"
#include "runtime/StepState.h"
#include "runtime/UnaryKernels.h"
#include "runtime/VectorMath.h"

#endif // FSDP_RUNTIME_RUNTIME_H
