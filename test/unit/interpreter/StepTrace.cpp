//===- StepTrace.cpp ------------------------------------------------------===//

#include "StepTrace.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

FailureOr<StepTrace> mlir::fsdp::traceSteps(ModuleOp module, const MachineOptions &options,
                                            const DataSet &data, bool isDeferred) {
  FailureOr<std::unique_ptr<Machine>> machine = Machine::create(module, options);
  if (failed(machine))
    return failure();
  return traceSteps(**machine, module, data, isDeferred);
}

FailureOr<StepTrace> mlir::fsdp::traceSteps(Machine &machine, ModuleOp module, const DataSet &data,
                                            bool isDeferred, bool isAhead) {
  StepTrace trace;
  SmallVector<StringRef> walks{"evaluate"};
  if (isAhead) {
    FailureOr<std::vector<Outputs>> outputs = machine.runAhead({"train", "train"}, data);
    if (failed(outputs))
      return failure();
    trace.outputs = std::move(*outputs);
  } else {
    walks.insert(walks.begin(), 2, "train");
  }
  if (isDeferred) // after a drain
    walks.push_back("train");
  for (StringRef walk : walks) {
    FailureOr<Outputs> outputs = machine.run(walk, data);
    if (failed(outputs))
      return failure();
    trace.outputs.push_back(*outputs);
  }
  for (ParamOp param : module.getOps<ParamOp>()) {
    SmallVector<std::string> whats{"parameter"};
    llvm::append_range(whats, machine.getStates());
    for (const std::string &what : whats) {
      FailureOr<Tensor> value = machine.get(param.getSymName(), what);
      if (failed(value))
        return failure();
      trace.tensors[param.getSymName().str() + "." + what] = *value;
    }
  }
  return trace;
}

std::string mlir::fsdp::findDifference(const StepTrace &got, const StepTrace &expected) {
  for (auto [step, logged] : llvm::enumerate(expected.outputs))
    for (const auto &[name, value] : logged) {
      auto found = got.outputs[step].find(name);
      if (found == got.outputs[step].end() || !found->second.equals(value))
        return "run " + std::to_string(step) + " logs another '" + name + "'";
    }
  for (const auto &[name, value] : expected.tensors)
    if (!got.tensors.at(name).equals(value))
      return "'" + name + "' differs";
  return {};
}
