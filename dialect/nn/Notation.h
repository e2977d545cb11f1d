//===- Notation.h - einsum and einops strings -------------------*- C++ -*-===//

#ifndef DIALECT_NN_NOTATION_H
#define DIALECT_NN_NOTATION_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include <string>
#include <vector>

namespace mlir::nn {

/// The names of one dimension: one for a plain dimension, several (major to
/// minor) for a group such as "(h d)".
using NotationDim = SmallVector<std::string, 1>;
using NotationTensor = std::vector<NotationDim>;

/// A parsed pattern: operand tensors, "->", one result tensor.
struct Notation {
  SmallVector<NotationTensor, 2> operands;
  NotationTensor result;

  using EmitError = llvm::function_ref<InFlightDiagnostic()>;

  /// Parses einsum's compact form, one letter per dimension: "bsd,df->bsf".
  static FailureOr<Notation> parseEinsum(StringRef text, EmitError emitError);

  /// Parses einops' spaced form with groups: "b s (h d) -> b h s d".
  static FailureOr<Notation> parseEinops(StringRef text, EmitError emitError);

  /// The one spelling of this notation in the compact or the spaced form.
  std::string printEinsum() const;
  std::string printEinops() const;

  /// Every name in order of first appearance (operands first).
  SmallVector<std::string> names() const;

  /// Solves the size of every name from the shapes of the operands and the result and the
  /// given `known` sizes. At most one name of a group may be unknown at a time. Fails
  /// naming the dimension, got and expected.
  FailureOr<llvm::StringMap<int64_t>> solveSizes(ArrayRef<ArrayRef<int64_t>> operandShapes,
                                                 ArrayRef<int64_t> resultShape,
                                                 const llvm::StringMap<int64_t> &known,
                                                 EmitError emitError) const;
};

/// The shape that `tensor` has for the given sizes: the product over each group.
SmallVector<int64_t> shapeOf(const NotationTensor &tensor, const llvm::StringMap<int64_t> &sizes);

} // namespace mlir::nn

#endif // DIALECT_NN_NOTATION_H
