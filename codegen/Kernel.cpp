//===- Kernel.cpp - loops of a kernel -------------------------------------===//

#include "codegen/Kernel.h"

using namespace mlir;
using namespace mlir::fsdp;

std::string mlir::fsdp::spellAffine(ArrayRef<int64_t> at, ArrayRef<std::string> indices) {
  std::string text;
  for (auto [coefficient, index] : llvm::zip_equal(at, indices)) {
    if (coefficient == 0)
      continue;
    bool isSum = coefficient != 1 && StringRef(index).contains(' ');
    text += (text.empty() ? "" : " + ") + (isSum ? "(" + index + ")" : index);
    if (coefficient != 1)
      text += " * " + std::to_string(coefficient);
  }
  return text.empty() ? "0" : text;
}

std::string mlir::fsdp::maskCondition(const KernelNode &node, const std::string &place,
                                      const std::string &argument, const std::string &count) {
  if (count.empty())
    return place + " < " + argument;
  return (argument.empty() ? "" : argument + " + ") + place + " < " + count +
         (node.rows == 1 ? "" : " * " + std::to_string(node.rows));
}

SmallVector<int> Kernel::depths() const {
  SmallVector<int> depths;
  for (const KernelNode &node : nodes) {
    int depth = 0;
    for (auto [loop, coefficient] : llvm::enumerate(node.at))
      if (coefficient != 0)
        depth = std::max(depth, static_cast<int>(loop) + 1);
    for (int operand : node.operands)
      depth = std::max(depth, depths[operand]);
    depths.push_back(depth);
  }
  return depths;
}

SmallVector<int> Kernel::uses() const {
  SmallVector<int> uses(nodes.size(), 0);
  for (const KernelNode &node : nodes)
    for (int operand : node.operands)
      ++uses[operand];
  return uses;
}

SmallVector<int> Kernel::stored() const {
  SmallVector<int> stored(nodes.size(), 0);
  for (const KernelStore &store : stores)
    ++stored[store.node];
  if (reduction)
    ++stored[reduction->store.node];
  return stored;
}

Kernel Kernel::behindFirstResult() const {
  Kernel rest = *this;
  const KernelStore &first =
      *llvm::find_if(stores, [](const KernelStore &store) { return store.output == 0; });
  KernelNode load(KernelNode::load, nodes[first.node].type);
  load.input = static_cast<int>(inputs.size()) - 1;
  load.at = first.at;
  load.name = nodes[first.node].name;
  rest.nodes[first.node] = load;
  llvm::erase_if(rest.stores, [](const KernelStore &store) { return store.output == 0; });
  // Nodes that only the first result needs are not computed again.
  SmallVector<bool> used(nodes.size(), false);
  for (const KernelStore &store : rest.stores)
    used[store.node] = true;
  if (reduction)
    used[reduction->store.node] = true;
  for (size_t number = nodes.size(); number-- > 0;)
    if (used[number])
      for (int operand : rest.nodes[number].operands)
        used[operand] = true;
  SmallVector<int> numbers(nodes.size(), -1);
  std::vector<KernelNode> kept;
  for (auto [number, node] : llvm::enumerate(rest.nodes)) {
    if (!used[number])
      continue;
    numbers[number] = static_cast<int>(kept.size());
    for (int &operand : node.operands)
      operand = numbers[operand];
    kept.push_back(std::move(node));
  }
  rest.nodes = std::move(kept);
  for (KernelStore &store : rest.stores)
    store.node = numbers[store.node];
  if (rest.reduction)
    rest.reduction->store.node = numbers[rest.reduction->store.node];
  return rest;
}

/// Calls `visit` with every affine form of the kernel.
template <typename Fn> static void forEachAffine(Kernel &kernel, Fn visit) {
  for (KernelNode &node : kernel.nodes)
    visit(node.at);
  for (KernelStore &store : kernel.stores)
    visit(store.at);
  if (kernel.reduction)
    visit(kernel.reduction->store.at);
}

void Kernel::simplify() {
  auto erase = [&](size_t loop) {
    rowLoops -= loop < rowLoops;
    loops.erase(loops.begin() + loop);
    forEachAffine(*this, [&](Affine &at) {
      if (!at.empty())
        at.erase(at.begin() + loop);
    });
  };
  for (size_t loop = loops.size(); loop-- > 0;)
    if (loops[loop].size == 1 && !loops[loop].counted && !(rowLoops == 1 && loop == 0))
      erase(loop);
  for (size_t inner = loops.size(); inner-- > 1;) {
    size_t outer = inner - 1;
    if (inner == rowLoops || loops[outer].counted || loops[inner].counted ||
        loops[outer].reduction != loops[inner].reduction)
      continue;
    bool joinable = true;
    forEachAffine(*this, [&](Affine &at) {
      joinable &= at.empty() || at[outer] == at[inner] * loops[inner].size;
    });
    if (!joinable)
      continue;
    loops[outer].size *= loops[inner].size;
    loops[outer].name = "i";
    forEachAffine(*this, [&](Affine &at) {
      if (!at.empty())
        at[outer] = at[inner];
    });
    erase(inner);
  }
}
