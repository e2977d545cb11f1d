//===- CudaKernelPrinter.cpp ----------------------------------------------===//

#include "codegen/CudaKernelPrinter.h"

#include "codegen/Elementwise.h"
#include "codegen/Names.h"
#include "codegen/Writer.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// Blocks that keep every multiprocessor of a large device busy twice over.
constexpr int64_t manyBlocks = 264;
constexpr int64_t threadsOfBlock = 256;
/// So few that one thread adds them up.
constexpr int64_t fewTerms = 16;

/// Some of the loops as one index, and how threads walk over it.
struct LoopGroup {
  SmallVector<int> loops; ///< outermost first
  int64_t size = 1;
};

/// Writes one kernel.
class Printer {
public:
  Printer(const Kernel &kernel, ArrayRef<int64_t> alignments, bool anonymous);
  KernelFunction print();

private:
  // Names and expressions.
  std::string named(StringRef wanted) { return names.unique(anonymous ? "v" : wanted); }
  std::string loopIndex(int loop) const;
  std::string address(const Affine &at) const;
  std::string operand(int node) const;
  std::string value(int node) const;
  bool inlined(int node) const;
  Type memoryType(const KernelNode &load) const {
    return kernel.inputs[load.input].getElementType();
  }
  std::string stored(int output, Type type, const std::string &value) const;
  bool vectorLoad(int node) const { return !vectors[node].empty(); }

  // Which loops things vary with.
  bool varies(int node, int loop) const { return variesWith[node][loop]; }
  /// Whether the node belongs into the loop that a thread runs: over a vector or over terms.
  bool inLoop(int node) const {
    if (kernel.reduction)
      return llvm::any_of(reduced.loops, [&](int loop) { return varies(node, loop); });
    return vectorized && varies(node, kernel.loops.size() - 1);
  }
  int64_t vectorWidth() const;
  bool contiguous(const Affine &at, int64_t alignment, Type type, int64_t width) const;

  // Statements.
  void declareIndices(const LoopGroup &group, const std::string &linear);
  std::string linearName(const LoopGroup &group, StringRef wanted);
  /// The block's number, in a type that holds every index.
  std::string blockNumber() const {
    return index == "int" ? "blockIdx.x" : index + "(blockIdx.x)";
  }
  void define(ArrayRef<int> nodes);
  void store(const KernelStore &store);
  void tables();
  void elementwise();
  void reduceColumns();
  void reduceRows();
  void accumulate(const std::string &total, const std::string &first, const std::string &step);
  std::string combination(StringRef function, StringRef sizes, const std::string &total) const;
  void finish(const std::string &total, const std::string &guard);
  void launches(const std::string &grid, const std::string &block, StringRef note);

  const Kernel &kernel;
  ArrayRef<int64_t> alignments; ///< in bytes: of inputs, then outputs
  bool anonymous;
  Names names;
  Writer writer, head, host;
  std::vector<std::string> loops, inputs, outputs, held, nodes, vectors, outputVectors;
  std::vector<llvm::BitVector> variesWith;
  SmallVector<int> uses;
  LoopGroup kept, reduced;
  bool vectorized = false;
  std::string lane; ///< the element of a vector that is worked on
  std::string index = "int";
  SmallVector<std::string> arguments;
};

std::string typeName(Type type) { return elementType(type).str(); }

int64_t bytesOf(Type type) { return std::max<int64_t>(type.getIntOrFloatBitWidth() / 8, 1); }

} // namespace

