//===- Weights.h - loads and exports parameters -----------------*- C++ -*-===//
//
// One global tensor per parameter, under its own name and in its file shape, for any mesh; layouts
// are those of Hugging Face's models. Tied tensors are stored once.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_TRAIN_WEIGHTS_H
#define FSDP_RUNTIME_TRAIN_WEIGHTS_H

#include "runtime/execution/Device.h"
#include "runtime/program/Program.h"
#include "runtime/train/InitialWeights.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fsdp::rt {

/// Fills a shard with the tensors that `weights` has matched; a parameter without one gets the
/// values drawn from `seed`, and padding becomes zero.
void loadShard(const InitialWeights &weights, const Storage &storage, const RankPosition &position,
               std::uint64_t seed, float *shard);

/// Writes the parameters with one of the names, or patterns of names, `only` as F32 to `path`,
/// atomically unless it is a stream; without any, all parameters. Called by every rank, between
/// segments; rank 0 writes, one storage at a time. Error: a value that is not finite.
void exportWeights(const base::OutputPath &path, const Program &program, Device &device,
                   const std::vector<std::string> &only = {});

/// The same with all parameters except those of adapters, which are added to their weights: the
/// file of a model without adapters that computes the same.
void exportMerged(const base::OutputPath &path, const Program &program, Device &device);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_WEIGHTS_H
