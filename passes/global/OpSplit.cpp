//===- OpSplit.cpp - the axes that split the factors of one op ------------===//

#include "passes/global/OpSplit.h"
#include "passes/MeshAxes.h"

using namespace mlir;
using namespace mlir::fsdp;
using mlir::nn::DimFactors;
using mlir::nn::FactorKind;
using mlir::nn::ShardingRule;
using mlir::nn::TensorFactors;

static bool isReduced(const nn::Factor &factor) {
  return factor.kind == FactorKind::sumReduction || factor.kind == FactorKind::maxReduction;
}

/// True where a factor that stands in no result may be split.
static bool isReadAway(const nn::Factor &factor) {
  return isReduced(factor) || factor.kind == FactorKind::combined;
}

static bool runsOver(const TensorFactors &tensor, int64_t factor) {
  return llvm::any_of(tensor,
                      [&](const DimFactors &dim) { return llvm::is_contained(dim, factor); });
}

/// The major factor of a dimension, those of size one aside; -1 if there is none.
static int64_t majorFactor(const ShardingRule &rule, const DimFactors &dim) {
  for (int64_t factor : dim)
    if (rule.factors[factor].size != 1 || dim.size() == 1)
      return factor;
  return -1;
}

/// True where `factor`, which stands in `dim`, can be split into `parts` there.
static bool splitsIn(const ShardingRule &rule, const DimFactors &dim, int64_t factor,
                     int64_t parts) {
  if (majorFactor(rule, dim) != factor)
    return false;
  // Parts of a merged dimension are rows of its major factor only if all are equally long.
  bool alone = llvm::all_of(
      dim, [&](int64_t other) { return other == factor || rule.factors[other].size == 1; });
  return alone || rule.factors[factor].size % parts == 0;
}

bool OpSplit::admits(const ShardingRule &rule, MeshAttr mesh, const DimFactors &dim,
                     ArrayRef<StringAttr> axes) {
  int64_t factor = majorFactor(rule, dim);
  if (factor < 0 || rule.factors[factor].kind == FactorKind::whole)
    return false;
  // Which samples a microbatch has is not known before it runs: indices cannot be renumbered.
  if (rule.factors[factor].indexed && llvm::is_contained(axes, kMicrobatchAxis))
    return false;
  int64_t parts = mesh.getSize(axes);
  auto fits = [&](const TensorFactors &tensor) {
    return llvm::all_of(tensor, [&](const DimFactors &other) {
      return !llvm::is_contained(other, factor) || splitsIn(rule, other, factor, parts);
    });
  };
  return llvm::all_of(rule.operands, fits) && llvm::all_of(rule.results, fits);
}

void OpSplit::take(const TensorFactors &tensor, const DimAxes &axes, bool reducedOnly) {
  for (size_t index = 0; index < tensor.size(); ++index) {
    const DimFactors &dim = tensor[index];
    const AxisList &wanted = axes[index];
    if (wanted.empty() || !admits(rule, mesh, dim, wanted))
      continue;
    int64_t factor = majorFactor(rule, dim);
    // What stands in a result is split as that is, be it reduced away for another.
    bool open = !reducedOnly || (isReadAway(rule.factors[factor]) &&
                                 llvm::none_of(rule.results, [&](const TensorFactors &result) {
                                   return runsOver(result, factor);
                                 }));
    if (!factorAxes[factor].empty() || !open)
      continue;
    bool taken = llvm::any_of(factorAxes, [&](const AxisList &others) {
      return llvm::any_of(others,
                          [&](StringAttr other) { return llvm::is_contained(wanted, other); });
    });
    if (!taken)
      factorAxes[factor] = wanted;
  }
}

/// A tensor without dimensions in the rule (a scalar beside tensors) takes part in nothing.
static bool takesPart(const TensorFactors &tensor, const DimAxes &axes) {
  return tensor.size() == axes.size();
}

OpSplit OpSplit::suggest(const ShardingRule &rule, MeshAttr mesh, ArrayRef<DimAxes> operands,
                         ArrayRef<DimAxes> results) {
  OpSplit split(rule, mesh);
  for (auto [tensor, axes] : llvm::zip_equal(rule.results, results))
    split.take(tensor, axes, /*reducedOnly=*/false);
  for (auto [tensor, axes] : llvm::zip_equal(rule.operands, operands))
    if (takesPart(tensor, axes))
      split.take(tensor, axes, /*reducedOnly=*/false);
  return split;
}

OpSplit OpSplit::settle(const ShardingRule &rule, MeshAttr mesh, ArrayRef<DimAxes> operands,
                        ArrayRef<DimAxes> results) {
  OpSplit split(rule, mesh);
  for (auto [tensor, axes] : llvm::zip_equal(rule.results, results))
    split.take(tensor, axes, /*reducedOnly=*/false);
  for (auto [tensor, axes] : llvm::zip_equal(rule.operands, operands))
    if (takesPart(tensor, axes))
      split.take(tensor, axes, /*reducedOnly=*/true);
  return split;
}

DimAxes OpSplit::project(const TensorFactors &tensor) const {
  DimAxes axes;
  for (const DimFactors &dim : tensor) {
    int64_t factor = majorFactor(rule, dim);
    axes.push_back(factor < 0 ? AxisList() : factorAxes[factor]);
  }
  return axes;
}

AxisList OpSplit::getReducedAxes(const TensorFactors &result) const {
  AxisList axes;
  for (auto [index, split] : llvm::enumerate(factorAxes))
    if (isReduced(rule.factors[index]) && !runsOver(result, index))
      axes.append(split.begin(), split.end());
  return axes;
}
