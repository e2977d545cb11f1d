//===- Optimizer.cpp - update rules and learning rates, in double ---------===//

#include "interpreter/Optimizer.h"
#include "interpreter/Rounding.h"

#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

double interpreter::learningRate(OptimizerAttr optimizer, const StepState &state,
                                 const MachineOptions &options) {
  double base = options.learningRate.value_or(optimizer.getLr());
  double t = state.step + 1, n = options.totalSteps, w = optimizer.getWarmup();
  if (t <= w)
    return base * t / w;
  // Past the last step the rate stays where it ended.
  double progress = std::min((t - w) / std::max(n - w, 1.0), 1.0);
  switch (optimizer.getSchedule()) {
  case ScheduleKind::constant:
    return base;
  case ScheduleKind::linear:
    return base * (1 - progress);
  case ScheduleKind::cosine:
    return base * (1 + std::cos(M_PI * progress)) / 2;
  }
  llvm_unreachable("unknown schedule");
}

void interpreter::applyUpdate(const Update &update, Tensor &parameter, const Tensor &gradient,
                              MutableArrayRef<Tensor> states,
                              llvm::function_ref<bool(int64_t)> decays) {
  OptimizerAttr rule = update.optimizer;
  Type type = parameter.getType().getElementType();
  auto round = [&](double value) { return roundTo(value, type, update.numerics); };
  // Programs hold the rule's constants as numbers of that type.
  auto constant = [&](double value) {
    return update.numerics == Numerics::exact ? value : roundTo(value, type);
  };
  double beta1 = constant(rule.getBeta1()), beta2 = constant(rule.getBeta2());
  double momentum = constant(rule.getMomentum()), eps = constant(rule.getEps());
  double weightDecay = constant(rule.getWeightDecay());
  Element *p = parameter.mutableData();
  const Element *gradients = gradient.data();
  SmallVector<Element *, 2> s;
  for (Tensor &state : states)
    s.push_back(state.mutableData());

  double firstBias = 1 - std::pow(beta1, update.count);
  double secondBias = 1 - std::pow(beta2, update.count);
  for (int64_t i = 0; i < parameter.size(); ++i) {
    double g = gradients[i].f * update.scale;
    double decay = decays(i) ? weightDecay : 0;
    if (rule.getKind() != OptimizerKind::adamw && decay != 0)
      g += decay * p[i].f;
    if (rule.getKind() == OptimizerKind::sgd) {
      if (!s.empty())
        g = s[0][i].f = round(momentum * s[0][i].f + g);
      p[i].f = round(p[i].f - update.lr * g);
      continue;
    }
    double m = s[0][i].f = round(beta1 * s[0][i].f + (1 - beta1) * g);
    double v = s[1][i].f = round(beta2 * s[1][i].f + (1 - beta2) * g * g);
    double shrunk = p[i].f;
    if (rule.getKind() == OptimizerKind::adamw)
      shrunk -= update.lr * decay * p[i].f;
    // With eps 0 an element that never had a gradient would get 0 / 0.
    double root = std::sqrt(v / secondBias) + eps;
    double step = root == 0 ? 0 : (m / firstBias) / root;
    p[i].f = round(shrunk - update.lr * step);
  }
}
