//===- Rope.cpp - rotary positions ----------------------------------------===//

#include "dsl/ModelIR.h"
#include "dsl/Operations.h"

#include "dialect/nn/NNDialect.h"
#include <algorithm>
#include <cmath>

using namespace mlir;

namespace fsdp::dsl {

static constexpr double kTurn = 6.283185307179586477;

RopeScaling RopeScaling::linear(double factor) {
  RopeScaling scaling;
  scaling.factor = factor;
  return scaling;
}

RopeScaling RopeScaling::llama3(double factor, double low, double high, int64_t context) {
  const double once = kTurn / static_cast<double>(context); // the rate of one turn
  RopeScaling scaling;
  scaling.factor = factor;
  scaling.ramp = Rate;
  scaling.from = low * once;
  scaling.to = high * once;
  return scaling;
}

RopeScaling RopeScaling::yarn(const Yarn &yarn, double theta, int64_t width) {
  // The index of the pair that turns so many times.
  auto indexOf = [&](double turns) {
    return static_cast<double>(width) *
           std::log(static_cast<double>(yarn.context) / (turns * kTurn)) / (2 * std::log(theta));
  };
  double first = indexOf(yarn.betaFast), last = indexOf(yarn.betaSlow);
  if (yarn.truncate)
    first = std::floor(first), last = std::ceil(last);
  first = std::max(first, 0.0);
  last = std::min(last, static_cast<double>(width - 1));
  RopeScaling scaling;
  scaling.factor = yarn.factor;
  scaling.ramp = Index;
  scaling.from = first == last ? last + 0.001 : last;
  scaling.to = first;
  scaling.magnitude =
      yarn.magnitude.value_or(yarn.factor <= 1 ? 1 : 0.1 * std::log(yarn.factor) + 1);
  return scaling;
}

static Tensor ropeOver(int64_t dim, const Located &input, std::optional<Located> positions,
                       double theta, const RopeScaling &scaling) {
  std::vector<Located> operands = {input};
  if (positions)
    operands.push_back(*positions);
  Builder &builder = builderOf(input).builder;
  auto unless = [&](double standard, double value) {
    return value == standard ? FloatAttr() : builder.getF64FloatAttr(value);
  };
  const bool hasRamp = scaling.factor != 1 && scaling.ramp != RopeScaling::None;
  nn::RopeRampAttr ramp;
  FloatAttr from, to;
  if (hasRamp) {
    ramp = nn::RopeRampAttr::get(builder.getContext(), scaling.ramp == RopeScaling::Index
                                                           ? nn::RopeRamp::index
                                                           : nn::RopeRamp::rate);
    from = builder.getF64FloatAttr(scaling.from);
    to = builder.getF64FloatAttr(scaling.to);
  }
  return createOp<nn::RopeOp>("rope", operands, typeOf(input), valueOf(input),
                              positions ? valueOf(*positions) : mlir::Value(),
                              builder.getI64IntegerAttr(dim), builder.getF64FloatAttr(theta),
                              UnitAttr(), unless(1, scaling.factor), ramp, from, to,
                              unless(1, scaling.magnitude));
}

Tensor rope(Located input, double theta, const RopeScaling &scaling) {
  requireFloat("rope", input);
  return ropeOver(input.tensor.rank() - 2, input, std::nullopt, theta, scaling);
}

/// The dimension of the positions.
static int64_t positionsIn(const std::string &order, const Located &input) {
  requireFloat("rope", input);
  const int64_t dim = nn::attentionDim(order, 't');
  if (static_cast<int64_t>(order.size()) + 1 != 2 * input.tensor.rank() || dim < 0)
    fail("rope", {input},
         "got the order '" + order +
             "', expected a letter for each dimension, t for the positions, with spaces "
             "between them");
  return dim;
}

Tensor rope(const std::string &order, Located input, double theta, const RopeScaling &scaling) {
  return ropeOver(positionsIn(order, input), input, std::nullopt, theta, scaling);
}

Tensor rope(const std::string &order, Located input, Located positions, double theta,
            const RopeScaling &scaling) {
  const int64_t dim = positionsIn(order, input);
  if (order[0] != 'b')
    fail("rope", {input, positions},
         "got the order '" + order + "', expected the batch first: 'b t h d'");
  return ropeOver(dim, input, positions, theta, scaling);
}

} // namespace fsdp::dsl
