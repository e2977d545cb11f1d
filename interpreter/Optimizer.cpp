//===- Optimizer.cpp - update rules and learning rates, in double ---------===//

#include "interpreter/Optimizer.h"
#include "interpreter/Rounding.h"

#include "dialect/fsdp/UpdateRule.h"
#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

double interpreter::learningRate(OptimizerAttr optimizer, const StepState &state,
                                 const MachineOptions &options) {
  double base = options.learningRate.value_or(optimizer.getLr()), least = optimizer.getMinLr();
  double t = state.step + 1, n = options.totalSteps, w = optimizer.getWarmup();
  if (t <= w)
    return base * t / w;
  // Past the last step the rate stays where it ended.
  auto progressFrom = [&](double begin) {
    return std::clamp((t - begin) / std::max(n - begin, 1.0), 0.0, 1.0);
  };
  switch (optimizer.getSchedule()) {
  case ScheduleKind::constant:
    return base;
  case ScheduleKind::linear:
    return least + (base - least) * (1 - progressFrom(w));
  case ScheduleKind::cosine:
    return least + (base - least) * (1 + std::cos(M_PI * progressFrom(w))) / 2;
  case ScheduleKind::inverse_sqrt:
    return std::max(least, base * std::sqrt(std::max(w, 1.0) / t));
  case ScheduleKind::wsd: {
    // Programs hold the share in f32.
    double decay = std::floor(static_cast<float>(optimizer.getDecayShare()) * n + 0.5);
    return least + (base - least) * (1 - progressFrom(std::max(w, n - decay)));
  }
  }
  llvm_unreachable("unknown schedule");
}

UpdateSetting UpdateSetting::of(ParamOp param, const base::ParameterGroups &groups) {
  const std::string name = param.getSymName().str();
  return {groups.scaleOf(name), param.getFileRank() >= 2 && !groups.exempts(name)};
}

void interpreter::applyUpdate(const Update &update, Tensor &parameter, const Tensor &gradient,
                              MutableArrayRef<Tensor> states,
                              llvm::function_ref<UpdateSetting(int64_t)> settingOf) {
  Type type = parameter.getType().getElementType();
  auto round = [&](double value) { return roundTo(value, type, update.numerics); };
  // Programs hold the rule's constants, and factors of rates, as numbers of that type.
  SmallVector<OptimizerAttr::Constant> constants = update.optimizer.getNamedConstants();
  if (update.numerics != Numerics::exact)
    for (auto &[name, value] : constants)
      value = roundTo(value, type);
  auto constant = [&](StringRef wanted) {
    for (auto [name, value] : constants)
      if (name == wanted)
        return value;
    llvm_unreachable("the rule's row lacks the constant");
  };
  const UpdateRule &rule = update.optimizer.getUpdateRule();
  double weightDecay = rule.reads("weight_decay") ? constant("weight_decay") : 0;
  Element *p = parameter.mutableData();
  const Element *gradients = gradient.data();
  SmallVector<Element *, 2> s;
  for (Tensor &state : states)
    s.push_back(state.mutableData());
  SmallVector<double, 2> ofElement(states.size());
  for (int64_t i = 0; i < parameter.size(); ++i) {
    for (auto [value, state] : llvm::zip_equal(ofElement, s))
      value = state[i].f;
    const UpdateSetting setting = settingOf(i);
    const double lr =
        setting.rateScale == 1 ? update.lr : round(update.lr * round(setting.rateScale));
    UpdateReference element{p[i].f,       gradients[i].f * update.scale,
                            lr,           setting.decays ? weightDecay : 0,
                            update.count, ofElement,
                            constant,     round};
    rule.reference(element);
    p[i].f = element.parameter;
    for (auto [value, state] : llvm::zip_equal(ofElement, s))
      state[i].f = value;
  }
}
