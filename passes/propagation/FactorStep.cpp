//===- FactorStep.cpp - carry axes across one op --------------------------===//
//
// The rules are those that Shardy documents (docs/propagation.md of openxla/shardy), with the same
// results, except where docs/sharding.md states otherwise.
//
//===----------------------------------------------------------------------===//

#include "passes/propagation/FactorStep.h"
#include <algorithm>
#include <numeric>
#include <tuple>

namespace mlir::fsdp::propagation {

/// The common prefix of `agreed` and `other`, and whether further tensors may extend it.
static std::pair<AxisList, bool> merge(const AxisList &agreed, const AxisList &other,
                                       bool mayGrow) {
  AxisList result;
  size_t common = std::min(agreed.size(), other.size());
  for (size_t i = 0; i < common; ++i) {
    const AxisPart &a = agreed[i], &b = other[i];
    bool lastAgreed = i + 1 == agreed.size(), lastOther = i + 1 == other.size();
    if (a == b) {
      result.push_back(a);
    } else if (b.isPrefixOf(a)) {
      // The axis after a part does not continue it, otherwise the two would be one part.
      result.push_back(lastOther ? a : b);
      if (!lastOther)
        return {result, false};
    } else if (a.isPrefixOf(b)) {
      bool grows = mayGrow && lastAgreed;
      result.push_back(grows ? b : a);
      if (!grows)
        return {result, false};
    } else {
      return {result, false};
    }
  }
  result.insert(result.end(), agreed.begin() + common, agreed.end());
  if (mayGrow)
    result.insert(result.end(), other.begin() + common, other.end());
  return {result, mayGrow};
}

AxisList FactorStep::commonAxes(int factor, Direction direction) const {
  if (direction == Direction::none)
    return {};
  AxisList axes;
  bool mayGrow = true;
  auto mergeAll = [&](size_t begin, size_t end) {
    for (size_t index = begin; index < end; ++index)
      if (tensors[index].has(factor))
        std::tie(axes, mayGrow) = merge(axes, tensors[index].factors[factor].axes, mayGrow);
  };
  bool resultsFirst = direction == Direction::backward;
  size_t operands = numOperands(), all = tensors.size();
  mergeAll(resultsFirst ? operands : 0, resultsFirst ? all : operands);
  mayGrow &= direction == Direction::both;
  mergeAll(resultsFirst ? 0 : operands, resultsFirst ? operands : all);
  return axes;
}

std::optional<AxisPart>
FactorStep::withoutOtherFactors(AxisPart axis, const TensorProjection &tensor, int factor) const {
  for (size_t other = 0; other < tensor.factors.size(); ++other) {
    if (static_cast<int>(other) == factor || !tensor.has(other))
      continue;
    for (const AxisList *axes : {&tensor.factors[other].overflow, &tensor.factors[other].axes})
      for (const AxisPart &taken : *axes) {
        std::optional<AxisPart> rest = axis.withoutOverlap(taken);
        if (!rest)
          return std::nullopt;
        axis = *rest;
      }
  }
  return axis;
}

std::optional<AxisPart> FactorStep::withinFactor(AxisPart axis, const TensorProjection &tensor,
                                                 int factor, int64_t before) const {
  for (const AxisList *axes : {&tensor.replicated, &tensor.unreduced})
    for (const AxisPart &taken : *axes) {
      std::optional<AxisPart> rest = axis.withoutOverlap(taken);
      if (!rest)
        return std::nullopt;
      axis = *rest;
    }
  const FactorSharding &there = tensor.factors[factor];
  if (std::any_of(there.axes.begin(), there.axes.end(),
                  [&](const AxisPart &has) { return has.contains(axis); }))
    return axis;
  int64_t size = op.factors[factor].size;
  if (!there.closed && there.overflow.empty()) {
    if (there.minorMost)
      return axis;
    if (size % before == 0) {
      int64_t part = std::gcd(size / before, axis.size);
      if (part == axis.size)
        return axis;
      if (part != 1)
        return AxisPart{axis.axis, axis.before, part};
    }
  }
  if (!there.axes.empty() && there.axes.back().isPrefixOf(axis))
    return there.axes.back();
  return std::nullopt;
}

/// Truncates `axes` after the first axis that `fit(axis, size of those before)` shortens.
template <typename Fit> void FactorStep::truncate(AxisList &axes, Fit fit) const {
  int64_t before = 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    std::optional<AxisPart> rest = fit(axes[i], before);
    bool cut = rest && *rest != axes[i];
    if (!rest || (cut && !subAxes)) {
      axes.resize(i);
      return;
    }
    if (cut) {
      axes[i] = *rest;
      axes.resize(i + 1);
      return;
    }
    before *= rest->size;
  }
}

