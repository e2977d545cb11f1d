//===- CudaColumnPrinter.cpp - reductions whose results are neighbours ----===//
//
// The sum over the rows of a matrix, a bias's gradient, is bound by memory: its speed depends on
// the bytes in flight. An H200 needs about 3 MB for its 4.8 TB/s, 24 KB a multiprocessor. So a
// thread loads 16 bytes at once (neighbouring results) of several rows before it computes with the
// first, and there are threads for all multiprocessors even if there are few columns: lanes in a
// block, and several blocks, share the rows of a column (runtime/kernels/cuda/StripeSum.h).
//
//===----------------------------------------------------------------------===//

#include "codegen/CudaKernelWriter.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

/// The minimum number of threads of a multiprocessor; each then has up to 64 registers. Half of
/// them if a batch and the totals exceed `bytesHeld`.
static constexpr int64_t threadsOfProcessor = 1024, bytesHeld = 128;
/// Bytes that a thread loads before it computes: 64 KiB per multiprocessor, as some threads
/// compute.
static constexpr int64_t bytesInFlight = 64;
/// Threads that keep a large device busy: those of 128 multiprocessors.
static constexpr int64_t manyThreads = 128 * threadsOfProcessor;
/// One kernel is enough for so many batches of a thread. Above that, blocks share the terms:
/// threads have `longBatches`, or fewer if that would leave fewer than `manyBlocks` blocks.
static constexpr int64_t fewBatches = 4, longBatches = 8;
/// No more blocks than these share terms.
static constexpr int64_t mostBlocks = 4 * manyBlocks;
/// Results of a block of the second kernel.
static constexpr int64_t combinedResults = 32;

ColumnPlan ColumnPlan::of(int64_t results, int64_t terms, int64_t width, int64_t bytes) {
  ColumnPlan plan;
  plan.width = width;
  const int64_t groups = results / width;
  if (terms <= fewTerms) {
    const int64_t most = groups < manyBlocks * threadsOfBlock ? 64 : threadsOfBlock;
    plan.columns = std::min<int64_t>(most, llvm::alignTo(groups, 32));
  } else {
    int64_t lanes = 1;
    while (lanes < threadsOfBlock / 32 && groups * lanes < manyThreads)
      lanes *= 2;
    plan.columns = threadsOfBlock / lanes;
    // Halved down to 128 bytes of a row while more would leave over an eighth of the threads idle.
    while (plan.columns > 8 &&
           static_cast<int64_t>(llvm::alignTo(groups, plan.columns)) * 8 > groups * 9)
      plan.columns /= 2;
    plan.columns = std::min<int64_t>(plan.columns, llvm::PowerOf2Ceil(groups));
    plan.lanes = threadsOfBlock / plan.columns;
    while (plan.lanes / 2 >= terms && plan.lanes * plan.columns > 32)
      plan.lanes /= 2;
  }
  if (bytes > 0)
    plan.batch =
        llvm::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(bytesInFlight / bytes, 1, 8)));
  while (plan.batch > 1 && plan.batch / 2 * plan.lanes >= terms)
    plan.batch /= 2;
  plan.blocks = llvm::divideCeil(groups, plan.columns);
  const int64_t batches = llvm::divideCeil(terms, plan.lanes * plan.batch);
  if (batches > fewBatches && plan.lanes > 1) {
    int64_t splits =
        std::max(batches / longBatches, std::min(manyBlocks / plan.blocks, batches / 2));
    splits = std::max<int64_t>(std::min(splits, mostBlocks / plan.blocks), 1);
    plan.splits = llvm::divideCeil(batches, llvm::divideCeil(batches, splits)); // equal shares
  }
  return plan;
}

/// Bytes that a thread loads of each term.
int64_t CudaKernelWriter::bytesOfTerm(int64_t width) const {
  int64_t bytes = 0;
  for (int number = 0, end = kernel.nodes.size(); number < end; ++number)
    if (const KernelNode &node = kernel.nodes[number];
        node.kind == KernelNode::load && inLoop(number) && node.at.back() != 0)
      bytes += width * bytesOf(memoryType(node));
  return bytes;
}

