//===- ApplyOptimizer.cpp - from gradients to updates ---------------------===//

#include "dialect/fsdp/Structure.h"
#include "dialect/nn/Precision.h"
#include "passes/Passes.h"
#include "passes/global/LossWeight.h"

#include <limits>

namespace mlir::fsdp {
#define GEN_PASS_DEF_APPLYOPTIMIZERPASS
#include "passes/Passes.h.inc"
} // namespace mlir::fsdp

using namespace mlir;
using namespace mlir::fsdp;

/// A constant of type tensor<f32>.
static Value scalar(OpBuilder &builder, Location loc, double value) {
  return nn::createSplat(builder, loc, RankedTensorType::get({}, builder.getF32Type()), value);
}

/// The value that `step` logs as its loss, or null.
static Value findLoss(StepOp step) {
  for (OutputOp output : step.getBody().front().getOps<OutputOp>())
    if (output.getName() == "loss")
      return output.getValue();
  return Value();
}

/// The factor of gradients whose norm is `norm`: 1 without clipping.
static Value buildScale(OpBuilder &builder, Location loc, Value norm, OptimizerAttr optimizer) {
  if (optimizer.getClip() <= 0)
    return scalar(builder, loc, 1);
  return ClipScaleOp::create(builder, loc, optimizer, norm);
}

/// 1 / weight, divided in double, if `gradient` is the gradient of the sum of losses; otherwise
/// null.
static Value buildShare(OpBuilder &builder, GradientOp gradient) {
  Value weight = gradient.getWeight();
  if (!weight)
    return Value();
  Location loc = gradient.getLoc();
  Value one = nn::createSplat(builder, loc, weight.getType(), 1);
  Value share = arith::DivFOp::create(builder, loc, one, buildDivisor(builder, loc, weight));
  return arith::TruncFOp::create(builder, loc, RankedTensorType::get({}, builder.getF32Type()),
                                 share);
}

/// `loss`, or infinity where a check of `step` has counted a value that is not finite.
static Value buildChecked(OpBuilder &builder, StepOp step, Value loss) {
  Location loc = step.getLoc();
  Value count;
  for (OutputOp output : step.getBody().front().getOps<OutputOp>())
    if (output.getCheck())
      count = count ? arith::AddFOp::create(builder, loc, count, output.getValue()).getResult()
                    : output.getValue();
  if (!count)
    return loss;
  Value failed = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGT, count,
                                       scalar(builder, loc, 0));
  Value infinity = scalar(builder, loc, std::numeric_limits<double>::infinity());
  return arith::SelectOp::create(builder, loc, failed, infinity, loss);
}

static LogicalResult applyOptimizer(StepOp step, const SymbolTable &symbols) {
  Block &body = step.getBody().front();
  if (!body.getOps<AdvanceOp>().empty())
    return step.emitOpError("has updates already; give it the IR of 'fsdp-differentiate'");
  Value loss = findLoss(step);
  if (!loss)
    return step.emitOpError("has no 'fsdp.output \"loss\"'; run 'fsdp-differentiate' first");

  SmallVector<GradientOp> gradients(body.getOps<GradientOp>());
  SmallVector<Attribute> params;
  SmallVector<Value> values;
  for (GradientOp gradient : gradients) {
    params.push_back(gradient.getParamAttr());
    values.push_back(gradient.getValue());
  }

  OptimizerAttr optimizer = step.getOptimizerAttr();
  OpBuilder builder = OpBuilder::atBlockEnd(&body);
  Location loc = step.getLoc();
  const Structure update = Structure().in(Direction::update);
  StructureScope scope(builder, update);
  Value norm = GlobalNormOp::create(builder, loc, builder.getArrayAttr(params), values);
  // Gradients of the sum of losses become gradients of the loss before any use.
  Value share = gradients.empty() ? Value() : buildShare(builder, gradients.front());
  if (share)
    norm = arith::MulFOp::create(builder, loc, norm, share);
  OutputOp::create(builder, loc, "grad_norm", norm, /*check=*/IntegerAttr());
  Value lr = LearningRateOp::create(builder, loc, optimizer);
  OutputOp::create(builder, loc, "lr", lr, /*check=*/IntegerAttr());
  Value scale = buildScale(builder, loc, norm, optimizer);
  if (share)
    scale = arith::MulFOp::create(builder, loc, scale, share);
  Value checked = buildChecked(builder, step, loss);
  Value ok = AcceptableOp::create(builder, loc, checked, norm);
  for (GradientOp gradient : gradients) {
    auto param = symbols.lookup<ParamOp>(gradient.getParam());
    StructureScope ofUnit(builder, update.in(param.getUnitAttr()));
    UpdateOp::create(builder, gradient.getLoc(), gradient.getParamAttr(), gradient.getValue(), lr,
                     scale, ok, optimizer);
    gradient.erase();
  }
  AdvanceOp::create(builder, loc, ok);
  return success();
}

namespace {
struct ApplyOptimizer : fsdp::impl::ApplyOptimizerPassBase<ApplyOptimizer> {
  void runOnOperation() override {
    StepOp step = getOperation();
    if (step.getKind() == StepKind::train &&
        failed(applyOptimizer(step, SymbolTable(step->getParentOp()))))
      signalPassFailure();
  }
};
} // namespace
