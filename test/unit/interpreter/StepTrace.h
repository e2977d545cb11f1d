//===- StepTrace.h - results of a few steps of a module ---------*- C++ -*-===//

#ifndef TEST_UNIT_INTERPRETER_STEPTRACE_H
#define TEST_UNIT_INTERPRETER_STEPTRACE_H

#include "interpreter/Machine.h"

#include <map>
#include <string>
#include <vector>

namespace mlir::fsdp {

/// The numbers that steps log, and the tensors after the last one: parameters and states of the
/// optimizer, by "parameter.what" as in `Machine::get`.
struct StepTrace {
  std::vector<interpreter::Outputs> outputs;
  std::map<std::string, interpreter::Tensor> tensors;
};

/// Two steps of training and an evaluation and, with `isDeferred`, a step behind the drain in front
/// of that. Fails with a diagnostic as the interpreter does.
FailureOr<StepTrace> traceSteps(ModuleOp module, const interpreter::MachineOptions &options,
                                const interpreter::DataSet &data, bool isDeferred);
/// The same on a machine of `module` that has not run since it was made or restarted; with
/// `isAhead`, the second step is issued before the first one has logged anything.
FailureOr<StepTrace> traceSteps(interpreter::Machine &machine, ModuleOp module,
                                const interpreter::DataSet &data, bool isDeferred,
                                bool isAhead = false);

/// The first difference, of any bit, or "".
std::string findDifference(const StepTrace &got, const StepTrace &expected);

} // namespace mlir::fsdp

#endif // TEST_UNIT_INTERPRETER_STEPTRACE_H