Printer::Printer(const Kernel &kernel, ArrayRef<int64_t> alignments, bool anonymous)
    : kernel(kernel), alignments(alignments), anonymous(anonymous) {
  for (StringRef word :
       {"stream", "threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", "load", "store",
        "Vector", "launchKernel", "lane", "Plus", "Maximum", "exp", "log", "log1p", "sqrt", "rsqrt", "tanh",
        "erf", "fabs", "sin", "cos", "pow", "fma", "expf", "logf", "log1pf", "sqrtf", "rsqrtf",
        "tanhf", "erff", "fabsf", "sinf", "cosf", "powf", "fmaf", "min", "max"})
    names.unique(word);
  for (const LoopVar &loop : kernel.loops)
    loops.push_back(named(loop.name));
  for (size_t mask = 0; mask < kernel.masks.size(); ++mask)
    held.push_back(named("held"));
  for (StringRef name : kernel.inputNames)
    inputs.push_back(named(name));
  for (StringRef name : kernel.outputNames)
    outputs.push_back(named(name));
  size_t count = kernel.nodes.size();
  uses.assign(count, 0);
  nodes.resize(count);
  vectors.resize(count);
  outputVectors.resize(kernel.outputs.size());
  for (const KernelNode &node : kernel.nodes) {
    llvm::BitVector &varies = variesWith.emplace_back(kernel.loops.size());
    for (auto [loop, coefficient] : llvm::enumerate(node.at))
      if (coefficient != 0)
        varies.set(loop);
    for (int operand : node.operands) {
      ++uses[operand];
      varies |= variesWith[operand];
    }
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

std::string Printer::loopIndex(int loop) const {
  bool innermost = loop + 1 == static_cast<int>(kernel.loops.size());
  return innermost && !lane.empty() ? loops[loop] + " + " + lane : loops[loop];
}

std::string Printer::address(const Affine &at) const {
  std::string text;
  for (auto [loop, coefficient] : llvm::enumerate(at)) {
    if (coefficient == 0)
      continue;
    text += text.empty() ? "" : " + ";
    std::string own = loopIndex(loop);
    if (coefficient != 1 && own.find(' ') != std::string::npos)
      own = "(" + own + ")";
    text += own;
    if (coefficient != 1)
      text += " * " + std::to_string(coefficient);
  }
  return text.empty() ? "0" : text;
}

/// Literals and positions stand where they are used; so does what is used once, near where it is
/// computed. As a result may take the place of an operand, nothing is loaded where something has
/// been stored: with several results, what they store has names.
bool Printer::inlined(int number) const {
  const KernelNode &node = kernel.nodes[number];
  if (node.kind == KernelNode::constant || node.kind == KernelNode::table ||
      node.kind == KernelNode::position || vectorLoad(number))
    return true;
  int stores = llvm::count_if(kernel.stores, [&](auto &store) { return store.node == number; });
  if (kernel.reduction && kernel.reduction->store.node == number)
    ++stores;
  if (uses[number] + stores != 1)
    return false;
  if (stores)
    return kernel.outputs.size() == 1 && inLoop(number) == (vectorized || kernel.reduction);
  if (node.kind != KernelNode::load)
    return false;
  for (size_t user = 0; user < kernel.nodes.size(); ++user)
    if (llvm::is_contained(kernel.nodes[user].operands, number))
      return inLoop(user) == inLoop(number);
  return false;
}

std::string Printer::operand(int number) const {
  if (!inlined(number))
    return nodes[number];
  std::string text = value(number);
  bool compound = kernel.nodes[number].kind != KernelNode::load &&
                  text.find_first_of(" -") != std::string::npos;
  return compound ? "(" + text + ")" : text;
}

/// Expressions name the functions of the CPU's runtime; these are the device's.
static std::string deviceMath(StringRef text, Type type) {
  static constexpr std::pair<StringLiteral, StringLiteral> words[] = {
      {"float(1) / std::sqrt(", "rsqrt"},
      {"vectorExp(", "exp"},
      {"vectorLog1p(", "log1p"},
      {"vectorLog(", "log"},
      {"vectorTanh(", "tanh"},
      {"vectorErf(", "erf"},
      {"std::sqrt(", "sqrt"},
      {"std::fabs(", "fabs"},
      {"std::sin(", "sin"},
      {"std::cos(", "cos"},
      {"std::pow(", "pow"},
      {"std::fma(", "fma"}};
  std::string result = text.str();
  for (auto [from, to] : words)
    if (size_t at = result.find(from.str()); at != std::string::npos)
      return result.replace(at, from.size(),
                            type.isF64() ? "std::" + to.str() + "(" : to.str() + "f(");
  return result;
}

std::string Printer::value(int number) const {
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
    return address(node.at) + " < " + held[node.mask] + " ? " + operand(node.operands[0]) + " : " +
           operand(node.operands[1]);
  case KernelNode::expression:
    break;
  }
  std::string text = deviceMath(node.text, node.type), result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '$')
      result += operand(node.operands[text[++i] - '0']);
    else
      result += text[i];
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

/// The name of the group's one index: that of its loop, if it has but one.
std::string Printer::linearName(const LoopGroup &group, StringRef wanted) {
  return group.loops.size() == 1 ? loops[group.loops.front()] : named(wanted);
}

/// The loops' own indices out of the linear one.
void Printer::declareIndices(const LoopGroup &group, const std::string &linear) {
  if (group.loops.size() <= 1)
    return;
  std::vector<std::string> items;
  int64_t inner = group.size;
  for (auto [i, loop] : llvm::enumerate(group.loops)) {
    int64_t size = kernel.loops[loop].size;
    inner /= size;
    std::string text = inner == 1 ? linear : linear + " / " + std::to_string(inner);
    if (i > 0)
      text += " % " + std::to_string(size);
    items.push_back(loops[loop] + " = " + text);
  }
  writer.list("const " + index + " ", items, ";");
}

void Printer::define(ArrayRef<int> chosen) {
  for (int number : chosen) {
    const KernelNode &node = kernel.nodes[number];
    if (inlined(number))
      continue;
    nodes[number] = named(node.name);
    writer.line("const " + typeName(node.type) + " " + nodes[number] + " = " + value(number) + ";");
  }
}

/// Memory may be narrower than what is computed with.
std::string Printer::stored(int output, Type type, const std::string &value) const {
  Type memory = kernel.outputs[output].getElementType();
  return memory == type ? value : "fromFloat<" + typeName(memory) + ">(" + value + ")";
}

/// Loops that a store does not vary with are walked over by many threads: the first stores.
void Printer::store(const KernelStore &store) {
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

void Printer::tables() {
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
void Printer::launches(const std::string &grid, const std::string &block, StringRef note) {
  std::vector<std::string> items = {"@_kernel", "/*grid=*/" + grid, "/*block=*/" + block,
                                    "/*sharedBytes=*/0", "stream"};
  llvm::append_range(items, arguments);
  host.line("return launchKernel(" + llvm::join(items, ", ") + ");");
  if (!note.empty())
    head.line("// " + note);
}

//===----------------------------------------------------------------------===//
// No reduction
//===----------------------------------------------------------------------===//

/// Whether `width` results in a row are `width` elements in a row here, so that they move at once.
bool Printer::contiguous(const Affine &at, int64_t alignment, Type type, int64_t width) const {
  if (at.empty() || at.back() != 1 || alignment % std::min<int64_t>(width * bytesOf(type), 16))
    return false;
  return llvm::all_of(ArrayRef(at).drop_back(),
                      [&](int64_t coefficient) { return coefficient % width == 0; });
}

/// Elements a thread works on: those of 16 bytes of the smallest type that is walked in a row.
int64_t Printer::vectorWidth() const {
  if (kernel.loops.empty())
    return 1;
  int64_t width = 1;
  auto want = [&](Type type) { width = std::max<int64_t>(width, 16 / bytesOf(type)); };
  for (const KernelNode &node : kernel.nodes)
    if (node.kind == KernelNode::load && node.at.back() == 1)
      want(memoryType(node));
  for (const KernelStore &store : kernel.stores)
    if (store.at.back() == 1)
      want(kernel.outputs[store.output].getElementType());
  for (width = std::min<int64_t>(width, 8); width > 1; width /= 2) {
    bool all = kernel.loops.back().size % width == 0;
    for (const KernelStore &store : kernel.stores)
      all &= contiguous(store.at, alignments[kernel.inputs.size() + store.output],
                        kernel.outputs[store.output].getElementType(), width);
    if (all)
      return width;
  }
  return 1;
}

void Printer::elementwise() {
  const int64_t width = vectorWidth(), threads = kept.size / width;
  const int64_t block =
      std::min<int64_t>(threadsOfBlock, threads == 1 ? 1 : llvm::alignTo(threads, 32));
  launches(std::to_string(llvm::divideCeil(threads, block)), std::to_string(block), "");
  if (threads > 1) {
    std::string linear = linearName(kept, "element");
    std::string thread = blockNumber() + " * blockDim.x + threadIdx.x";
    if (width > 1)
      thread = "(" + thread + ") * " + std::to_string(width);
    writer.line("const " + index + " " + linear + " = " + thread + ";");
    writer.line("if (" + linear + " >= " + std::to_string(kept.size) + ")");
    writer.line("  return;");
    declareIndices(kept, linear);
  } else {
    for (int loop : kept.loops)
      writer.line("const " + index + " " + loops[loop] + " = 0;");
  }
  SmallVector<int> outside, inside;
  vectorized = width > 1;
  for (int number = 0, end = kernel.nodes.size(); number < end; ++number) {
    const KernelNode &node = kernel.nodes[number];
    (inLoop(number) ? inside : outside).push_back(number);
    if (width > 1 && node.kind == KernelNode::load &&
        contiguous(node.at, alignments[node.input], memoryType(node), width)) {
      vectors[number] = named(node.name + "_v");
      writer.line("const auto " + vectors[number] + " = load<" + std::to_string(width) + ">(" +
                  inputs[node.input] + " + " + address(node.at) + ");");
    }
  }
  define(outside);
  if (width == 1) {
    for (const KernelStore &each : kernel.stores)
      store(each);
    return;
  }
  llvm::MapVector<Type, std::vector<std::string>> declared;
  for (const KernelStore &each : kernel.stores)
    if (outputVectors[each.output].empty()) {
      outputVectors[each.output] = named(kernel.outputNames[each.output] + "_v");
      declared[kernel.outputs[each.output].getElementType()].push_back(outputVectors[each.output]);
    }
  for (const auto &[type, vectors] : declared)
    writer.list("Vector<" + typeName(type) + ", " + std::to_string(width) + "> ", vectors, ";");
  lane = named("e");
  writer.line("#pragma unroll");
  writer.open("for (int " + lane + " = 0; " + lane + " < " + std::to_string(width) + "; ++" + lane +
              ")");
  define(inside);
  for (const KernelStore &each : kernel.stores)
    store(each);
  writer.close();
  lane.clear();
  for (const KernelStore &each : kernel.stores)
    writer.line("store(" + outputs[each.output] + " + " + address(each.at) + ", " +
                outputVectors[each.output] + ");");
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// This thread's part of the sum: every `step`-th of the reduced elements from `first` on.
void Printer::accumulate(const std::string &total, const std::string &first,
                         const std::string &step) {
  const KernelReduction &reduction = *kernel.reduction;
  SmallVector<int> outside, inside;
  for (int number = 0, end = kernel.nodes.size(); number < end; ++number)
    (inLoop(number) ? inside : outside).push_back(number);
  define(outside);
  if (reduced.size == 0)
    return;
  std::string linear = linearName(reduced, "term");
  if (!reduced.loops.empty())
    writer.open("for (" + index + " " + linear + " = " + first + "; " + linear + " < " +
                std::to_string(reduced.size) + "; " +
                (step == "1" ? "++" + linear : linear + " += " + step) + ")");
  declareIndices(reduced, linear);
  define(inside);
  for (const KernelStore &each : kernel.stores)
    store(each);
  std::string element = operand(reduction.store.node);
  writer.line(total + " = " +
              (reduction.kind == KernelReduction::max ? "maximum(" + element + ", " + total + ")"
                                                      : total + " + " + element) +
              ";");
  if (!reduced.loops.empty())
    writer.close();
}

std::string Printer::combination(StringRef function, StringRef sizes,
                                 const std::string &total) const {
  bool maximum = kernel.reduction->kind == KernelReduction::max;
  return (function + "<" + (maximum ? "Maximum" : "Plus") + sizes + ">(" + total + ")").str();
}

/// The result, by the thread for which `guard` holds.
void Printer::finish(const std::string &total, const std::string &guard) {
  const KernelReduction &reduction = *kernel.reduction;
  std::string result = total;
  if (reduction.kind == KernelReduction::mean)
    result += " / " + literal(static_cast<double>(reduction.count), reduction.type);
  result = stored(reduction.store.output, reduction.type, result);
  if (!guard.empty())
    writer.line("if (" + guard + ")");
  writer.line((guard.empty() ? "" : "  ") + outputs[reduction.store.output] + "[" +
              address(reduction.store.at) + "] = " + result + ";");
}

/// Neighbouring threads have neighbouring results; `lanes` rows of them share the sums.
void Printer::reduceColumns() {
  int64_t columns = kept.size >= 32 * manyBlocks ? 32 : kept.size >= 16 * manyBlocks ? 16 : 8;
  int64_t lanes = 1;
  if (reduced.size <= fewTerms) {
    columns = std::min<int64_t>(threadsOfBlock, llvm::alignTo(kept.size, 32));
  } else {
    columns = std::min<int64_t>(columns, llvm::PowerOf2Ceil(kept.size));
    lanes = std::min<int64_t>(512 / columns, llvm::bit_floor(static_cast<uint64_t>(reduced.size)));
  }
  std::string c = std::to_string(columns), l = std::to_string(lanes);
  std::string grid = std::to_string(llvm::divideCeil(kept.size, columns));
  const KernelReduction &reduction = *kernel.reduction;
  std::string total = named("total"), linear = linearName(kept, "result"),
              start = identityOf(reduction.kind == KernelReduction::max, reduction.type);
  std::string size = std::to_string(kept.size);
  std::string inside = linear + " < " + size;
  writer.line("const " + index + " " + linear + " = " + blockNumber() + " * " + c +
              " + threadIdx.x" + (lanes == 1 ? "" : " % " + c) + ";");
  std::string declaration = typeName(reduction.type) + " " + total + " = " + start + ";";
  if (lanes == 1) {
    launches(grid, c, "One thread a result.");
    writer.line("if (" + linear + " >= " + size + ")");
    writer.line("  return;");
    declareIndices(kept, linear);
    writer.line(declaration);
    accumulate(total, "0", "1");
    finish(total, "");
    return;
  }
  launches(grid, std::to_string(columns * lanes),
           c + " results a block, " + l + " threads each, whose parts are added in their order.");
  declareIndices(kept, linear);
  writer.line(declaration);
  bool partial = kept.size % columns != 0;
  if (partial)
    writer.open("if (" + inside + ")");
  accumulate(total, "threadIdx.x / " + c, l);
  if (partial)
    writer.close();
  writer.line(total + " = " + combination("reduceLanes", ", " + c + ", " + l, total) + ";");
  finish(total, "threadIdx.x < " + c + (partial ? " && " + inside : ""));
}

/// Neighbouring threads have neighbouring terms of one result.
void Printer::reduceRows() {
  const KernelReduction &reduction = *kernel.reduction;
  std::string size = std::to_string(kept.size);
  std::string total = named("total"), linear = linearName(kept, "result"),
              start = typeName(reduction.type) + " " + total + " = " +
                      identityOf(reduction.kind == KernelReduction::max, reduction.type) + ";";
  auto result = [&](const std::string &text) {
    if (!kept.loops.empty())
      writer.line("const " + index + " " + linear + " = " + text + ";");
  };
  const int64_t warps = reduced.size <= 1024 && kept.size > 1 ? std::min<int64_t>(8, kept.size) : 0;
  if (warps) {
    std::string w = std::to_string(warps);
    launches(std::to_string(llvm::divideCeil(kept.size, warps)), std::to_string(32 * warps),
             "One warp a result.");
    result(blockNumber() + " * " + w + " + threadIdx.x / 32");
    if (kept.size % warps) {
      writer.line("if (" + linear + " >= " + size + ")");
      writer.line("  return;");
    }
    declareIndices(kept, linear);
    writer.line(start);
    accumulate(total, "threadIdx.x % 32", "32");
    writer.line(total + " = " + combination("warpReduce", "", total) + ";");
  } else {
    int64_t block = kept.size >= manyBlocks ? 256 : 1024;
    block = std::max<int64_t>(32, std::min<int64_t>(block, llvm::PowerOf2Ceil(reduced.size)));
    std::string b = std::to_string(block);
    launches(size, b, "One block a result.");
    result("blockIdx.x");
    declareIndices(kept, linear);
    writer.line(start);
    accumulate(total, "threadIdx.x", b);
    writer.line(total + " = " + combination("reduceBlock", "", total) + ";");
  }
  finish(total, warps ? "threadIdx.x % 32 == 0" : "threadIdx.x == 0");
}

KernelFunction Printer::print() {
  KernelFunction function;
  function.masks = kernel.masks;
  for (StringRef name : held)
    function.parameters.push_back(("std::int64_t " + name).str());
  for (auto [name, type] : llvm::zip_equal(inputs, kernel.inputs))
    function.parameters.push_back("const " + typeName(type.getElementType()) + " *" + name);
  for (auto [name, type] : llvm::zip_equal(outputs, kernel.outputs))
    function.parameters.push_back(typeName(type.getElementType()) + " *" + name);
  std::vector<std::string> deviceParameters = function.parameters;
  function.parameters.push_back("cudaStream_t stream");
  for (const std::vector<std::string> *part : {&held, &inputs, &outputs})
    llvm::append_range(arguments, *part);

  tables();
  if (kept.size == 0) {
    function.body = "return cudaSuccess;\n"; // there are no results
    return function;
  }
  if (!kernel.reduction)
    elementwise();
  else if (reduced.size <= fewTerms || !kernel.loops.back().reduction)
    reduceColumns();
  else
    reduceRows();
  Writer device;
  device.lines(head.text());
  device.line("static __global__ void @_kernel(" + llvm::join(deviceParameters, ", ") + ") {");
  StringRef body = writer.text();
  while (!body.empty()) {
    auto [line, rest] = body.split('\n');
    device.line(line.empty() ? "" : "  " + line);
    body = rest;
  }
  device.line("}");
  function.device = device.text();
  function.body = host.text();
  return function;
}

//===----------------------------------------------------------------------===//
// Kernels that are no nest of loops over elements
//===----------------------------------------------------------------------===//

static KernelFunction printArgmax(nn::ArgmaxOp op) {
  auto type = cast<RankedTensorType>(op.getInput().getType());
  int64_t columns = type.getShape().back(), rows = columns ? type.getNumElements() / columns : 0;
  KernelFunction function;
  function.parameters = {"const " + typeName(type.getElementType()) + " *x",
                         typeName(getElementTypeOrSelf(op.getType())) + " *y",
                         "cudaStream_t stream"};
  function.body = "return device::argmax(/*rows=*/" + std::to_string(rows) + ", /*columns=*/" +
                  std::to_string(columns) + ", x, y, stream);\n";
  return function;
}

/// Copies and fills, one after another.
static KernelFunction printFlatten(FlattenOp op, LaunchOp launch) {
  KernelFunction function;
  Type element = getElementTypeOrSelf(op.getType());
  std::string type = typeName(element);
  for (size_t i = 0; i < launch.getIns().size(); ++i)
    function.parameters.push_back("const " + type + " *part_" + std::to_string(i));
  function.parameters.push_back(type + " *flat");
  function.parameters.push_back("cudaStream_t stream");
  std::vector<std::string> calls;
  int64_t offset = 0;
  auto place = [&] { return offset ? "flat + " + std::to_string(offset) : std::string("flat"); };
  auto fill = [&](int64_t count, const std::string &value) {
    if (count)
      calls.push_back("device::fill(" + place() + ", " + std::to_string(count) + ", " + value +
                      ", stream)");
    offset += count;
  };
  for (Value input : op.getInputs()) {
    int64_t count = cast<RankedTensorType>(input.getType()).getNumElements();
    auto argument = dyn_cast<BlockArgument>(input);
    if (!argument) {
      auto values = cast<DenseElementsAttr>(input.getDefiningOp<arith::ConstantOp>().getValue());
      fill(count, literal(values.getSplatValue<Attribute>()));
      continue;
    }
    if (count)
      calls.push_back("cudaMemcpyAsync(" + place() + ", part_" +
                      std::to_string(argument.getArgNumber()) + ", " + std::to_string(count) +
                      " * sizeof(" + type + "), cudaMemcpyDeviceToDevice, stream)");
    offset += count;
  }
  fill(cast<RankedTensorType>(op.getType()).getNumElements() - offset, identityOf(false, element));
  Writer writer;
  if (calls.size() <= 1) {
    writer.line("return " + (calls.empty() ? "cudaSuccess" : calls.front()) + ";");
  } else {
    writer.line("cudaError_t status = " + calls.front() + ";");
    for (const std::string &call : ArrayRef(calls).drop_front()) {
      writer.line("if (status == cudaSuccess)");
      writer.line("  status = " + call + ";");
    }
    writer.line("return status;");
  }
  function.body = writer.text();
  return function;
}

FailureOr<KernelFunction> mlir::fsdp::printCudaKernel(const ScheduledProgram &program,
                                                      LaunchOp launch, bool anonymous) {
  Operation *op = onlyOp(launch);
  if (auto argmax = dyn_cast_or_null<nn::ArgmaxOp>(op);
      argmax && isa<BlockArgument>(argmax.getInput()))
    return printArgmax(argmax);
  if (auto flatten = dyn_cast_or_null<FlattenOp>(op))
    return printFlatten(flatten, launch);
  FailureOr<Kernel> kernel = Kernel::create(launch);
  if (failed(kernel))
    return failure();
  // The arena begins at a multiple of 256 bytes.
  SmallVector<int64_t> alignments;
  for (Value buffer : llvm::concat<const Value>(SmallVector<Value>(launch.getIns()),
                                                SmallVector<Value>(launch.getOuts())))
    alignments.push_back(std::gcd(program.placeOf(buffer).offset, int64_t(256)));
  return Printer(*kernel, alignments, anonymous).print();
}
