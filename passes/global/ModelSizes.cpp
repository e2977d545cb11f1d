//===- ModelSizes.cpp -----------------------------------------------------===//

#include "passes/global/ModelSizes.h"

#include "dialect/nn/NNDialect.h"

using namespace mlir;
using namespace mlir::fsdp;

//===----------------------------------------------------------------------===//
// Equal sizes and products
//===----------------------------------------------------------------------===//

unsigned ModelSizes::add(int64_t value) {
  sizes.push_back({value, static_cast<unsigned>(sizes.size()), {}, false, false});
  return sizes.size() - 1;
}

unsigned ModelSizes::find(unsigned size) const {
  // Keeps paths short: visited nodes point further along the path afterwards.
  while (sizes[size].same != size)
    size = sizes[size].same = sizes[sizes[size].same].same;
  return size;
}

/// The indivisible sizes of which the sizes of `list` are products.
SmallVector<unsigned> ModelSizes::expand(ArrayRef<unsigned> list) const {
  SmallVector<unsigned> whole, stack(llvm::reverse(list));
  while (!stack.empty()) {
    unsigned size = find(stack.pop_back_val());
    if (sizes[size].parts.empty())
      whole.push_back(size);
    else
      llvm::append_range(stack, llvm::reverse(sizes[size].parts));
  }
  return whole;
}

void ModelSizes::join(unsigned a, unsigned b) {
  if (a == b)
    return;
  sizes[a].fromInput |= sizes[b].fromInput;
  sizes[a].fromParameter |= sizes[b].fromParameter;
  sizes[b].same = a;
}

/// Two lists with one product, major to minor.
void ModelSizes::match(ArrayRef<unsigned> left, ArrayRef<unsigned> right) {
  SmallVector<unsigned> a = expand(left), b = expand(right);
  auto valuesOf = [&](ArrayRef<unsigned> list) {
    return llvm::map_to_vector(list, [&](unsigned size) { return sizes[size].value; });
  };
  if (valuesOf(a) == valuesOf(b)) {
    // Of equal values, one may have been joined to another by now.
    for (auto [one, other] : llvm::zip_equal(a, b))
      join(find(one), find(other));
    return;
  }
  // How many sizes of one follow.
  auto onesBehind = [&](ArrayRef<unsigned> list, size_t index) -> size_t {
    auto isOne = [&](unsigned size) { return sizes[size].value == 1; };
    ArrayRef<unsigned> rest = list.drop_front(index + 1);
    return llvm::find_if_not(rest, isOne) - rest.begin();
  };
  auto setParts = [&](unsigned whole, ArrayRef<unsigned> parts) {
    if (!llvm::is_contained(expand(parts), whole))
      sizes[whole].parts.assign(parts.begin(), parts.end());
  };
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    // A size that has just been split may occur again.
    if (unsigned one = find(a[i]), other = find(b[j]);
        !sizes[one].parts.empty() || !sizes[other].parts.empty())
      return match(ArrayRef(a).drop_front(i), ArrayRef(b).drop_front(j));
    else
      a[i] = one, b[j] = other;
    int64_t one = sizes[a[i]].value, other = sizes[b[j]].value;
    if (one == other) {
      // A batch of one sample is a size like any other: merging it with another size gives their
      // product, not the other size.
      const size_t left = onesBehind(a, i), right = onesBehind(b, j);
      const size_t moreLeft = left - std::min(left, right),
                   moreRight = right - std::min(left, right);
      if (moreLeft > 0)
        setParts(b[j], ArrayRef(a).slice(i, moreLeft + 1));
      else if (moreRight > 0)
        setParts(a[i], ArrayRef(b).slice(j, moreRight + 1));
      else
        join(a[i], b[j]);
      i += moreLeft + 1;
      j += moreRight + 1;
      continue;
    }
    const bool leftIsLarger = one > other;
    auto [large, small] = leftIsLarger ? std::pair(a[i], b[j]) : std::pair(b[j], a[i]);
    // The product of a size of one and of itself.
    ArrayRef<unsigned> behind =
        leftIsLarger ? ArrayRef(b).drop_front(j + 1) : ArrayRef(a).drop_front(i + 1);
    if (sizes[small].value == 1 && llvm::is_contained(expand(behind), large)) {
      ++(leftIsLarger ? j : i);
      continue;
    }
    if (sizes[small].value == 0 || sizes[large].value % sizes[small].value != 0)
      break;
    unsigned rest = add(sizes[large].value / sizes[small].value);
    sizes[large].parts = {small, rest};
    (leftIsLarger ? a[i] : b[j]) = rest;
    ++(leftIsLarger ? j : i);
  }
  // No boundary in common.
  Dependence both;
  both.from.append(a.begin() + i, a.end());
  both.to.append(b.begin() + j, b.end());
  dependences.push_back({both.to, both.from});
  dependences.push_back(std::move(both));
}

