//===- OpSplit.cpp - the axes that split the factors of one op ------------===//

#include "passes/sharding/OpSplit.h"
#include "passes/sharding/MeshAxes.h"
#include <numeric>
#include <optional>

using namespace mlir;
using namespace mlir::fsdp;

DimAxes mlir::fsdp::dimAxesOf(ShardingAttr sharding) {
  if (!sharding)
    return {};
  return llvm::map_to_vector(sharding.getDimAxes(),
                             [](ArrayAttr axes) -> AxisList { return getAxisNames(axes); });
}
using mlir::nn::DimFactors;
using mlir::nn::FactorKind;
using mlir::nn::ShardingRule;
using mlir::nn::TensorFactors;

static bool isReduced(const nn::Factor &factor) {
  return factor.kind == FactorKind::sumReduction || factor.kind == FactorKind::maxReduction;
}

/// True if a factor that is in no result may be split.
static bool isReadAway(const nn::Factor &factor) {
  return isReduced(factor) || factor.kind == FactorKind::combined;
}

/// The factors of a dimension that can be split in it, major to minor: those of size one only if
/// they are alone.
static SmallVector<int64_t, 2> splittable(const ShardingRule &rule, const DimFactors &dim) {
  SmallVector<int64_t, 2> factors;
  for (int64_t factor : dim)
    if (rule.factors[factor].size != 1 || dim.size() == 1)
      factors.push_back(factor);
  return factors;
}

namespace {
/// The part of a dimension's axes that one factor gets.
struct FactorPart {
  int64_t factor;
  int64_t parts = 1;
  /// How many axes, the last of them perhaps with the next factor.
  size_t axes = 0;
};
} // namespace

/// How axes of `sizes` that split `dim` are distributed to its factors, major to minor: a factor
/// gets the axes that divide it, and the next factor none until it is split completely, so that
/// parts of the dimension are parts of the factors. A factor that is alone in the dimension gets
/// all axes, even if uneven. With `mayCut` an axis may be divided between two factors. Nothing if
/// axes remain.
static std::optional<SmallVector<FactorPart, 2>>
distribute(const ShardingRule &rule, const DimFactors &dim, ArrayRef<int64_t> sizes, bool mayCut) {
  SmallVector<int64_t, 2> factors = splittable(rule, dim);
  SmallVector<FactorPart, 2> result;
  if (factors.empty())
    return std::nullopt;
  if (factors.size() == 1) {
    FactorPart all{factors.front(), 1, sizes.size()};
    for (int64_t size : sizes)
      all.parts *= size;
    result.push_back(all);
    return result;
  }
  size_t next = 0;
  int64_t rest = sizes.empty() ? 1 : sizes.front();
  for (int64_t factor : factors) {
    FactorPart own{factor};
    int64_t room = rule.factors[factor].size;
    while (next < sizes.size()) {
      const int64_t part = std::gcd(room, rest);
      if ((part == 1 && rest != 1) || (part != rest && !mayCut))
        break;
      ++own.axes;
      own.parts *= part;
      room /= part;
      rest /= part;
      if (rest != 1)
        break;
      ++next;
      rest = next < sizes.size() ? sizes[next] : 1;
    }
    result.push_back(own);
    if (room != 1 || next == sizes.size())
      break;
  }
  if (next < sizes.size())
    return std::nullopt;
  return result;
}

/// True where every tensor of the op has parts of its dimensions where factors have such parts (0:
/// no axes): the factors before one that is split are split completely, and all but one that is
/// alone evenly.
static bool leavesParts(const ShardingRule &rule, ArrayRef<int64_t> parts) {
  auto fits = [&](const DimFactors &dim) {
    if (dim.size() < 2)
      return true;
    SmallVector<int64_t, 2> factors = splittable(rule, dim);
    for (int64_t factor : dim)
      if (parts[factor] != 0 && !llvm::is_contained(factors, factor))
        return false;
    if (factors.size() < 2)
      return true;
    bool complete = true;
    for (int64_t factor : factors) {
      if (parts[factor] != 0 && (!complete || rule.factors[factor].size % parts[factor] != 0))
        return false;
      // A combined factor beside others is split completely by the sharding in the op itself
      // (fsdp.enter_manual).
      complete &= parts[factor] == rule.factors[factor].size ||
                  rule.factors[factor].kind == FactorKind::combined;
    }
    return true;
  };
  auto fitsAll = [&](const TensorFactors &tensor) { return llvm::all_of(tensor, fits); };
  return llvm::all_of(rule.operands, fitsAll) && llvm::all_of(rule.results, fitsAll);
}

bool OpSplit::admits(const ShardingRule &rule, const TensorFactors &tensor,
                     ArrayRef<DimSplit> dims) {
  SmallVector<int64_t> parts(rule.factors.size(), 0);
  for (auto [dim, split] : llvm::zip_equal(tensor, dims)) {
    if (split.sizes.empty())
      continue;
    // The samples of a microbatch are not known before it runs, so indices cannot be renumbered.
    // Values of several microbatches do not exist at once, so they cannot be combined.
    if (split.overMicrobatches && llvm::any_of(dim, [&](int64_t factor) {
          return rule.factors[factor].indexed || rule.factors[factor].kind == FactorKind::combined;
        }))
      return false;
    std::optional<SmallVector<FactorPart, 2>> own =
        distribute(rule, dim, split.sizes, split.mayCut);
    if (!own)
      return false;
    for (const FactorPart &part : *own) {
      if (part.axes != 0 && rule.factors[part.factor].kind == FactorKind::whole)
        return false;
      if (part.axes != 0)
        parts[part.factor] = part.parts;
    }
  }
  return leavesParts(rule, parts);
}

