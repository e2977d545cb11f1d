//===- Precision.h - parameters in the types of their legs ------*- C++ -*-===//

#ifndef DIALECT_FSDP_PRECISION_H
#define DIALECT_FSDP_PRECISION_H

#include "dialect/fsdp/FSDPDialect.h"

namespace mlir::fsdp {

/// What compute reads of `param`: in the gather type of its placement, where it has one.
RankedTensorType getReadType(ParamOp param);
/// What a gradient of `param` is: in the reduce type of its placement, where it has one.
RankedTensorType getGradientType(ParamOp param);

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_PRECISION_H