bool FactorStep::extend(TensorProjection &tensor, int factor, const AxisList &axes) {
  if (!tensor.has(factor) || !isStrictPrefix(tensor.factors[factor].axes, axes))
    return false;
  tensor.factors[factor].axes = axes;
  return true;
}

std::vector<bool> FactorStep::carryCompatible(const std::vector<Direction> &directions) {
  std::vector<bool> changed(tensors.size(), false);
  for (size_t factor = 0; factor < op.factors.size(); ++factor) {
    AxisList axes = commonAxes(factor, directions[factor]);
    truncate(axes, [&](AxisPart axis, int64_t before) -> std::optional<AxisPart> {
      for (const TensorProjection &tensor : tensors) {
        std::optional<AxisPart> rest = withoutOtherFactors(axis, tensor, factor);
        if (rest && tensor.has(factor))
          rest = withinFactor(*rest, tensor, factor, before);
        if (!rest)
          return std::nullopt;
        axis = *rest;
      }
      return axis;
    });
    for (size_t index = 0; index < tensors.size(); ++index)
      if (extend(tensors[index], factor, axes))
        changed[index] = true;
  }
  return changed;
}

AxisList FactorStep::fitting(const TensorProjection &tensor, int factor, AxisList axes) const {
  if (!tensor.has(factor))
    return {};
  truncate(axes, [&](AxisPart axis, int64_t before) {
    return withinFactor(axis, tensor, factor, before);
  });
  if (!isStrictPrefix(tensor.factors[factor].axes, axes))
    return {};
  truncate(axes, [&](AxisPart axis, int64_t) { return withoutOtherFactors(axis, tensor, factor); });
  return axes;
}

std::vector<bool> FactorStep::carryAggressively(const std::vector<Direction> &directions) {
  std::vector<bool> changed(tensors.size(), false);
  size_t numFactors = op.factors.size();
  std::vector<AxisList> wanted(numFactors);
  for (size_t factor = 0; factor < numFactors; ++factor)
    wanted[factor] = commonAxes(factor, directions[factor]);
  // The source of a factor: the largest tensor that has all that is wanted.
  std::vector<int64_t> sourceSize(numFactors, -1), source(numFactors, -1);
  for (size_t index = 0; index < tensors.size(); ++index)
    for (size_t factor = 0; factor < numFactors; ++factor)
      if (tensors[index].has(factor) && !wanted[factor].empty() &&
          isPrefix(wanted[factor], tensors[index].factors[factor].axes) &&
          tensors[index].size > sourceSize[factor]) {
        sourceSize[factor] = tensors[index].size;
        source[factor] = index;
      }
  bool elementwise = op.kind == OpKind::elementwise || op.kind == OpKind::constraint;
  std::vector<int> order(numFactors);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    auto rank = [&](int factor) {
      return std::make_tuple(-sourceSize[factor], elementwise ? -sizeOf(wanted[factor]) : 0,
                             source[factor], factor);
    };
    return rank(a) < rank(b);
  });
  auto carryTo = [&](size_t index) {
    bool operand = index < numOperands();
    for (int factor : order) {
      AxisList axes = fitting(tensors[index], factor, wanted[factor]);
      // An operand other than the source gets only axes that the result can have too.
      if (operand && elementwise)
        for (size_t result = numOperands(); result < tensors.size(); ++result)
          if (tensors[result].has(factor) &&
              isStrictPrefix(tensors[result].factors[factor].axes, axes))
            axes = tensors[result].factors[factor].axes;
      if (extend(tensors[index], factor, axes))
        changed[index] = true;
    }
  };
  for (size_t index = numOperands(); index < tensors.size(); ++index)
    carryTo(index);
  for (size_t index = 0; index < numOperands(); ++index)
    carryTo(index);
  return changed;
}

} // namespace mlir::fsdp::propagation
