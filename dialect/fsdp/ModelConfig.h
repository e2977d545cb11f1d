//===- ModelConfig.h - what weights have to be of, as their file says -*- C++ -*-===//
//
//   module attributes {fsdp.model_config = {file = "config.json", entries = [
//     {names = "rope_theta|rope_parameters.rope_theta", value = "10000.0", implied = "10000.0",
//     option = "--rope-theta"}]}} {}
//
// Entries of a JSON file that stands beside weights, with the values (JSON) that the model computes
// with. A generated program refuses weights beside which the file says something else. `names`:
// where files have the entry, '.' leading into an object. `implied`: what a file without it means.
// `same`: a list of values that mean the same. `option`: of the model's program, what sets the
// value. What the entries are is the model's own business: no pass reads them.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_FSDP_MODELCONFIG_H
#define DIALECT_FSDP_MODELCONFIG_H

#include "mlir/IR/Operation.h"

namespace mlir::fsdp {

inline constexpr llvm::StringLiteral modelConfigAttrName = "fsdp.model_config";
inline constexpr llvm::StringLiteral configFileKey = "file", configEntriesKey = "entries",
                                     configNamesKey = "names", configValueKey = "value",
                                     configImpliedKey = "implied", configSameKey = "same",
                                     configOptionKey = "option";

namespace detail {
/// Verifies the attribute `fsdp.model_config` of `op`.
llvm::LogicalResult verifyModelConfig(Operation *op, Attribute config);
} // namespace detail

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_MODELCONFIG_H
