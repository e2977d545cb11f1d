//===- KernelPrinter.cpp --------------------------------------------------===//

#include "codegen/KernelPrinter.h"

#include "codegen/Elementwise.h"
#include "codegen/Names.h"
#include "codegen/ScheduledProgram.h"
#include "codegen/UpdateKernel.h"
#include "codegen/Writer.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// Writes one nest of loops.
class Printer {
public:
  Printer(const Kernel &kernel, bool anonymous);
  KernelFunction print();

private:
  std::string named(StringRef wanted);
  std::string address(const Affine &at) const;
  std::string operand(int node) const;
  std::string value(int node) const;
  bool inlined(int node) const;

  void openLoop(int loop, bool simd);
  void openRows();
  int64_t rows() const;
  void closeLoops(int from, int to);
  void nodesAt(int depth);
  void storesAt(int depth);
  void reduceIn(int depth);
  std::string combined(StringRef accumulated) const;
  std::string finished(StringRef accumulated) const;
  int depthOf(const Affine &at) const;
  int storeDepth(const KernelStore &store) const;

  const Kernel &kernel;
  bool anonymous;
  Names names;
  Writer writer;
  std::vector<std::string> loops, inputs, outputs, held, nodes;
  std::string begin, end; ///< of the rows that a call is for, where there are such
  SmallVector<int> depths, uses, stored;
  int accumulateAt = -1; ///< depth of the register that the reduction's last loops add to
  std::string accumulator;
};

} // namespace

static std::string typeName(Type type) { return elementType(type).str(); }

std::string Printer::named(StringRef wanted) { return names.unique(anonymous ? "v" : wanted); }