/// The loads of a term, before the first store of its batch: a result may overwrite an operand, so
/// the compiler does not move loads across stores. `item` is the term's number in the batch, or "".
void CudaKernelWriter::loadTerm(const ColumnPlan &plan, StringRef item) {
  for (int number = 0, end = kernel.nodes.size(); number < end; ++number) {
    const KernelNode &node = kernel.nodes[number];
    if (node.kind != KernelNode::load || !inLoop(number))
      continue;
    const bool vector = plan.width > 1 && node.at.back() != 0;
    if (item.empty() && !vector)
      continue; // where it is used
    const std::string from = inputs[node.input] + " + " + address(node.at);
    const std::string loaded = vector ? "load<" + std::to_string(plan.width) + ">(" + from + ")"
                                      : KernelExpressions::element(number);
    if (item.empty())
      vectors[number] = named(node.name + "_v");
    writer.line((item.empty() ? "const auto " : "") + vectors[number] + " = " + loaded + ";");
  }
}

/// Variables for the values that `loadTerm` loads for a batch.
void CudaKernelWriter::declareBatch(const ColumnPlan &plan, StringRef item) {
  for (int number = 0, end = kernel.nodes.size(); number < end; ++number) {
    const KernelNode &node = kernel.nodes[number];
    if (node.kind != KernelNode::load || !inLoop(number))
      continue;
    const std::string name = named(node.name + "_v");
    vectors[number] = name + "[" + item.str() + "]";
    std::string type = typeName(memoryType(node));
    if (plan.width > 1 && node.at.back() != 0)
      type = "Vector<" + type + ", " + std::to_string(plan.width) + ">";
    writer.line(type + " " + name + "[" + std::to_string(plan.batch) + "];");
  }
}

/// A thread's computation with a term whose elements are loaded.
void CudaKernelWriter::addTerm(const ColumnPlan &plan, const std::string &total) {
  SmallVector<int> once, each;
  for (int number = 0, end = kernel.nodes.size(); number < end; ++number)
    if (const int level = levelOf(number))
      (level == storeLevel() ? each : once).push_back(number);
  defineAll(once);
  if (vectorized) {
    declareVectors(plan.width);
    openLanes(plan.width);
  }
  defineAll(each);
  for (const KernelStore &every : kernel.stores)
    store(every);
  const std::string sum = vectorized ? total + "[" + lane + "]" : total;
  writer.line(sum + " = " + combined(sum) + ";");
  if (vectorized) {
    closeLanes();
    for (const KernelStore &every : kernel.stores)
      storeVector(every);
  }
}

/// Whether `name` is a word of `text`.
static bool mentions(StringRef text, StringRef name) {
  auto inWord = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  for (size_t at = text.find(name); at != StringRef::npos; at = text.find(name, at + 1))
    if ((at == 0 || !inWord(text[at - 1])) &&
        text.drop_front(at + name.size()).take_while(inWord).empty())
      return true;
  return false;
}

