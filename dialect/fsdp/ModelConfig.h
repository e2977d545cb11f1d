//===- ModelConfig.h - the configuration file of weights --------*- C++ -*-===//
//
//   module attributes {fsdp.model_config = {file = "config.json", entries = [
//     {names = "rope_theta|rope_parameters.rope_theta", value = "10000.0", implied = "10000.0",
//     option = "--rope-theta"}]}} {}
// Entries of the JSON file of weights, with the values (JSON) that the model computes with. A
// generated program refuses weights whose file has other values. `names`: paths of the entry in
// files, '.' selecting a field of an object. `implied`: the value of a file without the entry.
// `same`: a list of equivalent values. `option`: the option of the model's program that sets the
// value. No pass reads the entries.
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
