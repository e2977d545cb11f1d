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
