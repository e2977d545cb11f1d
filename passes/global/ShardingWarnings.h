//===- ShardingWarnings.h - warnings about costly shardings -----*- C++ -*-===//

#ifndef PASSES_GLOBAL_SHARDINGWARNINGS_H
#define PASSES_GLOBAL_SHARDINGWARNINGS_H

#include "passes/sharding/StepShardings.h"

namespace mlir::fsdp {

/// Warns of two constraints on one value that split a dimension over different axes.
void warnOfContradictions(StepOp step);

/// Reports a mark of `--sequence-parallel` that splits nothing: all ops that use the stream need
/// its positions whole, because another split, of a weight or a constraint, has precedence.
void remarkIdleMarks(StepOp step);

/// Warns of each of `moves` that gathers all of a value on every rank, or all of a rank's samples
/// over axes that split no batch, with the bytes that a rank receives. `placed`: the names of
/// parameters that the user splits; gathering these is not suggested.
void warnOfReplication(const StepShardings &shardings, ArrayRef<ReshardOp> moves,
                       ArrayRef<StringAttr> batchAxes, const DenseSet<StringAttr> &placed);

/// Warns of parameters that are split into parts of which more than a twentieth is padding.
void warnOfPadding(ModuleOp module);

} // namespace mlir::fsdp

#endif // PASSES_GLOBAL_SHARDINGWARNINGS_H