/// This thread's part of the sums.
void CudaKernelWriter::addTerms(const ColumnPlan &plan, const std::string &total) {
  for (int number = 0, end = kernel.nodes.size(); number < end; ++number) {
    const KernelNode &node = kernel.nodes[number];
    if (levelOf(number) == 0)
      define(number);
    else if (vectorized && node.kind == KernelNode::load && !inLoop(number)) {
      vectors[number] = named(node.name + "_v");
      writer.line("const auto " + vectors[number] + " = load<" + std::to_string(plan.width) + ">(" +
                  inputs[node.input] + " + " + address(node.at) + ");");
    }
  }
  const bool batched = plan.batch > 1;
  const int64_t atOnce = plan.lanes * plan.batch;
  const std::string term = flatName(reduced, "term"), size = std::to_string(reduced.size),
                    first = batched ? named("first") : term;
  std::string start, stride;
  if (plan.splits > 1)
    start = "blockIdx.y * " + std::to_string(atOnce);
  if (plan.lanes > 1)
    start += (start.empty() ? "" : " + ") + ("threadIdx.x / " + std::to_string(plan.columns));
  const int64_t step = plan.splits * atOnce;
  writer.open("for (" + index + " " + first + " = " + (start.empty() ? "0" : start) + "; " + first +
              " < " + size + "; " +
              (step == 1 ? "++" + first : first + " += " + std::to_string(step)) + ")");
  if (!batched) {
    declareIndices(reduced, term);
    loadTerm(plan, "");
    addTerm(plan, total);
    writer.close();
    return;
  }
  const std::string item = named("r");
  declareBatch(plan, item);
  const bool partial = reduced.size % atOnce != 0;
  for (bool loads : {true, false}) {
    Writer outer = std::move(writer);
    writer = partial ? outer.nested().nested() : outer.nested();
    if (loads)
      loadTerm(plan, item);
    else
      addTerm(plan, total);
    Writer inner = std::move(writer);
    writer = std::move(outer);
    const bool used = llvm::any_of(reduced.loops, [&](int loop) { // not in a plain sum
      return mentions(inner.text(), loops[loop]);
    });
    writer.line("#pragma unroll");
    writer.open("for (int " + item + " = 0; " + item + " < " + std::to_string(plan.batch) + "; ++" +
                item + ")");
    if (partial || used)
      writer.line("const " + index + " " + term + " = " + first + " + " + item +
                  (plan.lanes > 1 ? " * " + std::to_string(plan.lanes) : "") + ";");
    if (partial)
      writer.open("if (" + term + " < " + size + ")");
    if (used)
      declareIndices(reduced, term);
    writer.append(inner);
    if (partial)
      writer.close();
    writer.close();
  }
  writer.close();
}

/// The results of the threads for which `guard` holds.
void CudaKernelWriter::finishColumns(const ColumnPlan &plan, const std::string &total,
                                     const std::string &guard) {
  if (!vectorized)
    return finish(total, guard);
  const KernelReduction &reduction = *kernel.reduction;
  const KernelStore &result = reduction.store;
  const Type memory = kernel.outputs[result.output].getElementType();
  const bool whole =
      contiguous(result.at, alignments[resultArgument() - held.size()], memory, plan.width);
  if (!guard.empty())
    writer.open("if (" + guard + ")");
  std::string vector;
  if (whole) {
    vector = named(kernel.outputNames[result.output] + "_v");
    writer.line("Vector<" + typeName(memory) + ", " + std::to_string(plan.width) + "> " + vector +
                ";");
  }
  openLanes(plan.width);
  writer.line((whole ? vector + "[" + lane + "]"
                     : outputs[result.output] + "[" + address(result.at) + "]") +
              " = " + inMemory(result.output, reduction.type, finished(total + "[" + lane + "]")) +
              ";");
  closeLanes();
  if (whole)
    writer.line("store(" + outputs[result.output] + " + " + address(result.at) + ", " + vector +
                ");");
  if (!guard.empty())
    writer.close();
}

/// A kernel that combines the partial results of `plan.splits` blocks.
void CudaKernelWriter::combineSplits(const ColumnPlan &plan, const std::string &total,
                                     const std::string &flat) {
  const KernelReduction &reduction = *kernel.reduction;
  const std::string size = std::to_string(kept.size), type = typeName(reduction.type),
                    output = outputs[reduction.store.output],
                    block = std::to_string(combinedResults);
  const int64_t lanes = plan.splits > 64 ? 32 : 8;
  const bool partial = kept.size % combinedResults != 0;
  vectorized = false;
  Writer first = std::move(writer);
  writer = Writer();
  writer.open("static __global__ void @_total_kernel(const " + type + " *" + parts + ", " +
              typeName(kernel.outputs[reduction.store.output].getElementType()) + " *" + output +
              ")");
  writer.line("const " + index + " " + flat + " = " + blockNumber() + " * " + block +
              " + threadIdx.x % " + block + ";");
  declareIndices(kept, flat);
  const std::string inside = partial ? flat + " < " + size : "true";
  std::string head = combination("combineStripes", ", " + block + ", " + std::to_string(lanes), "");
  head.pop_back(); // the closing parenthesis
  writer.list("const " + type + " " + total + " = " + head,
              {identity(), parts + " + " + flat, std::to_string(plan.splits), size, inside}, ");");
  finish(total, "threadIdx.x < " + block + (partial ? " && " + inside : ""));
  writer.close();
  second.line();
  second.lines(writer.text());
  writer = std::move(first);

  const std::string status = named("status");
  host.line(type + " *" + parts + " = nullptr;");
  host.line("cudaError_t " + status + " = stream.workspace->reserve(" +
            std::to_string(plan.splits * kept.size) + " * sizeof(" + type + "), " + parts + ");");
  auto refuse = [&] {
    host.line("if (" + status + " != cudaSuccess)");
    host.line("  return " + status + ";");
  };
  refuse();
  arguments.erase(arguments.begin() + resultArgument());
  arguments.push_back(parts);
  host.line(
      status + " = " +
      launchOf("@_kernel",
               "dim3(" + std::to_string(plan.blocks) + ", " + std::to_string(plan.splits) + ")",
               std::to_string(plan.columns * plan.lanes), arguments));
  refuse();
  host.line("return " + launchOf("@_total_kernel",
                                 std::to_string(llvm::divideCeil(kept.size, combinedResults)),
                                 std::to_string(combinedResults * lanes), {parts, output}));
}