Printer::Printer(const Kernel &kernel, bool anonymous)
    : kernel(kernel), anonymous(anonymous), depths(kernel.depths()), uses(kernel.uses()),
      stored(kernel.stored()) {
  for (const LoopVar &loop : kernel.loops)
    loops.push_back(named(loop.name));
  if (kernel.rowLoops) {
    begin = named("begin");
    end = named("end");
  }
  for (const KernelMask &mask : kernel.masks)
    held.push_back(named(mask.name()));
  for (StringRef name : kernel.inputNames)
    inputs.push_back(named(name));
  for (StringRef name : kernel.outputNames)
    outputs.push_back(named(name));
  nodes.resize(kernel.nodes.size());
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

std::string Printer::address(const Affine &at) const {
  return spellAffine(at, ArrayRef(loops).take_front(at.size()));
}

/// Literals and positions stand where they are used; so do, where that is one place of the same
/// depth, loads, and what is stored. As a result may take the place of an operand
/// (passes/scheduled/InPlace.h; a product stands in the place of the first), an element is loaded
/// once, and nothing is loaded where something has been stored: with several results, what they
/// store has names.
bool Printer::inlined(int index) const {
  const KernelNode &node = kernel.nodes[index];
  if (node.kind == KernelNode::constant || node.kind == KernelNode::table ||
      node.kind == KernelNode::position)
    return true;
  if (uses[index] + stored[index] != 1)
    return false;
  bool load = node.kind == KernelNode::load;
  if (stored[index]) {
    int depth = kernel.stores.empty() ? static_cast<int>(kernel.loops.size())
                                      : storeDepth(kernel.stores.front());
    return kernel.outputs.size() == 1 && (load || node.kind == KernelNode::expression) &&
           depth == depths[index];
  }
  for (size_t user = 0; load && user < kernel.nodes.size(); ++user)
    if (llvm::is_contained(kernel.nodes[user].operands, index))
      return depths[user] == depths[index];
  return false;
}

std::string Printer::operand(int index) const {
  if (!inlined(index))
    return nodes[index];
  std::string text = value(index);
  bool compound =
      kernel.nodes[index].kind != KernelNode::load && text.find_first_of(" -") != std::string::npos;
  return compound ? "(" + text + ")" : text;
}

std::string Printer::value(int index) const {
  const KernelNode &node = kernel.nodes[index];
  switch (node.kind) {
  case KernelNode::load: {
    std::string element = inputs[node.input] + "[" + address(node.at) + "]";
    bool widens = kernel.inputs[node.input].getElementType() != node.type;
    return widens ? typeName(node.type) + "(" + element + ")" : element;
  }
  case KernelNode::constant:
    return node.text;
  case KernelNode::table:
    return nodes[index] + "_table[" + address(node.at) + "]";
  case KernelNode::position:
    return address(node.at);
  case KernelNode::masked:
    return maskCondition(node, address(node.at), node.mask < 0 ? "" : held[node.mask],
                         node.operands.size() > 2 ? operand(node.operands[2]) : "") +
           " ? " + operand(node.operands[0]) + " : " + operand(node.operands[1]);
  case KernelNode::expression:
    break;
  }
  return spellExpression(node.text, node.type, hostFunction,
                         [&](int number) { return operand(node.operands[number]); });
}

int Printer::depthOf(const Affine &at) const {
  int depth = 0;
  for (auto [loop, coefficient] : llvm::enumerate(at))
    if (coefficient != 0)
      depth = loop + 1;
  return depth;
}

int Printer::storeDepth(const KernelStore &store) const {
  return std::max(depthOf(store.at), depths[store.node]);
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

void Printer::openLoop(int loop, bool simd) {
  if (loop < static_cast<int>(kernel.rowLoops)) {
    if (loop == 0)
      openRows();
    return;
  }
  if (simd)
    writer.line("#pragma omp simd");
  writer.open("for (std::int64_t " + loops[loop] + " = 0; " + loops[loop] + " < " +
              std::to_string(kernel.loops[loop].size) + "; ++" + loops[loop] + ")");
}

int64_t Printer::rows() const {
  int64_t rows = 1;
  for (const LoopVar &loop : ArrayRef(kernel.loops).take_front(kernel.rowLoops))
    rows *= loop.size;
  return rows;
}

/// One loop for all over the rows of a call, with the indices that its number stands for.
void Printer::openRows() {
  bool one = kernel.rowLoops == 1;
  std::string row = one ? loops.front() : named("row");
  if (kernel.updates)
    writer.line("#pragma omp simd");
  writer.open("for (std::int64_t " + row + " = " + begin + "; " + row + " < " + end + "; ++" + row +
              ")");
  if (one)
    return;
  std::vector<std::string> items;
  int64_t inner = rows();
  for (size_t loop = 0; loop < kernel.rowLoops; ++loop) {
    int64_t size = kernel.loops[loop].size;
    inner /= size;
    std::string text = inner == 1 ? row : row + " / " + std::to_string(inner);
    items.push_back(loops[loop] + " = " + text +
                    (loop > 0 ? " % " + std::to_string(size) : std::string()));
  }
  writer.list("const std::int64_t ", items, ";");
}

/// Closes loops [from, to).
void Printer::closeLoops(int from, int to) {
  for (int loop = from; loop < to; ++loop)
    if (loop == 0 || loop >= static_cast<int>(kernel.rowLoops))
      writer.close();
}

void Printer::nodesAt(int depth) {
  for (size_t index = 0; index < kernel.nodes.size(); ++index) {
    const KernelNode &node = kernel.nodes[index];
    if (depths[index] != depth || inlined(index))
      continue;
    nodes[index] = named(node.name);
    writer.line("const " + typeName(node.type) + " " + nodes[index] + " = " + value(index) + ";");
  }
  storesAt(depth);
}

void Printer::storesAt(int depth) {
  for (const KernelStore &store : kernel.stores)
    if (storeDepth(store) == depth)
      writer.line(outputs[store.output] + "[" + address(store.at) +
                  "] = " + (inlined(store.node) ? value(store.node) : nodes[store.node]) + ";");
}

std::string Printer::combined(StringRef accumulated) const {
  std::string element = operand(kernel.reduction->store.node), so = accumulated.str();
  return kernel.reduction->kind == KernelReduction::max ? "maximum(" + element + ", " + so + ")"
                                                        : so + " + " + element;
}

std::string Printer::finished(StringRef accumulated) const {
  if (kernel.reduction->kind != KernelReduction::mean)
    return accumulated.str();
  return accumulated.str() + " / " +
         literal(static_cast<double>(kernel.reduction->count), kernel.reduction->type);
}

/// The loops from `depth` on, with the reduction inside of them.
void Printer::reduceIn(int depth) {
  const KernelReduction &reduction = *kernel.reduction;
  int count = kernel.loops.size();
  std::string target = outputs[reduction.store.output] + "[" + address(reduction.store.at) + "]";
  for (int d = depth; d < count; ++d) {
    if (d == accumulateAt) {
      accumulator = named("total");
      bool fresh = llvm::none_of(ArrayRef(kernel.loops).take_front(d),
                                 [](const LoopVar &loop) { return loop.reduction; });
      writer.line(
          typeName(reduction.type) + " " + accumulator + " = " +
          (fresh ? identityOf(reduction.kind == KernelReduction::max, reduction.type) : target) +
          ";");
    }
    // Where the innermost loop reduces, its sums go to one place.
    openLoop(d, d + 1 == count && accumulateAt < 0 && !kernel.loops[d].reduction);
    nodesAt(d + 1);
  }
}

KernelFunction Printer::print() {
  KernelFunction function = KernelFunction::declare(kernel, held, inputs, outputs);
  if (kernel.rowLoops)
    for (const std::string &parameter : {end, begin})
      function.parameters.insert(function.parameters.begin() + held.size(),
                                 "std::int64_t " + parameter);
  if (kernel.updates)
    function.parameters.insert(function.parameters.begin() + 2, "fsdp::rt::UpdateStep step");

  int count = kernel.loops.size();
  for (auto [index, node] : llvm::enumerate(kernel.nodes)) {
    if (node.kind != KernelNode::table)
      continue;
    nodes[index] = named(node.name);
    std::vector<std::string> values;
    for (Attribute value : node.values.getValues<Attribute>())
      values.push_back(literal(value));
    writer.list("static constexpr " + typeName(node.type) + " " + nodes[index] + "_table[] = {",
                values, "};");
  }
  if (!kernel.reduction) {
    nodesAt(0);
    for (int depth = 0; depth < count; ++depth) {
      openLoop(depth, depth + 1 == count);
      nodesAt(depth + 1);
    }
    closeLoops(0, count);
    function.body = writer.text();
    return function;
  }

  // The last loops, if they reduce, add to a register. Where an outer loop reduces as well, or
  // only outer ones do, sums live in the result: they start at the identity and are loaded again.
  const KernelReduction &reduction = *kernel.reduction;
  int first = count;
  while (first > 0 && kernel.loops[first - 1].reduction)
    --first;
  bool outer = llvm::any_of(ArrayRef(kernel.loops).take_front(first),
                            [](const LoopVar &loop) { return loop.reduction; });
  accumulateAt = first < count || !outer ? first : -1;
  // A sum over rows goes on from call to call.
  if (first < static_cast<int>(kernel.rowLoops)) {
    outer = true;
    accumulateAt = -1;
  }
  std::string target = outputs[reduction.store.output] + "[" + address(reduction.store.at) + "]";
  std::string results = std::to_string(kernel.outputs[reduction.store.output].getNumElements());
  if (outer && kernel.rowLoops)
    writer.line("if (" + begin + " == 0)");
  if (outer)
    writer.line(std::string(kernel.rowLoops ? "  " : "") + "std::fill_n(" +
                outputs[reduction.store.output] + ", " + results + ", " +
                identityOf(reduction.kind == KernelReduction::max, reduction.type) + ");");
  nodesAt(0);
  if (first == count && !outer) { // nothing to reduce over
    for (int depth = 0; depth < count; ++depth) {
      openLoop(depth, depth + 1 == count);
      nodesAt(depth + 1);
    }
    writer.line(target + " = " + finished(operand(reduction.store.node)) + ";");
    closeLoops(0, count);
    function.body = writer.text();
    return function;
  }
  reduceIn(0);
  if (accumulateAt >= 0) {
    writer.line(accumulator + " = " + combined(accumulator) + ";");
    closeLoops(first, count);
    writer.line(target + " = " + (outer ? accumulator : finished(accumulator)) + ";");
    closeLoops(0, first);
  } else {
    writer.line(target + " = " + combined(target) + ";");
    closeLoops(0, count);
  }
  if (outer && reduction.kind == KernelReduction::mean) {
    if (kernel.rowLoops)
      writer.open("if (" + end + " == " + std::to_string(rows()) + ")");
    std::string i = named("i"), element = outputs[reduction.store.output] + "[" + i + "]";
    writer.open("for (std::int64_t " + i + " = 0; " + i + " < " + results + "; ++" + i + ")");
    writer.line(element + " = " + finished(element) + ";");
    writer.close();
    if (kernel.rowLoops)
      writer.close();
  }
  function.body = writer.text();
  return function;
}

//===----------------------------------------------------------------------===//
// Kernels that are no nest of loops over elements
//===----------------------------------------------------------------------===//

static KernelFunction printArgmax(nn::ArgmaxOp op) {
  auto type = cast<RankedTensorType>(op.getInput().getType());
  int64_t columns = type.getShape().back();
  std::string index = typeName(getElementTypeOrSelf(op.getType()));
  KernelFunction function;
  function.parameters = {"const " + typeName(type.getElementType()) + " *x", index + " *y"};
  Writer writer;
  writer.open("for (std::int64_t i = 0; i < " +
              std::to_string(columns ? type.getNumElements() / columns : 0) + "; ++i)");
  writer.line("const " + typeName(type.getElementType()) + " *row = x + i * " +
              std::to_string(columns) + ";");
  writer.line("std::int64_t best = 0;");
  writer.line("for (std::int64_t j = 1; j < " + std::to_string(columns) + "; ++j)");
  writer.line("  best = row[j] > row[best] ? j : best;");
  writer.line("y[i] = " + index + "(best);");
  writer.close();
  function.body = writer.text();
  return function;
}

static KernelFunction printFlatten(FlattenOp op, LaunchOp launch) {
  KernelFunction function;
  std::string type = typeName(getElementTypeOrSelf(op.getType()));
  for (size_t i = 0; i < launch.getIns().size(); ++i)
    function.parameters.push_back("const " + type + " *part_" + std::to_string(i));
  function.parameters.push_back(type + " *flat");
  Writer writer;
  int64_t offset = 0;
  auto fill = [&](int64_t count, StringRef value) {
    if (count)
      writer.line("std::fill_n(flat + " + std::to_string(offset) + ", " + std::to_string(count) +
                  ", " + value + ");");
  };
  for (Value input : op.getInputs()) {
    int64_t count = cast<RankedTensorType>(input.getType()).getNumElements();
    if (auto argument = dyn_cast<BlockArgument>(input)) {
      writer.line("std::copy_n(part_" + std::to_string(argument.getArgNumber()) + ", " +
                  std::to_string(count) + ", flat + " + std::to_string(offset) + ");");
    } else {
      auto values = cast<DenseElementsAttr>(input.getDefiningOp<arith::ConstantOp>().getValue());
      fill(count, literal(values.getSplatValue<Attribute>()));
    }
    offset += count;
  }
  fill(cast<RankedTensorType>(op.getType()).getNumElements() - offset,
       identityOf(false, getElementTypeOrSelf(op.getType())));
  function.body = writer.text();
  return function;
}

static bool takesArguments(Operation *op) {
  return llvm::all_of(op->getOperands(), [](Value v) { return isa<BlockArgument>(v); });
}

FailureOr<KernelFunction> mlir::fsdp::printKernel(LaunchOp launch, bool anonymous) {
  Operation *op = onlyOp(launch);
  if (auto argmax = dyn_cast_or_null<nn::ArgmaxOp>(op); argmax && takesArguments(op))
    return printArgmax(argmax);
  if (auto flatten = dyn_cast_or_null<FlattenOp>(op))
    return printFlatten(flatten, launch);
  if (auto step = dyn_cast_or_null<OptimizerStepOp>(op)) {
    Kernel kernel = createUpdateKernel(step, "step.decays", /*decaysVary=*/false);
    KernelFunction function = Printer(kernel, anonymous).print();
    function.name = step.getOptimizer().getRule().str();
    return function;
  }
  FailureOr<Kernel> kernel = Kernel::create(launch, Traversal::rows, anonymous);
  if (failed(kernel))
    return failure();
  return Printer(*kernel, anonymous).print();
}
