#include "codegen/Writer.h"
#include "dialect/nn/NNOps.h"
#include <dsl/Model.h>
#include "runtime/program/Limits.h"
