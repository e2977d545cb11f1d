//===- AxisRoles.h - the meaning of mesh axes by their names ----*- C++ -*-===//

#ifndef DIALECT_FSDP_AXISROLES_H
#define DIALECT_FSDP_AXISROLES_H

#include "mlir/Support/LLVM.h"
#include <string>

namespace mlir::fsdp {

/// One row of the table of axes whose names have a meaning. The meaning of any other axis follows
/// from its uses: the list of batch axes, constraints, splits and placements. Parts of an axis have
/// its role.
struct AxisRole {
  StringRef name;
  /// Ranks along it have different samples.
  bool splitsBatch = false;
  /// Strategies store parameters, gradients and optimizer states over it.
  bool storesParameters = false;
  /// Ranks along it have different parts of the computation of the same samples (of its tensors,
  /// sequences, layers or experts): it is not for lists of batch axes.
  bool splitsCompute = false;
  /// Of these: parts of the positions of a sequence.
  bool splitsSequence = false;
  /// Of these: parts of the tensors of a layer, as heads and hidden units.
  bool splitsLayers = false;
  /// Of these: different programs (`role` of `fsdp.program`).
  bool carriesRoles = false;
};

/// The role of `axis`, the name of an axis or of a part of one: of an axis without one, a row
/// without properties.
const AxisRole &getAxisRole(StringRef axis);

/// The axis that splits the tensors of layers.
StringRef getLayerAxis();
/// The axis over which strategies store; a module without a mesh is for one rank of it.
StringRef getStorageAxis();
/// "'data' and 'fsdp'", the axes that split the batch by their names.
std::string listBatchAxes();

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_AXISROLES_H
