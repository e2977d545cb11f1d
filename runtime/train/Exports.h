//===- Exports.h - the weights that a run writes at its end -----*- C++ -*-===//
//
// One global tensor per parameter, under its own name and in its file shape, for any mesh; layouts
// are those of Hugging Face's models. Tied tensors are stored once.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_TRAIN_EXPORTS_H
#define FSDP_RUNTIME_TRAIN_EXPORTS_H

#include "runtime/execution/Device.h"
#include "runtime/train/RunFiles.h"

namespace fsdp::rt {

/// Writes the parameters with one of the names, or patterns of names, `only` as F32 to `path`,
/// atomically unless it is a stream; without any, all parameters. Called by every rank, between
/// segments; rank 0 writes, one storage at a time. Error: a value that is not finite.
void exportWeights(const base::OutputPath &path, const Program &program, Device &device,
                   const std::vector<std::string> &only = {});

/// The same with all parameters except those of adapters, which are added to their weights: the
/// file of a model without adapters that computes the same.
void exportMerged(const base::OutputPath &path, const Program &program, Device &device);

/// Writes the weights of --export and of --export-merged, with `carried` and the files that
/// describe the model next to them in a folder. Called by all ranks together; rank 0 prints the
/// written files.
void writeExports(const RunOutputs &outputs, const Program &program, Device &device,
                  const BesideFiles &carried);

/// "wrote 'FILE'", on rank 0.
void sayWrote(const Device &device, const base::OutputPath &path);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_EXPORTS_H
