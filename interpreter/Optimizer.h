//===- Optimizer.h - update rules and learning rates, in double -*- C++ -*-===//

#ifndef INTERPRETER_OPTIMIZER_H
#define INTERPRETER_OPTIMIZER_H

#include "dialect/fsdp/FSDPDialect.h"
#include "interpreter/Machine.h"

namespace mlir::fsdp::interpreter {

/// The rate of the step after `state`, as documented at `fsdp.learning_rate`.
double learningRate(OptimizerAttr optimizer, const StepState &state, const MachineOptions &options);

/// Properties of a parameter's update.
struct UpdateSetting {
  double rateScale = 1; ///< factor of the learning rate
  bool decays = false;  ///< whether weight decay applies

  static UpdateSetting of(ParamOp param, const base::ParameterGroups &groups);
};

/// The inputs of an update other than tensors.
struct Update {
  OptimizerAttr optimizer;
  double lr, scale;
  int64_t count; ///< the number of this update, from 1
  Numerics numerics;
};

/// Applies the rule to each element of `parameter` and of `states` (in the order of the optimizer's
/// state names) in place. `settingOf(i)`: of the parameter that element i belongs to.
void applyUpdate(const Update &update, Tensor &parameter, const Tensor &gradient,
                 MutableArrayRef<Tensor> states,
                 llvm::function_ref<UpdateSetting(int64_t)> settingOf);

} // namespace mlir::fsdp::interpreter

#endif // INTERPRETER_OPTIMIZER_H