//===----------------------------------------------------------------------===//
// Sizes from ops
//===----------------------------------------------------------------------===//

void ModelSizes::addResults(Operation *op) {
  for (Value result : op->getResults()) {
    SmallVector<List, 4> &own = dims[result];
    if (auto type = dyn_cast<RankedTensorType>(result.getType()))
      for (int64_t size : type.getShape())
        own.push_back({add(size)});
  }
}

void ModelSizes::addRule(Operation *op) {
  nn::ShardingRule rule = cast<nn::ShardingRuleOpInterface>(op).getShardingRule();
  SmallVector<unsigned, 6> own;
  for (const nn::Factor &factor : rule.factors)
    own.push_back(add(factor.size));
  auto use = [&](Value value, const nn::TensorFactors &tensor) {
    for (auto [dim, list] : llvm::enumerate(tensor))
      if (!list.empty())
        match(List(dims[value][dim]),
              llvm::map_to_vector(list, [&](int64_t factor) { return own[factor]; }));
  };
  for (auto [value, tensor] : llvm::zip_equal(op->getOperands(), rule.operands))
    use(value, tensor);
  // A size of the data is split into as many pieces as fit; the model determines the length of a
  // piece. Parts that were merged before keep their origin.
  for (const nn::TensorFactors &tensor : rule.operands)
    for (const nn::DimFactors &dim : tensor)
      for (int64_t factor : ArrayRef(dim).drop_front(dim.empty() ? 0 : 1))
        if (!own.empty() && find(own[factor]) >= own.front())
          minorParts.push_back(own[factor]);
  for (auto [value, tensor] : llvm::zip_equal(op->getResults(), rule.results))
    use(value, tensor);
  // Dimensions that are whole in an operand and have another size in the result: slices, pads,
  // concatenations.
  Dependence along;
  for (auto [factor, info] : llvm::enumerate(rule.factors)) {
    if (info.kind != nn::FactorKind::whole)
      continue;
    if (!nn::anyRunsOver(rule.results, factor))
      along.from.push_back(own[factor]);
    else if (!nn::anyRunsOver(rule.operands, factor))
      along.to.push_back(own[factor]);
  }
  if (!along.from.empty() && !along.to.empty())
    dependences.push_back(std::move(along));
  factors[op] = std::move(own);
}

/// Parts have the origin of the whole, and sizes that depend on the data are sizes of the data.
void ModelSizes::inherit() {
  for (unsigned part : minorParts)
    if (Size &size = sizes[find(part)]; size.parts.empty() && !size.fromInput)
      size.fromParameter = true;
  for (bool changed = true; changed;) {
    changed = false;
    auto mark = [&](bool &flag, bool value) {
      changed |= value && !flag;
      flag |= value;
    };
    for (const Size &whole : sizes)
      for (unsigned part : whole.parts) {
        mark(sizes[find(part)].fromInput, whole.fromInput);
        mark(sizes[find(part)].fromParameter, whole.fromParameter);
      }
    for (const Dependence &dependence : dependences)
      if (llvm::any_of(expand(dependence.from), [&](unsigned size) { return isOfData(size); }))
        for (unsigned size : expand(dependence.to))
          mark(sizes[size].fromInput, true);
  }
}

ModelSizes::ModelSizes(ArrayRef<Operation *> ops) {
  for (Operation *op : ops) {
    if (auto checkpoint = dyn_cast<CheckpointOp>(op)) {
      for (auto [result, value] : llvm::zip_equal(
               op->getResults(), checkpoint.getBody().front().getTerminator()->getOperands())) {
        SmallVector<List, 4> yielded = dims.lookup(value);
        dims[result] = std::move(yielded);
      }
      continue;
    }
    addResults(op);
    if (auto input = dyn_cast<InputOp>(op)) {
      // Sizes of other inputs may be widths of the model; parameters have those.
      for (const List &dim : dims[input.getResult()])
        sizes[dim.front()].fromInput = true;
    } else if (auto read = dyn_cast<ReadOp>(op)) {
      auto [known, isNew] =
          params.try_emplace(read.getParamAttr().getAttr(), dims[read.getResult()]);
      if (!isNew)
        dims[read.getResult()] = known->second;
      for (const List &dim : known->second)
        sizes[find(dim.front())].fromParameter = true;
    } else if (isa<nn::ShardingRuleOpInterface>(op)) {
      addRule(op);
    }
  }
  inherit();
}
