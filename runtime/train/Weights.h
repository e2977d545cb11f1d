//===- Weights.h - parameters to and from files -----------------*- C++ -*-===//
//
// One global tensor per parameter, under its own name and in its file shape,
// whatever the mesh; layouts are those of Hugging Face's models, tied tensors
// stand once.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_TRAIN_WEIGHTS_H
#define FSDP_RUNTIME_TRAIN_WEIGHTS_H

#include "runtime/execution/Device.h"
#include "runtime/program/Program.h"
#include "runtime/train/WeightFiles.h"

#include <string>

namespace fsdp::rt {

/// Refuses files that do not have every parameter of the program, in its file shape, as finite
/// floating-point numbers. A parameter stands there under its name, under its alias, or under its
/// name with or without the leading `transformer.` or `model.` that a model's wrapper adds. Returns
/// a remark about tensors that the program does not have, empty if there are none; copies of a
/// parameter's tensor (tied weights) and buffers such as `attn.bias` are not worth one.
std::string checkWeights(const WeightFiles &file, const Program &program);

/// Fills a shard from a file that `checkWeights` has accepted; padding becomes zero.
void loadShard(const WeightFiles &file, const Storage &storage, const RankPosition &position,
               float *shard);

/// Writes every parameter as F32 to `path`, all or nothing (a stream ends where it fails). Every
/// rank calls it, between segments; rank 0 writes, one storage at a time. Error: a value that is
/// not finite.
void exportWeights(const base::OutputPath &path, const Program &program, Device &device);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_WEIGHTS_H
