//===- Adapters.h - products of low rank beside weights ---------*- C++ -*-===//
//
//   module attributes {fsdp.adapters = {file = "adapter_config.json", text = "{}\n", products = [
//     {weight = "h.0.up.weight", down = "h.0.up.lora_A.weight", up = "h.0.up.lora_B.weight",
//     scale = 2.0 : f64, transposed = false}]}} {}
// Parameters of adapters. A generated program exports them separately, together with a file `file`
// whose content is `text`, and adds them to the weights when it exports merged weights: weight +
// scale * up * down, in file shapes; the file shape of a `transposed` weight is (in, out). No pass
// reads the attribute.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_FSDP_ADAPTERS_H
#define DIALECT_FSDP_ADAPTERS_H

#include "mlir/IR/Operation.h"

namespace mlir::fsdp {

inline constexpr llvm::StringLiteral adaptersAttrName = "fsdp.adapters";
inline constexpr llvm::StringLiteral adapterFileKey = "file", adapterTextKey = "text",
                                     adapterProductsKey = "products", adapterWeightKey = "weight",
                                     adapterDownKey = "down", adapterUpKey = "up",
                                     adapterScaleKey = "scale", adapterTransposedKey = "transposed";

namespace detail {
/// Verifies the attribute `fsdp.adapters` of `op`: parameters of the module, whose file shapes fit.
llvm::LogicalResult verifyAdapters(Operation *op, Attribute adapters);
} // namespace detail

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_ADAPTERS_H
