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
#include "runtime/train/WeightFiles.h"

#include <string>

namespace fsdp::rt {

/// Errors: a parameter of the program is missing, has another shape, or has values that are not
/// finite floating-point numbers. A parameter is found by its name, its alias, or its name with or
/// without the prefix `transformer.` or `model.` of a model's wrapper. Returns a remark about
/// tensors that the program does not use; empty if there are none besides copies of a parameter's
/// tensor (tied weights) and buffers such as `attn.bias`.
std::string checkWeights(const WeightFiles &file, const Program &program);

/// Fills a shard from a file that `checkWeights` has accepted; padding becomes zero.
void loadShard(const WeightFiles &file, const Storage &storage, const RankPosition &position,
               float *shard);

/// Writes every parameter as F32 to `path`, atomically unless it is a stream. Called by every rank,
/// between segments; rank 0 writes, one storage at a time. Error: a value that is not finite.
void exportWeights(const base::OutputPath &path, const Program &program, Device &device);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_WEIGHTS_H
