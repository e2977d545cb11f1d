#include "codegen/Writer.h"
#include "dialect/nn/NNOps.h"
#include "passes/Passes.h"
