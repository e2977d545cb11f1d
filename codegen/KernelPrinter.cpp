//===- KernelPrinter.cpp - loops of the CPU -------------------------------===//

#include "codegen/KernelExpressions.h"
#include "codegen/ScheduledProgram.h"
#include "codegen/Target.h"
#include "codegen/UpdateKernel.h"
#include "dialect/fsdp/UpdateGroup.h"

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
  int firstOfRegister() const;
  bool sumsInResult() const;
  bool owns(int loop) const;
  int chooseCut() const;
  void openParts();
  void closeParts();
  void printNest();
  int64_t rows() const;
  void closeLoops(int from, int to);
  void nodesAt(int depth);
  void reduceIn(int depth);
  int depthOf(const Affine &at) const;
  int storeDepth(const KernelStore &store) const;

  std::string begin, end; ///< of the rows of a call, if the kernel has rows
  /// The loop of which a thread performs only the iterations from `first` to before `last`; -1 if
  /// none.
  int cut = -1;
  std::string first, last;
  std::string columns; ///< the parameter for the current range, if sums continue from call to call
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
  if (kernel.rowLoops && kernel.reduction && !kernel.updates)
    columns = named("columns");
  cut = chooseCut();
  if (cut >= 0) {
    first = named("first");
    last = named("last");
  }
}

//===----------------------------------------------------------------------===//
// Parts for several threads
//===----------------------------------------------------------------------===//

/// Elements of a kernel that is worth dividing among threads; runtime/device/Workers.h has the size
/// of a part.
static constexpr int64_t kMinCutElements = 32768;

/// The coefficient of a loop in an address.
static int64_t strideOf(const Affine &at, int loop) {
  return loop < static_cast<int>(at.size()) ? at[loop] : 0;
}

/// The last loops that all reduce: they add to a register.
int Printer::firstOfRegister() const {
  int first = kernel.loops.size();
  while (first > 0 && kernel.loops[first - 1].reduction)
    --first;
  return first;
}

/// Whether sums are accumulated in the result buffer: if an outer loop reduces as well, or only
/// outer loops do. A sum over rows continues from call to call.
bool Printer::sumsInResult() const {
  int first = firstOfRegister();
  return first < static_cast<int>(kernel.rowLoops) ||
         llvm::any_of(
             ArrayRef(kernel.loops).take_front(first),
             [](const LoopVar &loop) { return loop.reduction; });
}

/// Whether each result belongs to one iteration of `loop`, those of the reduction in the order of
/// the iterations.
bool Printer::owns(int loop) const {
  if (!llvm::all_of(kernel.stores,
                    [&](const KernelStore &store) { return strideOf(store.at, loop) != 0; }))
    return false;
  if (!kernel.reduction)
    return true;
  const KernelStore &sums = kernel.reduction->store;
  return !kernel.loops[loop].reduction && strideOf(sums.at, loop) * kernel.loops[loop].size ==
                                              kernel.outputs[sums.output].getNumElements();
}

/// The loop whose iterations different threads may perform: each result is computed by one of them,
/// in the order of one thread.
int Printer::chooseCut() const {
  int64_t elements = 1;
  for (const LoopVar &loop : kernel.loops)
    elements *= loop.size;
  if (kernel.updates || (kernel.rowLoops ? columns.empty() : elements < kMinCutElements))
    return -1;
  for (int loop = kernel.rowLoops, count = kernel.loops.size(); loop < count; ++loop)
    if (owns(loop))
      return loop;
    else if (!kernel.loops[loop].reduction)
      break; // inner loops would be short
  return -1;
}

void Printer::openParts() {
  if (cut < 0) {
    if (!columns.empty()) {
      writer.line("if (" + columns + ".index > 0)");
      writer.line("  return; // the first part is for all columns");
    }
    return;
  }
  std::string size = std::to_string(kernel.loops[cut].size);
  if (!columns.empty()) {
    writer.line("const std::int64_t " + first + " = " + columns + ".begin(" + size + "), " + last +
                " = " + columns + ".end(" + size + ");");
    return;
  }
  int64_t others = 1;
  for (auto [loop, var] : llvm::enumerate(kernel.loops))
    others *= static_cast<int>(loop) == cut ? 1 : var.size;
  // Parts of rows that are added up.
  const bool columnwise = cut > 0 && cut + 1 == static_cast<int>(kernel.loops.size());
  const bool elementwise = cut == 0 && kernel.loops.size() == 1;
  writer.open((columnwise ? "forEachColumnPart(std::int64_t(" : "forEachPart(std::int64_t(") +
              size + "), " + std::to_string(others) + ", " + (elementwise ? "64, " : "") +
              "[&](std::int64_t " + first + ", std::int64_t " + last + ")");
}

