//===- ModelDigest.h - a digest of the forward pass -------------*- C++ -*-===//

#ifndef PASSES_GLOBAL_MODELDIGEST_H
#define PASSES_GLOBAL_MODELDIGEST_H

#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace mlir::fsdp {

/// The digest of the forward pass of `module`, a model before any pass, as "v1:9d2f0c1e8a7b6543"
/// (dialect/fsdp/ModelDigest.h); empty without a step that trains and has a loss.
/// [Note: model digest] Two models have the same digest if the same parameters give the same loss
/// on the same samples. It covers exactly the parts of the model that the loss depends on: ops with
/// their attributes, constants, the shapes of parameters and the kinds of inputs. It does not cover
/// - names and locations. Parameters and inputs are distinguished by the rank of their names, since
///   checkpoints and data files use names: exchanging two of one shape gives another model.
/// - how many samples a batch has and how long sequences are (ModelSizes.h), and constants computed
///   from these: a weight of the loss, or a factor of a sum over such sizes, that is the product of
///   some of them or its inverse. Offsets of slices and pads along such a dimension count from the
///   nearer end.
/// - dropout, element types of floats, `fsdp.constraint` and `fsdp.checkpoint`: choices of training
///   and placement.
/// - the order of the operands of a commutative op, and whether a value is computed once or twice.
///
/// A change of the coverage or of its text form needs a new version: checkpoints of the old version
/// are then not compared.
std::string computeModelDigest(ModuleOp module);

} // namespace mlir::fsdp

#endif // PASSES_GLOBAL_MODELDIGEST_H
