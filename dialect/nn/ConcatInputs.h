//===- ConcatInputs.h - concatenations of many inputs -----------*- C++ -*-===//

#ifndef DIALECT_NN_CONCATINPUTS_H
#define DIALECT_NN_CONCATINPUTS_H

#include <cstddef>

namespace mlir {
class Block;
namespace nn {

/// Makes each `nn.concat` in `block` of more than `most` inputs, at least 2, one of concatenations,
/// so that none has more. Results do not change.
void limitConcatInputs(Block &block, size_t most);

} // namespace nn
} // namespace mlir

#endif // DIALECT_NN_CONCATINPUTS_H
