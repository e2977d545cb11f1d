//===- UpdateRule.cpp - the table of update rules -------------------------===//
//
// Each rule has two forms, written apart: the expression that programs are printed from, and the
// update of one element in double, with which the interpreter checks them.
//
//===----------------------------------------------------------------------===//

#include "dialect/fsdp/UpdateRule.h"

#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;

//===----------------------------------------------------------------------===//
// sgd
//===----------------------------------------------------------------------===//

static void sgd(UpdateBody &b) {
  Number step = b.gradient + b.decay * b.parameter;
  if (!b.states.empty())
    step = b.newStates[0] = b.constant("momentum") * b.states[0] + step;
  b.newParameter = b.parameter - b.lr * step;
}

static void sgdReference(UpdateReference &u) {
  double step = u.gradient;
  if (u.decay != 0)
    step += u.decay * u.parameter;
  if (!u.states.empty())
    step = u.states[0] = u.round(u.constant("momentum") * u.states[0] + step);
  u.parameter = u.round(u.parameter - u.lr * step);
}

//===----------------------------------------------------------------------===//
// adam, adamw
//===----------------------------------------------------------------------===//

/// Moments are corrected for their start at zero by factors that are computed in double once a
/// step. `decoupled`: weight decay shrinks the parameter, and does not add to the gradient.
static void adam(UpdateBody &b, bool decoupled) {
  Number beta1 = b.constant("beta1"), beta2 = b.constant("beta2");
  Number rate = b.toElement(b.toDouble(b.lr) / (1 - pow(b.toDouble(beta1), b.count))).named("rate");
  Number rootFactor =
      b.toElement(1 / sqrt(1 - pow(b.toDouble(beta2), b.count))).named("root_factor");
  Number decay = decoupled ? b.literal(0) : b.decay;
  Number gradient = b.gradient + decay * b.parameter;
  Number first = (beta1 * b.states[0] + (1 - beta1) * gradient).named("first");
  Number second = (beta2 * b.states[1] + (1 - beta2) * (gradient * gradient)).named("second");
  Number root = (sqrt(second) * rootFactor + b.constant("eps")).named("root");
  // With eps 0 an element that never had a gradient would get 0 / 0.
  Number step = select(isZero(root), 0, first / root);
  Number shrunk = decoupled ? b.parameter * b.shrink() : b.parameter;
  b.newParameter = shrunk - rate * step;
  b.newStates = {first, second};
}

static void adamReference(UpdateReference &u, bool decoupled) {
  double beta1 = u.constant("beta1"), beta2 = u.constant("beta2");
  double gradient = u.gradient, shrunk = u.parameter;
  if (decoupled)
    shrunk -= u.lr * u.decay * u.parameter;
  else if (u.decay != 0)
    gradient += u.decay * u.parameter;
  double first = u.states[0] = u.round(beta1 * u.states[0] + (1 - beta1) * gradient);
  double second = u.states[1] = u.round(beta2 * u.states[1] + (1 - beta2) * gradient * gradient);
  double count = static_cast<double>(u.count);
  double root = std::sqrt(second / (1 - std::pow(beta2, count))) + u.constant("eps");
  double step = root == 0 ? 0 : first / (1 - std::pow(beta1, count)) / root;
  u.parameter = u.round(shrunk - u.lr * step);
}

//===----------------------------------------------------------------------===//
// lion
//===----------------------------------------------------------------------===//

static void lion(UpdateBody &b) {
  Number beta1 = b.constant("beta1"), beta2 = b.constant("beta2"), average = b.states[0];
  Number direction = sign(beta1 * average + (1 - beta1) * b.gradient).named("direction");
  b.newParameter = b.parameter * b.shrink() - b.lr * direction;
  b.newStates[0] = beta2 * average + (1 - beta2) * b.gradient;
}

static void lionReference(UpdateReference &u) {
  double &average = u.states[0], beta1 = u.constant("beta1"), beta2 = u.constant("beta2");
  double blend = beta1 * average + (1 - beta1) * u.gradient;
  double direction = blend > 0 ? 1 : blend < 0 ? -1 : 0;
  u.parameter = u.round(u.parameter - u.lr * (direction + u.decay * u.parameter));
  average = u.round(beta2 * average + (1 - beta2) * u.gradient);
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

static UpdateRule::Constant beta1(double value) {
  return {"beta1", value, /*fraction=*/true, "decay of the first moment"};
}

static UpdateRule::Constant beta2(double value) {
  return {"beta2", value, /*fraction=*/true, "decay of the second moment"};
}

static const UpdateRule::Constant momentum = {"momentum", 0, /*fraction=*/true, "momentum"};
static const UpdateRule::Constant eps = {"eps", 1e-8, /*fraction=*/false,
                                         "added to the root of the second moment"};
static const UpdateRule::Constant weightDecay = {"weight_decay", 0, /*fraction=*/false,
                                                 "decay of parameters of rank two and more"};

ArrayRef<UpdateRule> UpdateRule::all() {
  static const UpdateRule rules[] = {
      {"sgd",
       "gradient descent, with PyTorch's momentum",
       {momentum, weightDecay},
       {{"momentum", /*with=*/"momentum"}},
       /*chosenDecay=*/0,
       sgd,
       sgdReference},
      {"adam",
       "Kingma & Ba; weight decay is added to the gradient",
       {beta1(0.9), beta2(0.999), eps, weightDecay},
       {{"exp_avg", ""}, {"exp_avg_sq", ""}},
       /*chosenDecay=*/0,
       [](UpdateBody &b) { adam(b, /*decoupled=*/false); },
       [](UpdateReference &u) { adamReference(u, /*decoupled=*/false); }},
      {"adamw",
       "Loshchilov & Hutter: adam with decoupled weight decay",
       {beta1(0.9), beta2(0.999), eps, weightDecay},
       {{"exp_avg", ""}, {"exp_avg_sq", ""}},
       /*chosenDecay=*/0.01,
       [](UpdateBody &b) { adam(b, /*decoupled=*/true); },
       [](UpdateReference &u) { adamReference(u, /*decoupled=*/true); }},
      {"lion",
       "Chen et al.: steps of the size of the learning rate, with decoupled weight decay",
       {{"beta1", 0.9, /*fraction=*/true, "share of exp_avg in the direction"},
        {"beta2", 0.99, /*fraction=*/true, "decay of exp_avg"},
        weightDecay},
       {{"exp_avg", ""}},
       /*chosenDecay=*/0,
       lion,
       lionReference},
  };
  return rules;
}

const UpdateRule *UpdateRule::find(StringRef name) {
  const auto *rule =
      llvm::find_if(all(), [&](const UpdateRule &rule) { return rule.name == name; });
  return rule == all().end() ? nullptr : rule;
}

bool UpdateRule::reads(StringRef constant) const {
  return llvm::any_of(constants, [&](const Constant &each) { return each.name == constant; });
}

std::string UpdateRule::list(StringRef conjunction,
                             function_ref<bool(const UpdateRule &)> accepts) {
  SmallVector<StringRef> names;
  for (const UpdateRule &rule : all())
    if (!accepts || accepts(rule))
      names.push_back(rule.name);
  std::string text;
  for (auto [i, name] : llvm::enumerate(names)) {
    bool last = i + 1 == names.size();
    text += (i == 0 ? "" : last ? " " + conjunction.str() + " " : ", ") + name.str();
  }
  return text;
}

std::string UpdateRule::readersOf(StringRef name) {
  return list("and", [&](const UpdateRule &rule) { return rule.reads(name); });
}
