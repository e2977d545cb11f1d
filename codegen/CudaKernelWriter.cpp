//===- CudaKernelWriter.cpp - names, expressions, statements --------------===//

#include "codegen/CudaKernelWriter.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

CudaKernelWriter::CudaKernelWriter(const Kernel &kernel, ArrayRef<int64_t> alignments,
                                   bool anonymous)
    : kernel(kernel), alignments(alignments), anonymous(anonymous) {
  for (StringRef word :
       {"stream", "decays", "threadIdx",    "blockIdx", "blockDim", "gridDim", "warpSize", "load",
        "store",  "Vector", "launchKernel", "lane",     "Plus",     "Maximum", "exp",      "log",
        "log1p",  "sqrt",   "rsqrt",        "tanh",     "erf",      "fabs",    "sin",      "cos",
        "pow",    "fma",    "expf",         "logf",     "log1pf",   "sqrtf",   "rsqrtf",   "tanhf",
        "erff",   "fabsf",  "sinf",         "cosf",     "powf",     "fmaf",    "min",      "max"})
    names.unique(word);
  for (const LoopVar &loop : kernel.loops)
    loops.push_back(named(loop.name));
  for (const KernelMask &mask : kernel.masks)
    held.push_back(named(mask.name()));
  for (StringRef name : kernel.inputNames)
    inputs.push_back(named(name));
  for (StringRef name : kernel.outputNames)
    outputs.push_back(named(name));
  size_t count = kernel.nodes.size();
  uses = kernel.uses();
  results = kernel.stored();
  nodes.resize(count);
  vectors.resize(count);
  outputVectors.resize(kernel.outputs.size());
  for (const KernelNode &node : kernel.nodes) {
    llvm::BitVector &varies = variesWith.emplace_back(kernel.loops.size());
    for (auto [loop, coefficient] : llvm::enumerate(node.at))
      if (coefficient != 0)
        varies.set(loop);
    for (int operand : node.operands)
      varies |= variesWith[operand];
  }
  for (auto [loop, var] : llvm::enumerate(kernel.loops)) {
    LoopGroup &group = var.reduction ? reduced : kept;
    group.loops.push_back(loop);
    group.size *= var.size;
  }
  int64_t most = kept.size * reduced.size;
  for (RankedTensorType type : kernel.inputs)
    most = std::max(most, type.getNumElements());
  for (RankedTensorType type : kernel.outputs)
    most = std::max(most, type.getNumElements());
  // Threads past the end of the grid count as well.
  if (most >= (int64_t(1) << 31) - 4096)
    index = "std::int64_t";
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

std::string CudaKernelWriter::loopIndex(int loop) const {
  bool innermost = loop + 1 == static_cast<int>(kernel.loops.size());
  return innermost && !lane.empty() ? loops[loop] + " + " + lane : loops[loop];
}

std::string CudaKernelWriter::address(const Affine &at) const {
  std::vector<std::string> indices;
  for (size_t loop = 0; loop < at.size(); ++loop)
    indices.push_back(at[loop] ? loopIndex(loop) : std::string());
  return spellAffine(at, indices);
}

/// Literals and positions stand where they are used; so does what is used once, near where it is
/// computed. As a result may take the place of an operand, nothing is loaded where something has
/// been stored: with several results, what they store has names.
bool CudaKernelWriter::inlined(int number) const {
  const KernelNode &node = kernel.nodes[number];
  if (node.kind == KernelNode::constant || node.kind == KernelNode::table ||
      node.kind == KernelNode::position || vectorLoad(number))
    return true;
  if (uses[number] + results[number] != 1)
    return false;
  if (results[number])
    return kernel.outputs.size() == 1 && inLoop(number) == (vectorized || kernel.reduction);
  if (node.kind != KernelNode::load)
    return false;
  for (size_t user = 0; user < kernel.nodes.size(); ++user)
    if (llvm::is_contained(kernel.nodes[user].operands, number))
      return inLoop(user) == inLoop(number);
  return false;
}

std::string CudaKernelWriter::operand(int number) const {
  if (!inlined(number))
    return nodes[number];
  std::string text = value(number);
  bool compound = kernel.nodes[number].kind != KernelNode::load &&
                  text.find_first_of(" -") != std::string::npos;
  return compound ? "(" + text + ")" : text;
}

std::string CudaKernelWriter::value(int number) const {
  const KernelNode &node = kernel.nodes[number];
  switch (node.kind) {
  case KernelNode::load: {
    std::string element = vectorLoad(number) ? vectors[number] + "[" + lane + "]"
                                             : inputs[node.input] + "[" + address(node.at) + "]";
    return memoryType(node) == node.type ? element : "toFloat(" + element + ")";
  }
  case KernelNode::constant:
    return node.text;
  case KernelNode::table:
    return nodes[number] + "[" + address(node.at) + "]";
  case KernelNode::position:
    return address(node.at);
  case KernelNode::masked:
    return maskCondition(node, address(node.at), node.mask < 0 ? "" : held[node.mask],
                         node.operands.size() > 2 ? operand(node.operands[2]) : "") +
           " ? " + operand(node.operands[0]) + " : " + operand(node.operands[1]);
  case KernelNode::expression:
    break;
  }
  return spellExpression(node.text, node.type, deviceFunction,
                         [&](int number) { return operand(node.operands[number]); });
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

/// The name of the group's one index: that of its loop, if it has but one.
std::string CudaKernelWriter::flatName(const LoopGroup &group, StringRef wanted) {
  return group.loops.size() == 1 ? loops[group.loops.front()] : named(wanted);
}

/// The loops' own indices out of the flat one.
void CudaKernelWriter::declareIndices(const LoopGroup &group, const std::string &flat) {
  if (group.loops.size() <= 1)
    return;
  std::vector<std::string> items;
  int64_t inner = group.size;
  for (auto [i, loop] : llvm::enumerate(group.loops)) {
    int64_t size = kernel.loops[loop].size;
    inner /= size;
    std::string text = inner == 1 ? flat : flat + " / " + std::to_string(inner);
    if (i > 0)
      text += " % " + std::to_string(size);
    items.push_back(loops[loop] + " = " + text);
  }
  writer.list("const " + index + " ", items, ";");
}

void CudaKernelWriter::define(ArrayRef<int> chosen) {
  for (int number : chosen) {
    const KernelNode &node = kernel.nodes[number];
    if (inlined(number))
      continue;
    nodes[number] = named(node.name);
    writer.line("const " + typeName(node.type) + " " + nodes[number] + " = " + value(number) + ";");
  }
}

/// Memory may be narrower than what is computed with.
std::string CudaKernelWriter::stored(int output, Type type, const std::string &value) const {
  Type memory = kernel.outputs[output].getElementType();
  return memory == type ? value : "fromFloat<" + typeName(memory) + ">(" + value + ")";
}

/// Loops that a store does not vary with are walked over by many threads: the first stores.
void CudaKernelWriter::store(const KernelStore &store) {
  std::string guard;
  for (auto [loop, var] : llvm::enumerate(kernel.loops))
    if ((store.at.empty() || store.at[loop] == 0) && var.size > 1)
      guard += (guard.empty() ? "" : " && ") + loopIndex(loop) + " == 0";
  if (!guard.empty())
    writer.line("if (" + guard + ")");
  std::string text = inlined(store.node) ? value(store.node) : nodes[store.node];
  text = stored(store.output, kernel.nodes[store.node].type, text);
  std::string target = outputVectors[store.output].empty()
                           ? outputs[store.output] + "[" + address(store.at) + "]"
                           : outputVectors[store.output] + "[" + lane + "]";
  writer.line((guard.empty() ? "" : "  ") + target + " = " + text + ";");
}

void CudaKernelWriter::tables() {
  for (auto [number, node] : llvm::enumerate(kernel.nodes)) {
    if (node.kind != KernelNode::table)
      continue;
    nodes[number] = "@_" + named(node.name) + "_table";
    std::vector<std::string> values;
    for (Attribute value : node.values.getValues<Attribute>())
      values.push_back(literal(value));
    head.list("__device__ const " + typeName(node.type) + " " + nodes[number] + "[] = {", values,
              "};");
  }
}

/// The host's side: a launch of `@_kernel` with all parameters.
void CudaKernelWriter::launches(const std::string &grid, const std::string &block, StringRef note) {
  std::vector<std::string> items = {"@_kernel", "/*grid=*/" + grid, "/*block=*/" + block,
                                    "/*sharedBytes=*/0", "stream"};
  llvm::append_range(items, arguments);
  host.line("return launchKernel(" + llvm::join(items, ", ") + ");");
  if (!note.empty())
    head.line("// " + note);
}
