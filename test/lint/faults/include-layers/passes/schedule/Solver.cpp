#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallVector.h"
#include "passes/schedule/Problem.h"
