//===- Elementwise.h - arith and math on one element, in C++ ----*- C++ -*-===//

#ifndef CODEGEN_ELEMENTWISE_H
#define CODEGEN_ELEMENTWISE_H

#include "mlir/IR/Attributes.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/Types.h"
#include <string>

namespace mlir::fsdp {

/// The C++ type of an element in memory; "" for types without one on this target (f16).
llvm::StringRef elementType(Type type);

/// The element type that `type` is computed in: f32 for bf16, which only loads and stores have.
Type computeType(Type type);

/// The C++ expression of an elementwise op with `$0`, `$1`, ... for its operands and `#exp`,
/// `#sqrt`, ... for functions that targets name differently, or "" for an op without one.
std::string elementwiseExpression(Operation *op);

/// A target's function for `#name` on operands of `type`. On the CPU f32 functions are those of
/// runtime/numerics/VectorMath.h, which vectorize.
using FunctionName = std::string (*)(llvm::StringRef name, Type type);
std::string hostFunction(llvm::StringRef name, Type type);
std::string deviceFunction(llvm::StringRef name, Type type);

/// The expression `text` of a value of `type` with its functions and operands.
std::string spellExpression(llvm::StringRef text, Type type, FunctionName functionName,
                            llvm::function_ref<std::string(int)> operand);

/// A literal of the value `attr` (float or integer attribute), such that it reads back exactly.
std::string literal(Attribute attr);
std::string literal(double value, Type type);

/// The identity of a sum (0) or of a maximum (-inf, or the least integer) of `type`.
std::string identityOf(bool maximum, Type type);

} // namespace mlir::fsdp

#endif // CODEGEN_ELEMENTWISE_H
