//===- PageData.h - a predicted step as data of a page ----------*- C++ -*-===//
// Tables of small rows, times in whole nanoseconds, bytes as numbers. Lists that grow with the
// model are bounded: the page of a model of 126 layers has a few megabytes.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_EXPLAIN_PAGEDATA_H
#define PASSES_EXPLAIN_PAGEDATA_H

#include "passes/prediction/Prediction.h"
#include "llvm/Support/JSON.h"

namespace mlir::fsdp {

/// The predicted step of the first role:
///   step           its length
///   streams        names
///   kinds          categories of memory, and "alignment"
///   names          all names that rows refer to by number
///   bars           [name, stream, start, duration, unit, direction, op, launches, bytes, flops,
///                  alone]: a launch, or neighbours of a unit where there are too many
///   edges          [from, to]: bars that a bar of another stream waits for
///   exposed        [from, to]: a collective runs and no kernel, within [0, step)
///   curve          [time, bytes of each kind]: alive from then on
///   buffers        [name, unit, kind, bytes]
///   lives          [buffer, from, to]: persistent ones last from 0 to after the end
///   lives_left_out those that are left out as the smallest, all of them in the curve
llvm::json::Object describeStep(const StepSimulation &simulation);

/// The storages of `module`, with equal ones grouped: `units`, `members` ([name, offset, type]),
/// `kind`, `dim`, `axes`, `parts` (ranks with different ones), `shard` (a type), `shard_elements`,
/// `shard_bytes`, `states`.
llvm::json::Array describeStorages(ModuleOp module);

} // namespace mlir::fsdp

#endif // PASSES_EXPLAIN_PAGEDATA_H
