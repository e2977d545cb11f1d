//===- StagelessOps.h - ops that each stage computes for itself -*- C++ -*-===//

#ifndef PASSES_STAGELESSOPS_H
#define PASSES_STAGELESSOPS_H

#include "dialect/fsdp/FSDPDialect.h"

namespace mlir::fsdp {

/// The ops of a step, or of a segment of the local phase, that belong to no stage of a pipeline:
/// each part that uses their results computes them. They have no structure, and their results
/// depend on data, constants and the step state alone: on no parameter, and on nothing that passes
/// between ranks or microbatches.
class StagelessOps {
public:
  bool contains(Operation *op);

private:
  DenseMap<Operation *, bool> known;
};

} // namespace mlir::fsdp

#endif // PASSES_STAGELESSOPS_H
