//===- KernelPrinter.cpp - loops of one thread ----------------------------===//

#include "codegen/KernelPrinter.h"

#include "codegen/KernelExpressions.h"
#include "codegen/ScheduledProgram.h"
#include "codegen/UpdateKernel.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// Writes one nest of loops. The level of a node is the number of loops around it.
class Printer : KernelExpressions {
public:
  Printer(const Kernel &kernel, bool anonymous);
  KernelFunction print();

private:
  int levelOf(int node) const override { return depths[node]; }
  int storeLevel() const override {
    return kernel.stores.empty() ? static_cast<int>(kernel.loops.size())
                                 : storeDepth(kernel.stores.front());
  }
  std::string widened(Type type, const std::string &element) const override {
    return typeName(type) + "(" + element + ")";
  }

  void openLoop(int loop, bool simd);
  void openRows();
  int64_t rows() const;
  void closeLoops(int from, int to);
  void nodesAt(int depth);
  void reduceIn(int depth);
  int depthOf(const Affine &at) const;
  int storeDepth(const KernelStore &store) const;

  std::string begin, end; ///< of the rows that a call is for, where there are such
  SmallVector<int> depths;
  int accumulateAt = -1; ///< depth of the register that the reduction's last loops add to
  std::string accumulator;
};

} // namespace

Printer::Printer(const Kernel &kernel, bool anonymous)
    : KernelExpressions(kernel, anonymous, hostFunction, {}), depths(kernel.depths()) {
  if (kernel.rowLoops) {
    begin = named("begin");
    end = named("end");
  }
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
  writer.list("const std::int64_t ",
              splitIndex(llvm::to_vector(llvm::seq<int>(0, kernel.rowLoops)), row), ";");
}

/// Closes loops [from, to).
void Printer::closeLoops(int from, int to) {
  for (int loop = from; loop < to; ++loop)
    if (loop == 0 || loop >= static_cast<int>(kernel.rowLoops))
      writer.close();
}

void Printer::nodesAt(int depth) {
  for (int index = 0, count = kernel.nodes.size(); index < count; ++index)
    if (depths[index] == depth)
      define(index);
  for (const KernelStore &store : kernel.stores)
    if (storeDepth(store) == depth)
      writer.line(outputs[store.output] + "[" + address(store.at) + "] = " + result(store.node) +
                  ";");
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
      writer.line(typeName(reduction.type) + " " + accumulator + " = " +
                  (fresh ? identity() : target) + ";");
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
  tables("static constexpr", "", writer);
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
                outputs[reduction.store.output] + ", " + results + ", " + identity() + ");");
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
  KernelFunction function = declareFlatten(op, launch);
  Writer writer;
  for (const FlatPiece &piece : flatPieces(op)) {
    const std::string place = "flat + " + std::to_string(piece.offset),
                      count = std::to_string(piece.count);
    if (piece.argument >= 0)
      writer.line("std::copy_n(part_" + std::to_string(piece.argument) + ", " + count + ", " +
                  place + ");");
    else
      writer.line("std::fill_n(" + place + ", " + count + ", " + piece.value + ");");
  }
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
