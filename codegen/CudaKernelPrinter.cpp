//===- CudaKernelPrinter.cpp - the distribution of loops over threads -----===//

#include "codegen/CudaKernelPrinter.h"

#include "codegen/CudaKernelWriter.h"
#include "codegen/FusedProduct.h"
#include "codegen/UpdateKernel.h"
#include "dialect/fsdp/UpdateGroup.h"
#include "dialect/nn/LibraryEpilogue.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

//===----------------------------------------------------------------------===//
// No reduction
//===----------------------------------------------------------------------===//

/// Whether `width` results in a row are `width` elements in a row here, so that they move at once.
bool CudaKernelWriter::contiguous(const Affine &at, int64_t alignment, Type type,
                                  int64_t width) const {
  if (at.empty() || at.back() != 1 || alignment % std::min<int64_t>(width * bytesOf(type), 16))
    return false;
  return llvm::all_of(ArrayRef(at).drop_back(),
                      [&](int64_t coefficient) { return coefficient % width == 0; });
}

/// Elements per thread: 16 bytes of the smallest type that is accessed contiguously. A reduction
/// iterates over many rows, so all its loads from them must be vectors.
int64_t CudaKernelWriter::vectorWidth() const {
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
    if (kernel.reduction)
      for (const KernelNode &node : kernel.nodes)
        all &= node.kind != KernelNode::load || node.at.back() == 0 ||
               contiguous(node.at, alignments[node.input], memoryType(node), width);
    if (all)
      return width;
  }
  return 1;
}

