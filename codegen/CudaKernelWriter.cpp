//===- CudaKernelWriter.cpp - names, expressions, statements --------------===//

#include "codegen/CudaKernelWriter.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

/// Names that the code of a kernel uses.
static constexpr StringRef taken[] = {"stream",   "decays",   "threadIdx",    "blockIdx",
                                      "blockDim", "gridDim",  "warpSize",     "load",
                                      "store",    "Vector",   "launchKernel", "lane",
                                      "Plus",     "Maximum",  "exp",          "log",
                                      "log1p",    "sqrt",     "rsqrt",        "tanh",
                                      "erf",      "fabs",     "sin",          "cos",
                                      "pow",      "fma",      "expf",         "logf",
                                      "log1pf",   "sqrtf",    "rsqrtf",       "tanhf",
                                      "erff",     "fabsf",    "sinf",         "cosf",
                                      "powf",     "fmaf",     "min",          "max",
                                      "dim3",     "repeated", "fastGelu",     "fastGeluGradient"};

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
  // Threads past the end of the grid are included.
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
  if (!vectorLoad(number))
    return KernelExpressions::element(number);
  const bool ofVector = vectorized && varies(number, kernel.loops.size() - 1);
  return vectors[number] + (ofVector ? "[" + lane + "]" : "");
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

/// The name of the group's flat index: that of its loop, if it has only one.
std::string CudaKernelWriter::flatName(const LoopGroup &group, StringRef wanted) {
  return group.loops.size() == 1 ? loops[group.loops.front()] : named(wanted);
}

/// The indices of the loops, computed from the flat one.
void CudaKernelWriter::declareIndices(const LoopGroup &group, const std::string &flat) {
  if (group.loops.size() <= 1)
    return;
  writer.list("const " + index + " ", splitIndex(group.loops, flat), ";");
}

void CudaKernelWriter::defineAll(ArrayRef<int> chosen) {
  for (int number : chosen)
    define(number);
}

/// The type in memory may be narrower than the compute type.
std::string CudaKernelWriter::inMemory(int output, Type type, const std::string &value) const {
  Type memory = kernel.outputs[output].getElementType();
  return memory == type ? value : "fromFloat<" + typeName(memory) + ">(" + value + ")";
}

/// Loops that a store does not vary with are walked over by many threads: the first stores.
std::string CudaKernelWriter::guardOf(const KernelStore &store) const {
  std::string guard;
  for (auto [loop, var] : llvm::enumerate(kernel.loops))
    if ((store.at.empty() || store.at[loop] == 0) && var.size > 1)
      guard += (guard.empty() ? "" : " && ") + loopIndex(loop) + " == 0";
  return guard;
}

void CudaKernelWriter::store(const KernelStore &store) {
  std::string text = inMemory(store.output, kernel.nodes[store.node].type, result(store.node));
  if (!outputVectors[store.output].empty()) { // guarded when the vector is stored
    writer.line(outputVectors[store.output] + "[" + lane + "] = " + text + ";");
    return;
  }
  std::string guard = guardOf(store);
  if (!guard.empty())
    writer.line("if (" + guard + ")");
  writer.line((guard.empty() ? "" : "  ") + outputs[store.output] + "[" + address(store.at) +
              "] = " + text + ";");
}

void CudaKernelWriter::declareVectors(int64_t width) {
  llvm::MapVector<Type, std::vector<std::string>> declared;
  for (const KernelStore &each : kernel.stores)
    if (outputVectors[each.output].empty()) {
      outputVectors[each.output] = named(kernel.outputNames[each.output] + "_v");
      declared[kernel.outputs[each.output].getElementType()].push_back(outputVectors[each.output]);
    }
  for (const auto &[type, vectors] : declared)
    writer.list("Vector<" + typeName(type) + ", " + std::to_string(width) + "> ", vectors, ";");
}

void CudaKernelWriter::openLanes(int64_t width) {
  if (laneName.empty())
    laneName = named("e");
  lane = laneName;
  writer.line("#pragma unroll");
  writer.open("for (int " + lane + " = 0; " + lane + " < " + std::to_string(width) + "; ++" + lane +
              ")");
}

void CudaKernelWriter::closeLanes() {
  writer.close();
  lane.clear();
}

void CudaKernelWriter::storeVector(const KernelStore &store) {
  std::string guard = guardOf(store);
  if (!guard.empty())
    writer.line("if (" + guard + ")");
  writer.line((guard.empty() ? "store(" : "  store(") + outputs[store.output] + " + " +
              address(store.at) + ", " + outputVectors[store.output] + ");");
}

std::string CudaKernelWriter::launchOf(StringRef kernel, const std::string &grid,
                                       const std::string &block,
                                       ArrayRef<std::string> arguments) const {
  std::vector<std::string> items = {kernel.str(), "/*grid=*/" + grid, "/*block=*/" + block,
                                    "/*sharedBytes=*/0", "stream"};
  llvm::append_range(items, arguments);
  return "launchKernel(" + llvm::join(items, ", ") + ");";
}

/// The host's side: a launch of `@_kernel` with all parameters.
void CudaKernelWriter::launches(const std::string &grid, const std::string &block, StringRef note) {
  host.line("return " + launchOf("@_kernel", grid, block, arguments));
  if (!note.empty())
    head.line("// " + note);
}
