include "mlir/IR/OpBase.td"
include "passes/Passes.td"