void CudaKernelWriter::elementwise() {
  const int64_t width = vectorWidth(), threads = kept.size / width;
  const int64_t block =
      std::min<int64_t>(threadsOfBlock, threads == 1 ? 1 : llvm::alignTo(threads, 32));
  launches(std::to_string(llvm::divideCeil(threads, block)), std::to_string(block), "");
  if (threads > 1) {
    std::string flat = flatName(kept, "element");
    std::string thread = blockNumber() + " * blockDim.x + threadIdx.x";
    if (width > 1)
      thread = "(" + thread + ") * " + std::to_string(width);
    writer.line("const " + index + " " + flat + " = " + thread + ";");
    writer.line("if (" + flat + " >= " + std::to_string(kept.size) + ")");
    writer.line("  return;");
    declareIndices(kept, flat);
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
  defineAll(outside);
  if (width == 1) {
    for (const KernelStore &each : kernel.stores)
      store(each);
    return;
  }
  declareVectors(width);
  openLanes(width);
  defineAll(inside);
  for (const KernelStore &each : kernel.stores)
    store(each);
  closeLanes();
  for (const KernelStore &each : kernel.stores)
    storeVector(each);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// This thread's part of the sum: every `step`-th of the reduced elements from `first` on.
void CudaKernelWriter::accumulate(const std::string &total, const std::string &first,
                                  const std::string &step) {
  SmallVector<int> outside, inside;
  for (int number = 0, end = kernel.nodes.size(); number < end; ++number)
    (inLoop(number) ? inside : outside).push_back(number);
  defineAll(outside);
  if (reduced.size == 0)
    return;
  std::string flat = flatName(reduced, "term");
  if (!reduced.loops.empty())
    writer.open("for (" + index + " " + flat + " = " + first + "; " + flat + " < " +
                std::to_string(reduced.size) + "; " +
                (step == "1" ? "++" + flat : flat + " += " + step) + ")");
  declareIndices(reduced, flat);
  defineAll(inside);
  for (const KernelStore &each : kernel.stores)
    store(each);
  writer.line(total + " = " + combined(total) + ";");
  if (!reduced.loops.empty())
    writer.close();
}

std::string CudaKernelWriter::combination(StringRef function, StringRef sizes,
                                          const std::string &total) const {
  bool maximum = kernel.reduction->kind == KernelReduction::max;
  return (function + "<" + (maximum ? "Maximum" : "Plus") + sizes + ">(" + total + ")").str();
}

/// The result, by the thread for which `guard` holds.
void CudaKernelWriter::finish(const std::string &total, const std::string &guard) {
  const KernelReduction &reduction = *kernel.reduction;
  std::string result = inMemory(reduction.store.output, reduction.type, finished(total));
  if (!guard.empty())
    writer.line("if (" + guard + ")");
  writer.line((guard.empty() ? "" : "  ") + outputs[reduction.store.output] + "[" +
              address(reduction.store.at) + "] = " + result + ";");
}

/// One thread per result, whose few terms it adds up.
void CudaKernelWriter::reduceFew() {
  const int64_t block =
      kept.size == 1 ? 1 : std::min<int64_t>(threadsOfBlock, llvm::alignTo(kept.size, 32));
  const std::string total = named("total"), flat = flatName(kept, "result");
  launches(std::to_string(llvm::divideCeil(kept.size, block)), std::to_string(block),
           "One thread per result.");
  if (kept.size > 1) {
    writer.line("const " + index + " " + flat + " = " + blockNumber() + " * " +
                std::to_string(block) + " + threadIdx.x;");
    writer.line("if (" + flat + " >= " + std::to_string(kept.size) + ")");
    writer.line("  return;");
  }
  declareIndices(kept, flat);
  writer.line(typeName(kernel.reduction->type) + " " + total + " = " + identity() + ";");
  accumulate(total, "0", "1");
  finish(total, "");
}

/// So many terms of a result take one block longer than many blocks and a second kernel.
static constexpr int64_t longSum = 128 * 1024;
/// Of each thread at least, where blocks share the terms of a result.
static constexpr int64_t termsOfThread = 16;

/// Several blocks share the terms of each of few results, neighbouring threads have neighbouring
/// ones; a second kernel combines their partial results.
void CudaKernelWriter::reduceRowsInSplits(const std::string &total, const std::string &flat,
                                          const std::string &start) {
  ColumnPlan plan;
  plan.lanes = threadsOfBlock;
  plan.blocks = kept.size;
  plan.splits = std::min(llvm::divideCeil(manyBlocks, kept.size),
                         static_cast<uint64_t>(reduced.size / (threadsOfBlock * termsOfThread)));
  const std::string block = std::to_string(threadsOfBlock), splits = std::to_string(plan.splits);
  head.line("// " + splits + " blocks per result; a second kernel adds what they have, in order.");
  if (!kept.loops.empty())
    writer.line("const " + index + " " + flat + " = blockIdx.x;");
  declareIndices(kept, flat);
  writer.line(start);
  accumulate(total, "blockIdx.y * " + block + " + threadIdx.x",
             std::to_string(plan.splits * threadsOfBlock));
  writer.line(total + " = " + combination("reduceLanes", ", 1, " + block, total) + ";");
  parts = named("parts");
  writer.line("if (threadIdx.x == 0)");
  writer.line("  " + parts + "[blockIdx.y * " + std::to_string(kept.size) +
              " + blockIdx.x] = " + total + ";");
  combineSplits(plan, total, flat);
}

/// Neighbouring threads have neighbouring terms of one result.
void CudaKernelWriter::reduceRows() {
  const KernelReduction &reduction = *kernel.reduction;
  std::string size = std::to_string(kept.size);
  std::string total = named("total"), flat = flatName(kept, "result"),
              start = typeName(reduction.type) + " " + total + " = " + identity() + ";";
  auto result = [&](const std::string &text) {
    if (!kept.loops.empty())
      writer.line("const " + index + " " + flat + " = " + text + ";");
  };
  const int64_t warps = reduced.size <= 1024 && kept.size > 1 ? std::min<int64_t>(8, kept.size) : 0;
  if (warps) {
    std::string w = std::to_string(warps);
    launches(std::to_string(llvm::divideCeil(kept.size, warps)), std::to_string(32 * warps),
             "One warp per result.");
    result(blockNumber() + " * " + w + " + threadIdx.x / 32");
    if (kept.size % warps) {
      writer.line("if (" + flat + " >= " + size + ")");
      writer.line("  return;");
    }
    declareIndices(kept, flat);
    writer.line(start);
    accumulate(total, "threadIdx.x % 32", "32");
    writer.line(total + " = " + combination("warpReduce", "", total) + ";");
  } else if (kept.size < manyBlocks && reduced.size >= longSum) {
    reduceRowsInSplits(total, flat, start);
    return;
  } else {
    int64_t block = kept.size >= manyBlocks ? 256 : 1024;
    block = std::max<int64_t>(32, std::min<int64_t>(block, llvm::PowerOf2Ceil(reduced.size)));
    std::string b = std::to_string(block);
    launches(size, b, "One block per result.");
    result("blockIdx.x");
    declareIndices(kept, flat);
    writer.line(start);
    accumulate(total, "threadIdx.x", b);
    writer.line(total + " = " + combination("reduceLanes", ", 1, " + b, total) + ";");
  }
  finish(total, warps ? "threadIdx.x % 32 == 0" : "threadIdx.x == 0");
}

KernelFunction CudaKernelWriter::print() {
  KernelFunction function = KernelFunction::declare(kernel, held, inputs, outputs);
  std::vector<std::string> deviceParameters = function.parameters;
  for (const std::vector<std::string> *part : {&held, &inputs, &outputs})
    llvm::append_range(arguments, *part);

  tables("__device__ const", "@_", head);
  if (kept.size == 0) {
    function.parameters.push_back("cudaStream_t stream");
    function.body = "return cudaSuccess;\n"; // there are no results
    return function;
  }
  if (!kernel.reduction)
    elementwise();
  else if (!reduced.loops.empty() && reduced.size > 0 && !kernel.loops.back().reduction)
    reduceColumns();
  else if (reduced.size <= fewTerms)
    reduceFew();
  else
    reduceRows();
  function.parameters.push_back(parts.empty() ? "cudaStream_t stream"
                                              : "fsdp::rt::WorkStream stream");
  if (!parts.empty()) { // the second kernel computes the result
    deviceParameters.erase(deviceParameters.begin() + resultArgument());
    deviceParameters.push_back(typeName(kernel.reduction->type) + " *" + parts);
  }
  Writer device;
  device.lines(head.text());
  device.line("static __global__ void " + bounds + "@_kernel(" +
              llvm::join(deviceParameters, ", ") + ") {");
  Writer body = device.nested();
  body.lines(writer.text());
  device.append(body);
  device.line("}");
  device.lines(second.text());
  function.device = device.text();
  function.body = host.text();
  return function;
}

//===----------------------------------------------------------------------===//
// Kernels that are not a loop nest over elements
//===----------------------------------------------------------------------===//

static KernelFunction printCudaArgmax(nn::ArgmaxOp op) {
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
static KernelFunction printCudaFlatten(FlattenOp op, LaunchOp launch) {
  KernelFunction function = declareFlatten(op, launch);
  function.parameters.push_back("cudaStream_t stream");
  const std::string type = typeName(getElementTypeOrSelf(op.getType()));
  std::vector<std::string> calls;
  for (const FlatPiece &piece : flatPieces(op)) {
    const std::string place = piece.offset ? "flat + " + std::to_string(piece.offset) : "flat",
                      count = std::to_string(piece.count);
    calls.push_back(piece.argument < 0
                        ? "device::fill(" + place + ", " + count + ", " + piece.value + ", stream)"
                        : "cudaMemcpyAsync(" + place + ", part_" + std::to_string(piece.argument) +
                              ", " + count + " * sizeof(" + type +
                              "), cudaMemcpyDeviceToDevice, stream)");
  }
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

/// `epilogue` as arguments of ProductEpilogue; none if one of its operands is a constant.
static std::vector<std::string> spellEpilogue(const nn::LibraryEpilogue &epilogue, LaunchOp launch,
                                              const FusedProduct &begin) {
  auto number = [&](Value argument) -> std::optional<int64_t> {
    if (!argument)
      return -1;
    auto operand = dyn_cast<BlockArgument>(resolveFused(argument));
    if (!operand)
      return std::nullopt;
    return llvm::find(begin.ins, launch.getIns()[operand.getArgNumber()]) - begin.ins.begin();
  };
  const auto bias = number(epilogue.bias), residual = number(epilogue.residual),
             argument = number(epilogue.argument);
  if (!bias || !residual || !argument)
    return {};
  const StringRef functions[] = {"none", "gelu", "geluGradient"};
  return {"/*bias=*/" + std::to_string(*bias), "/*residual=*/" + std::to_string(*residual),
          "fsdp::rt::ProductFunction::" + functions[epilogue.function].str(),
          "/*argument=*/" + std::to_string(*argument)};
}

/// Adds the part of `kernel` that cuBLASLt computes, and a function for the other results.
static void addLibrary(KernelFunction &function, const Kernel &kernel, LaunchOp launch,
                       const FusedProduct &begin, ArrayRef<int64_t> alignments, bool anonymous) {
  Operation *op = onlyOp(launch);
  std::optional<nn::LibraryEpilogue> epilogue = nn::getLibraryEpilogue(op);
  if (!epilogue)
    return;
  function.library = spellEpilogue(*epilogue, launch, begin);
  if (function.library.empty() || epilogue->results == op->getNumResults())
    return;
  KernelFunction rest = CudaKernelWriter(kernel.behindFirstResult(), alignments, anonymous).print();
  for (std::string *text : {&rest.device, &rest.body})
    for (size_t at = text->find('@'); at != std::string::npos; at = text->find('@', at + 1))
      text->insert(at + 1, KernelTable::restEnding.str());
  function.rest.push_back(std::move(rest));
}

FailureOr<KernelFunction> mlir::fsdp::printCudaKernel(const ScheduledProgram &program,
                                                      LaunchOp launch, bool anonymous) {
  Operation *op = onlyOp(launch);
  if (auto argmax = dyn_cast_or_null<nn::ArgmaxOp>(op);
      argmax && isa<BlockArgument>(argmax.getInput()))
    return printCudaArgmax(argmax);
  if (auto flatten = dyn_cast_or_null<FlattenOp>(op))
    return printCudaFlatten(flatten, launch);
  // All updates of a group are by one rule.
  if (SmallVector<OptimizerStepOp> updates = getUpdates(launch); !updates.empty()) {
    OptimizerStepOp step = updates.front();
    Kernel kernel = createUpdateKernel(step, "decays", /*decaysVary=*/true);
    KernelFunction function = CudaKernelWriter(kernel, {}, anonymous).printUpdate();
    function.name = step.getOptimizer().getRule().str();
    return function;
  }
  FailureOr<Kernel> kernel = Kernel::create(launch, Traversal::whole, Functions::fast, anonymous);
  if (failed(kernel))
    return failure();
  SmallVector<Value> buffers(launch.getIns());
  const std::optional<FusedProduct> begin = FusedProduct::of(launch);
  const std::optional<ProductWithSum> withSum = ProductWithSum::of(launch);
  if (begin) {
    buffers = begin->ins;
    buffers.push_back(launch.getOuts().front());
  } else if (withSum) {
    buffers = {withSum->summed()};
  }
  llvm::append_range(buffers, llvm::drop_begin(launch.getOuts(), withSum ? 1 : 0));
  SmallVector<int64_t> alignments;
  for (Value buffer : buffers)
    alignments.push_back(program.alignmentOf(buffer));
  KernelFunction function = CudaKernelWriter(*kernel, alignments, anonymous).print();
  if (begin)
    addLibrary(function, *kernel, launch, *begin, alignments, anonymous);
  return function;
}
