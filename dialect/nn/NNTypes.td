//===- NNTypes.td - the tensors that both dialects compute with ----------===//

#ifndef NN_TYPES_TD
#define NN_TYPES_TD

include "mlir/IR/CommonTypeConstraints.td"

// Ranked tensors of known size, small enough that sums of sizes cannot overflow.
class NN_SizedTensorOf<list<Type> elements> : RankedTensorOf<
    elements, [HasStaticShapePred, CPred<"::mlir::nn::isSized($_self)">],
    "statically shaped tensor (at most 2^48 bytes)">;

#endif // NN_TYPES_TD