void CudaKernelWriter::reduceColumns() {
  const int64_t width = vectorWidth();
  vectorized = width > 1;
  const int64_t bytes = bytesOfTerm(width);
  const ColumnPlan plan = ColumnPlan::of(kept.size, reduced.size, width, bytes);
  const std::string c = std::to_string(plan.columns), l = std::to_string(plan.lanes),
                    w = std::to_string(width), type = typeName(kernel.reduction->type);
  const std::string total = named("total"), flat = flatName(kept, "result"),
                    size = std::to_string(kept.size), inside = flat + " < " + size;
  const bool partial = kept.size % (plan.columns * width) != 0;

  std::string thread = blockNumber() + " * " + c + " + threadIdx.x";
  if (plan.lanes > 1)
    thread += " % " + c;
  if (vectorized)
    thread = "(" + thread + ") * " + w;
  writer.line("const " + index + " " + flat + " = " + thread + ";");
  const bool alone = plan.lanes == 1;
  const int64_t block = plan.columns * plan.lanes;
  if (block == threadsOfBlock) { // registers for the loads of a batch: ptxas would save them
    const int64_t held = plan.batch * bytes + width * bytesOf(kernel.reduction->type);
    bounds = "__launch_bounds__(" + std::to_string(block) + ", " +
             std::to_string(threadsOfProcessor / block / (held > bytesHeld ? 2 : 1)) + ") ";
  }

  if (partial && alone) {
    writer.line("if (" + flat + " >= " + size + ")");
    writer.line("  return;");
  }
  declareIndices(kept, flat);
  writer.line(vectorized
                  ? "auto " + total + " = repeated<" + type + ", " + w + ">(" + identity() + ");"
                  : type + " " + total + " = " + identity() + ";");
  if (partial && !alone)
    writer.open("if (" + inside + ")");
  addTerms(plan, total);
  if (partial && !alone)
    writer.close();
  std::string guard;
  if (alone) {
    head.line(vectorized ? "// " + w + " results per thread." : "// One thread per result.");
  } else {
    head.line("// " + std::to_string(plan.columns * width) + " results per block, " + l +
              " threads for each" + (vectorized ? " " + w + " of them" : "") +
              "; their partial sums are added in order.");
    if (plan.splits > 1)
      head.line("// " + std::to_string(plan.splits) +
                " blocks have the same results; a second kernel adds what they have, in order.");
    writer.line(total + " = " + combination("reduceLanes", ", " + c + ", " + l, total) + ";");
    guard = "threadIdx.x < " + c + (partial ? " && " + inside : "");
  }
  if (plan.splits == 1) {
    finishColumns(plan, total, guard);
    launches(std::to_string(plan.blocks), std::to_string(block), "");
    return;
  }
  parts = named("parts");
  const std::string place = "blockIdx.y * " + size + " + " + flat;
  writer.line("if (" + guard + ")");
  writer.line(vectorized ? "  store(" + parts + " + " + place + ", " + total + ");"
                         : "  " + parts + "[" + place + "] = " + total + ";");
  combineSplits(plan, total, flat);
}
