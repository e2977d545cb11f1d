//===- CudaKernelWriter.cpp - names, expressions, statements --------------===//

#include "codegen/CudaKernelWriter.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Names that the code of a kernel uses.
static constexpr StringRef taken[] = {
    "stream", "decays", "threadIdx",    "blockIdx", "blockDim", "gridDim", "warpSize", "load",
    "store",  "Vector", "launchKernel", "lane",     "Plus",     "Maximum", "exp",      "log",
    "log1p",  "sqrt",   "rsqrt",        "tanh",     "erf",      "fabs",    "sin",      "cos",
    "pow",    "fma",    "expf",         "logf",     "log1pf",   "sqrtf",   "rsqrtf",   "tanhf",
    "erff",   "fabsf",  "sinf",         "cosf",     "powf",     "fmaf",    "min",      "max"};

CudaKernelWriter::CudaKernelWriter(const Kernel &kernel, ArrayRef<int64_t> alignments,
                                   bool anonymous)
    : KernelExpressions(kernel, anonymous, deviceFunction, taken), alignments(alignments),
      vectors(kernel.nodes.size()), outputVectors(kernel.outputs.size()) {
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

std::string CudaKernelWriter::element(int number) const {
  return vectorLoad(number) ? vectors[number] + "[" + lane + "]"
                            : KernelExpressions::element(number);
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
  writer.list("const " + index + " ", splitIndex(group.loops, flat), ";");
}

void CudaKernelWriter::defineAll(ArrayRef<int> chosen) {
  for (int number : chosen)
    define(number);
}

/// Memory may be narrower than what is computed with.
std::string CudaKernelWriter::inMemory(int output, Type type, const std::string &value) const {
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
  std::string text = inMemory(store.output, kernel.nodes[store.node].type, result(store.node));
  std::string target = outputVectors[store.output].empty()
                           ? outputs[store.output] + "[" + address(store.at) + "]"
                           : outputVectors[store.output] + "[" + lane + "]";
  writer.line((guard.empty() ? "" : "  ") + target + " = " + text + ";");
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
