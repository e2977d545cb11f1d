//===- Machine.cpp - choose a machine, initialize it ----------------------===//

#include "interpreter/Machine.h"

#include "interpreter/Draws.h"

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

FailureOr<std::unique_ptr<Machine>> Machine::create(ModuleOp module,
                                                    const MachineOptions &options) {
  Phase phase = getPhase(module);
  // Text written by hand may leave the phase out; its ops tell it.
  if (!module->hasAttr(FSDPDialect::phaseAttrName) && !module.getOps<ProgramOp>().empty()) {
    bool launches = module.walk([](LaunchOp) { return WalkResult::interrupt(); }).wasInterrupted();
    phase = launches ? Phase::scheduled : Phase::local;
  }
  switch (phase) {
  case Phase::global:
    return detail::createGlobalMachine(module, options);
  case Phase::local:
    return detail::createLocalMachine(module, options);
  case Phase::scheduled:
    return detail::createScheduledMachine(module, options);
  }
  llvm_unreachable("unknown phase");
}

void Machine::addState(StringRef name) {
  if (!llvm::is_contained(states, name))
    states.push_back(name.str());
}

LogicalResult Machine::initialize() {
  for (ParamOp param : module.getOps<ParamOp>()) {
    if (failed(set(param.getSymName(), "parameter", initialValue(param, options.seed))))
      return failure();
    for (const std::string &state : states)
      if (failed(set(param.getSymName(), state, Tensor(param.getTensorType()))))
        return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Initial values
//===----------------------------------------------------------------------===//

Tensor interpreter::initialValue(ParamOp param, uint64_t seed) {
  InitAttr init = param.getInit();
  double value = init.getValue().getValueAsDouble();
  Tensor result(param.getTensorType());
  Element *to = result.mutableData();
  Draws draws(seed, param.getSymName());
  for (int64_t i = 0; i < result.size(); ++i) {
    double drawn = value;
    if (init.getKind() == InitKind::normal)
      drawn = value * draws.normal(i);
    else if (init.getKind() == InitKind::uniform)
      drawn = -value + 2 * value * draws.uniform(i);
    to[i].f = static_cast<float>(drawn);
  }
  return result;
}