SmallVector<bool> OpSplit::findAdmitted(const ShardingRule &rule, const TensorFactors &tensor,
                                        ArrayRef<DimSplit> dims) {
  SmallVector<bool> admitted(dims.size(), false);
  SmallVector<DimSplit> taken(dims.size());
  for (bool grows = true; grows;) {
    grows = false;
    for (size_t dim = 0; dim < dims.size(); ++dim) {
      if (admitted[dim])
        continue;
      taken[dim] = dims[dim];
      admitted[dim] = dims[dim].sizes.empty() || admits(rule, tensor, taken);
      grows |= admitted[dim];
      if (!admitted[dim])
        taken[dim] = {};
    }
  }
  return admitted;
}

SmallVector<bool> OpSplit::findAdmitted(const ShardingRule &rule, MeshAttr mesh,
                                        const TensorFactors &tensor, ArrayRef<AxisList> dims) {
  SmallVector<DimSplit> splits = llvm::map_to_vector(dims, [&](const AxisList &axes) {
    auto sizes = llvm::map_to_vector(axes, [&](StringAttr axis) { return mesh.getAxisSize(axis); });
    return DimSplit{SmallVector<int64_t>(sizes), llvm::is_contained(axes, kMicrobatchAxis)};
  });
  return findAdmitted(rule, tensor, splits);
}

/// Gives `factor` the axes `wanted`, or fails where another has one of them or a tensor would not
/// be in parts.
LogicalResult OpSplit::give(int64_t factor, ArrayRef<StringAttr> wanted) {
  for (const AxisList &others : factorAxes)
    for (StringAttr other : others)
      if (llvm::is_contained(wanted, other))
        return failure();
  factorAxes[factor] = AxisList(wanted);
  SmallVector<int64_t> parts = llvm::map_to_vector(
      factorAxes, [&](const AxisList &axes) { return axes.empty() ? 0 : mesh.getSize(axes); });
  if (leavesParts(rule, parts))
    return success();
  factorAxes[factor].clear();
  return failure();
}

/// Samples may be gathered from ranks, but not from microbatches: gives `factor` those of the axes
/// `wanted` that no other factor has, if the axis of microbatches is among them.
LogicalResult OpSplit::giveMicrobatches(int64_t factor, ArrayRef<StringAttr> wanted) {
  auto isFree = [&](StringAttr axis) {
    return llvm::none_of(factorAxes,
                         [&](const AxisList &others) { return llvm::is_contained(others, axis); });
  };
  AxisList free(llvm::make_filter_range(wanted, isFree));
  return success(llvm::is_contained(free, kMicrobatchAxis) && succeeded(give(factor, free)));
}

/// Gives the factors of `dim` the axes `wanted`, as far as they can have them. Returns whether any
/// got some.
bool OpSplit::takeDim(const DimFactors &dim, ArrayRef<StringAttr> wanted, bool reducedOnly) {
  SmallVector<int64_t> sizes =
      llvm::map_to_vector(wanted, [&](StringAttr axis) { return mesh.getAxisSize(axis); });
  SmallVector<FactorPart, 2> parts = *distribute(rule, dim, sizes, /*mayCut=*/false);
  bool changed = false;
  for (const FactorPart &own : parts) {
    ArrayRef<StringAttr> part = wanted.take_front(own.axes);
    wanted = wanted.drop_front(own.axes);
    // The next factor follows one that is split as the dimension is.
    if (part.empty() || ArrayRef<StringAttr>(factorAxes[own.factor]) == part)
      continue;
    // A factor of a result is split as the result is, even if it is reduced away for another.
    bool open = !reducedOnly || (isReadAway(rule.factors[own.factor]) &&
                                 !nn::anyRunsOver(rule.results, own.factor));
    if (!factorAxes[own.factor].empty() || !open)
      break;
    if (failed(give(own.factor, part)) && failed(giveMicrobatches(own.factor, part)))
      break;
    changed = true;
  }
  return changed;
}

void OpSplit::take(const TensorFactors &tensor, const DimAxes &axes, bool reducedOnly) {
  SmallVector<bool> admitted = findAdmitted(rule, mesh, tensor, axes);
  // A factor gets its axes after the factors major to it, which may be in a later dimension.
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t index = 0; index < tensor.size(); ++index)
      if (admitted[index] && !axes[index].empty())
        changed |= takeDim(tensor[index], axes[index], reducedOnly);
  }
}

/// A tensor without dimensions in the rule (a scalar among tensors) does not take part.
static bool takesPart(const TensorFactors &tensor, const DimAxes &axes) {
  return tensor.size() == axes.size();
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
    axes.emplace_back();
    for (int64_t factor : splittable(rule, dim))
      llvm::append_range(axes.back(), factorAxes[factor]);
  }
  return axes;
}

AxisList OpSplit::getReducedAxes(const TensorFactors &result) const {
  AxisList axes;
  for (auto [index, split] : llvm::enumerate(factorAxes))
    if (isReduced(rule.factors[index]) && !nn::runsOver(result, index))
      axes.append(split.begin(), split.end());
  return axes;
}