void Printer::closeParts() {
  if (cut >= 0 && columns.empty())
    writer.close(");");
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
  bool part = loop == cut;
  writer.open("for (std::int64_t " + loops[loop] + " = " + (part ? first : "0") + "; " +
              loops[loop] + " < " + (part ? last : std::to_string(kernel.loops[loop].size)) +
              "; ++" + loops[loop] + ")");
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
  if (!columns.empty())
    function.parameters.insert(function.parameters.begin() + held.size() + 2,
                               "fsdp::rt::ColumnPart " + columns);
  if (kernel.updates)
    function.parameters.insert(function.parameters.begin() + 2, "fsdp::rt::UpdateStep step");
  tables("static constexpr", "", writer);
  // Around all loops if results are initialized or finished column by column.
  openParts();
  printNest();
  closeParts();
  function.body = writer.text();
  return function;
}

void Printer::printNest() {
  int count = kernel.loops.size();
  if (!kernel.reduction) {
    nodesAt(0);
    for (int depth = 0; depth < count; ++depth) {
      openLoop(depth, depth + 1 == count);
      nodesAt(depth + 1);
    }
    closeLoops(0, count);
    return;
  }

  // Sums in the result buffer start at the identity and are reloaded.
  const KernelReduction &reduction = *kernel.reduction;
  int first = firstOfRegister();
  const bool outer = sumsInResult();
  accumulateAt = first < count || !outer ? first : -1;
  if (first < static_cast<int>(kernel.rowLoops))
    accumulateAt = -1;
  std::string target = outputs[reduction.store.output] + "[" + address(reduction.store.at) + "]";
  std::string results = std::to_string(kernel.outputs[reduction.store.output].getNumElements());
  // Where the results of this part begin and end.
  const auto resultAt = [&](const std::string &iteration) {
    int64_t stride = strideOf(reduction.store.at, cut);
    return stride == 1 ? iteration : iteration + " * " + std::to_string(stride);
  };
  const std::string &sums = outputs[reduction.store.output];
  if (outer && kernel.rowLoops)
    writer.line("if (" + begin + " == 0)");
  if (outer)
    writer.line(std::string(kernel.rowLoops ? "  " : "") +
                (cut >= 0 ? "std::fill(" + sums + " + " + resultAt(this->first) + ", " + sums +
                                " + " + resultAt(last) + ", "
                          : "std::fill_n(" + sums + ", " + results + ", ") +
                identity() + ");");
  nodesAt(0);
  if (first == count && !outer) { // nothing to reduce over
    for (int depth = 0; depth < count; ++depth) {
      openLoop(depth, depth + 1 == count);
      nodesAt(depth + 1);
    }
    writer.line(target + " = " + finished(operand(reduction.store.node)) + ";");
    closeLoops(0, count);
    return;
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
    writer.open("for (std::int64_t " + i + " = " + (cut >= 0 ? resultAt(this->first) : "0") + "; " +
                i + " < " + (cut >= 0 ? resultAt(last) : results) + "; ++" + i + ")");
    writer.line(element + " = " + finished(element) + ";");
    writer.close();
    if (kernel.rowLoops)
      writer.close();
  }
}

//===----------------------------------------------------------------------===//
// Kernels that are not a loop nest over elements
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
  // All updates of a group are by one rule.
  if (SmallVector<OptimizerStepOp> updates = getUpdates(launch); !updates.empty()) {
    OptimizerStepOp step = updates.front();
    Kernel kernel = createUpdateKernel(step, "step.decays", /*decaysVary=*/false);
    KernelFunction function = Printer(kernel, anonymous).print();
    function.name = step.getOptimizer().getRule().str();
    return function;
  }
  FailureOr<Kernel> kernel = Kernel::create(launch, Traversal::rows, Functions::exact, anonymous);
  if (failed(kernel))
    return failure();
  return Printer(*kernel, anonymous).print();
}
