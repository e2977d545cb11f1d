//===- CaseModule.h - a propagation case as a module ------------*- C++ -*-===//

#ifndef TEST_UNIT_PASSES_PROPAGATION_CASEMODULE_H
#define TEST_UNIT_PASSES_PROPAGATION_CASEMODULE_H

#include "mlir/IR/MLIRContext.h"
#include "test/unit/passes/propagation/CaseFile.h"
#include <optional>

namespace mlir::fsdp::propagation {

/// `item` as the text of a module with one step: arguments are reads of parameters, what is given
/// is `fsdp.constraint` (of a result of the program too), ops are those of `arith`, `math` and
/// `nn`. In locations, values have the names of the case. Nothing where ops or constraints cannot
/// say it: `why` says what.
std::optional<std::string> writeModule(const Case &item, std::string &why);

/// The axes that `fsdp-propagate` gives to the values of a module, by name and as in `expect`.
/// Throws std::runtime_error where the module does not parse or the pass fails.
std::map<std::string, std::string> propagateModule(MLIRContext &context, const std::string &text);

} // namespace mlir::fsdp::propagation

#endif // TEST_UNIT_PASSES_PROPAGATION_CASEMODULE_H
