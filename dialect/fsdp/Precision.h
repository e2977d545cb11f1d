//===- Precision.h - parameters in the types of their legs ------*- C++ -*-===//

#ifndef DIALECT_FSDP_PRECISION_H
#define DIALECT_FSDP_PRECISION_H

#include "dialect/fsdp/FSDPDialect.h"

namespace mlir::fsdp {

/// The type in which compute reads `param`: the gather type of its placement, if it has one.
RankedTensorType getReadType(ParamOp param);
/// The type of a gradient of `param`: the reduce type of its placement, if it has one.
RankedTensorType getGradientType(ParamOp param);

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_PRECISION_H
