//===- CudaTarget.cpp - programs of CUDA, NCCL and cuBLASLt calls ---------===//
//
// Every action is one checked statement, CHECK(c, name, function(..., stream)): shapes and numbers
// first, then what is read and written in the order of the call, then communicator and stream. A
// product that a kernel goes on with is two calls in one statement.
//
//===----------------------------------------------------------------------===//

#include "codegen/CudaKernelPrinter.h"
#include "codegen/Elementwise.h"
#include "codegen/Names.h"
#include "codegen/Target.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {

class CudaTarget : public Target {
public:
  explicit CudaTarget(const ScheduledProgram &program) : program(program) {}

  LogicalResult check(LaunchOp launch) const override;
  FailureOr<KernelFunction> kernel(LaunchOp launch, bool anonymous) const override {
    return printCudaKernel(program, launch, anonymous);
  }
  void wait(const SpelledLaunch &launch, const std::string &event, Writer &writer) const override {
    check(launch, "cudaStreamWaitEvent(c.stream(" + launch.stream + "), c.event(" + event + "))",
          writer);
  }
  void record(const SpelledLaunch &launch, const std::string &event,
              Writer &writer) const override {
    check(launch, "cudaEventRecord(c.event(" + event + "), c.stream(" + launch.stream + "))",
          writer);
  }
  void launch(const SpelledLaunch &launch, const KernelTable &kernels,
              Writer &writer) const override;
  void head(const EmitOptions &options, StringRef file, ArrayRef<std::string> headers,
            Writer &writer) const override;
  StringRef runtimeHeader() const override { return "runtime/CudaRuntime.h"; }
  void includesOfKernels(Writer &writer) const override;
  void kernelsInside(const KernelTable &kernels, Writer &writer) const override;
  void kernelFiles(const EmitOptions &options, const KernelTable &kernels,
                   EmittedProgram &out) const override;

private:
  void check(const SpelledLaunch &launch, const std::string &call, Writer &writer) const {
    writer.list("CHECK(", {"c", launch.name, call}, ");");
  }
  std::string callOf(const SpelledLaunch &launch, const KernelTable &kernels) const;
  std::string kernelCall(const SpelledLaunch &launch, const KernelTable &kernels) const;
  std::string ncclCall(const SpelledLaunch &launch) const;
  std::string copyIn(const SpelledLaunch &launch) const;
  std::string copyOut(const SpelledLaunch &launch) const;
  std::string storage(const SpelledLaunch &launch) const;
  int64_t elements(Value buffer) const { return program.spanOf(buffer).type.getNumElements(); }
  int64_t ranksOver(ArrayAttr axes) const;

  void declare(const KernelTable &kernels, Writer &writer) const;
  void record(const KernelTable &kernels, Writer &writer) const;
  void define(const KernelTable &kernels, Writer &writer) const;

  const ScheduledProgram &program;
};

} // namespace

LogicalResult CudaTarget::check(LaunchOp launch) const {
  WalkResult result = launch.walk([](nn::KernelOpInterface op) {
    return failed(op.verifyCuda()) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

//===----------------------------------------------------------------------===//
// Actions
//===----------------------------------------------------------------------===//

static std::string in(const SpelledLaunch &launch, Value buffer) {
  return "c.in(" + launch.slice(buffer) + ")";
}

static std::string out(const SpelledLaunch &launch, Value buffer) {
  return "c.out(" + launch.slice(buffer) + ")";
}

static std::string onStream(const SpelledLaunch &launch) {
  return ", c.stream(" + launch.stream + "))";
}

int64_t CudaTarget::ranksOver(ArrayAttr axes) const {
  int64_t ranks = 1;
  for (StringAttr axis : getAxisNames(axes))
    ranks *= program.mesh.getAxisSize(axis);
  return ranks;
}

/// A batch lies in pinned memory before the segment runs.
std::string CudaTarget::copyIn(const SpelledLaunch &launch) const {
  LaunchOp op = launch.op;
  auto input = cast<InputOp>(onlyOp(op));
  std::string target = launch.slice(launch.call.writes.front());
  return "cudaMemcpyAsync(c.out(" + target + "), c.staged(" +
         program.names.input(input.getNameAttr()) + "), " + target +
         ".bytes(), cudaMemcpyHostToDevice" + onStream(launch);
}

/// The host reads the number, or the sum and its weight, after the segment.
std::string CudaTarget::copyOut(const SpelledLaunch &launch) const {
  ArrayRef<Value> numbers = launch.call.reads;
  auto copy = [&](StringRef place, Value number, StringRef type) {
    return "cudaMemcpyAsync(c." + place.str() + "(" + launch.call.arguments.front().text + "), " +
           in(launch, number) + ", sizeof(" + type.str() + "), cudaMemcpyDeviceToHost" +
           onStream(launch);
  };
  if (numbers.size() == 1)
    return copy("output", numbers.front(), "float");
  return "InOrder{" + copy("sum", numbers[0], "double") + ", [&] { return " +
         copy("weight", numbers[1], "double") + "; }}";
}

static StringRef ncclType(Type element) {
  if (element.isF64())
    return "ncclDouble";
  if (element.isBF16())
    return "ncclBfloat16";
  if (element.isInteger(64))
    return "ncclInt64";
  if (element.isInteger(32))
    return "ncclInt32";
  return element.isInteger(1) ? "ncclUint8" : "ncclFloat";
}

/// NCCL's own function where it means what the tile says: outermost dimension, cut evenly, without
/// padding. Other tiles are packed and unpacked by the runtime.
std::string CudaTarget::ncclCall(const SpelledLaunch &launch) const {
  const Call &call = launch.call;
  LaunchOp op = launch.op;
  const std::string &communicator = program.names.communicator(op.getStreamAttr(), call.over);
  const std::string end =
      ", c.comm(" + communicator + ", " + launch.stream + ")" + onStream(launch);
  if (call.reads.empty() || call.writes.empty()) {
    Value buffer = call.reads.empty() ? call.writes.front() : call.reads.front();
    return (call.function + "(" + call.arguments.back().text + ", /*count=*/").str() +
           std::to_string(elements(buffer)) + ", " +
           (call.reads.empty() ? out(launch, buffer) : in(launch, buffer)) + end;
  }
  Value source = call.reads.front(), target = call.writes.front();
  std::string buffers = in(launch, source) + ", " + out(launch, target),
              type = ", " + ncclType(program.spanOf(source).type.getElementType()).str();
  if (call.collective == "all_reduce")
    return "ncclAllReduce(" + buffers + ", " + std::to_string(elements(source)) + type +
           (call.maximum ? ", ncclMax" : ", ncclSum") + end;
  if (call.collective == "broadcast")
    return "ncclBroadcast(" + buffers + ", " + std::to_string(elements(source)) + type + ", " +
           call.arguments.back().text + end;
  if (call.collective == "collective_permute")
    return "collective_permute(" + call.arguments.back().text + ", /*count=*/" +
           std::to_string(elements(source)) + ", " + buffers + end;
  if (!call.tile)
    return (call.function + "(" + call.arguments.back().text + ", ").str() + buffers + end;
  const CallTile &tile = *call.tile;
  if (tile.outer != 1 || tile.local * ranksOver(call.over) != tile.total)
    return (call.function + "(").str() + tile.spell() + ", " + buffers + end;
  std::string count = ", " + std::to_string(tile.local * tile.inner);
  if (call.collective == "all_gather")
    return "ncclAllGather(" + buffers + count + type + end;
  return "ncclReduceScatter(" + buffers + count + type + ", ncclSum" + end;
}

/// What a kernel is told of the storage that it updates.
std::string CudaTarget::storage(const SpelledLaunch &launch) const {
  LaunchOp op = launch.op;
  auto step = cast<OptimizerStepOp>(onlyOp(op));
  auto storage = program.symbols.lookup<StorageOp>(step.getStorage());
  std::string coordinate = "0";
  if (storage.getKind() != StorageKind::replicated) {
    int index = program.communicatorOver(storage.getAxes());
    auto [stream, axes] = (program.communicators.begin() + index)->first;
    coordinate = "c.rankIn(" + program.names.communicator(stream, axes) + ")";
  }
  return "ShardOf{&storages[" + program.names.storage(step.getStorageAttr().getAttr()) +
         "], /*coordinate=*/" + coordinate + "}";
}

/// Of what goes on with a product, without the product itself.
std::string CudaTarget::kernelCall(const SpelledLaunch &launch, const KernelTable &kernels) const {
  const Call &call = launch.call;
  std::string text = "fused::" + kernels[launch.op].name + "(";
  for (const KernelMask &mask : kernels.masksOf(launch.op))
    text += mask.spell(program) + ", ";
  for (Value buffer : ArrayRef(call.reads).drop_front(call.hasEpilogue ? 2 : 0))
    text += in(launch, buffer) + ", ";
  if (call.hasEpilogue)
    text += in(launch, call.writes.front()) + ", ";
  for (Value buffer : call.writes)
    text += out(launch, buffer) + ", ";
  return text + "c.stream(" + launch.stream + "))";
}

std::string CudaTarget::callOf(const SpelledLaunch &launch, const KernelTable &kernels) const {
  const Call &call = launch.call;
  if (!call.collective.empty())
    return ncclCall(launch);
  if (call.onDevice == DeviceCall::copyIn)
    return copyIn(launch);
  if (call.onDevice == DeviceCall::copyOut)
    return copyOut(launch);
  if (call.function.empty())
    return kernelCall(launch, kernels);
  std::vector<std::string> constants, buffers, notes;
  SmallVector<Value> inPlace(call.writes);
  if (call.hasEpilogue)
    inPlace.clear(); // written by the kernel
  for (const CallArgument &argument : call.arguments) {
    switch (argument.kind) {
    case CallArgument::constant:
      constants.push_back(argument.text);
      break;
    case CallArgument::storage:
      constants.push_back(storage(launch));
      break;
    case CallArgument::kernel:
      break; // it is what is called
    case CallArgument::read:
      buffers.push_back(in(launch, argument.buffer));
      break;
    case CallArgument::written:
      buffers.push_back(out(launch, argument.buffer));
      llvm::erase(inPlace, argument.buffer);
      break;
    case CallArgument::noted: {
      std::string place = argument.text + "(" + launch.slice(argument.buffer) + ")";
      buffers.push_back("c.in(" + place + ")");
      notes.push_back("c.out(" + place + ")");
      break;
    }
    case CallArgument::absent:
      buffers.push_back("/*" + argument.text + "=*/nullptr");
      break;
    }
  }
  for (Value buffer : inPlace)
    buffers.push_back(out(launch, buffer));
  llvm::append_range(buffers, notes);
  if (call.onDevice == DeviceCall::counted)
    constants.push_back("/*count=*/" + std::to_string(elements(call.reads.front())));
  if (call.tile) // before this rank's index
    std::swap(constants.front(), constants.back());
  std::string text = call.onDevice == DeviceCall::product ? "matmul(c.blas(), "
                     : call.takesKernel ? "fused::" + kernels[launch.op].name + "("
                                        : (call.function + "(").str();
  for (const std::string &argument : llvm::concat<const std::string>(constants, buffers))
    text += argument + ", ";
  return text + "c.stream(" + launch.stream + "))";
}

void CudaTarget::launch(const SpelledLaunch &launch, const KernelTable &kernels,
                        Writer &writer) const {
  std::string call = callOf(launch, kernels);
  if (launch.call.hasEpilogue)
    call = "InOrder{" + call + ", [&] { return " + kernelCall(launch, kernels) + "; }}";
  check(launch, call, writer);
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

void CudaTarget::head(const EmitOptions &options, StringRef file, ArrayRef<std::string> headers,
                      Writer &writer) const {
  writer.line(titleOf(file, options.name + " for CUDA, generated by fsdpc; do not edit"));
  for (StringRef line :
       {"//",
        "// One rank's program: each statement enqueues one action on a stream and returns. Arena "
        "offsets,",
        "// streams, events and the order of actions are fixed here; they are documented in",
        "// runtime/program/Program.h and runtime/execution/cuda/Context.h. CHECK throws an error "
        "that names the "
        "action, the",
        "// rank and the library's message. Compiled with -DFSDP_RECORD, the program prints its "
        "actions",
        "// instead of executing them.", ""})
    writer.line(line);
  for (const std::string &header : headers)
    writer.line("#include \"" + header + "\"");
  writer.line("#include \"" + runtimeHeader() + "\"");
}

void CudaTarget::includesOfKernels(Writer &writer) const {
  writer.line();
  writer.line("#ifndef FSDP_RECORD");
  writer.line("#include \"runtime/kernels/cuda/FusedKernel.h\"");
  writer.line("#endif");
}

void CudaTarget::declare(const KernelTable &kernels, Writer &writer) const {
  writer.line("namespace fused {");
  bool narrow = llvm::any_of(kernels.all(), [](const KernelTable::Entry &entry) {
    return llvm::any_of(entry.function.parameters,
                        [](StringRef parameter) { return parameter.contains("bf16 *"); });
  });
  if (narrow) {
    writer.line();
    writer.line("using fsdp::rt::bf16;");
  }
  for (const KernelTable::Entry &entry : kernels.all()) {
    writer.line();
    writer.line("/// " + launchedAs(entry) + ".");
    writer.list("cudaError_t " + entry.name + "(", entry.function.parameters, ");");
  }
  writer.line();
  writer.line("} // namespace fused");
}

/// The doubles that write a launch down.
void CudaTarget::record(const KernelTable &kernels, Writer &writer) const {
  writer.line("namespace fused {");
  for (const KernelTable::Entry &entry : kernels.all())
    writer.line("FSDP_RECORDED_KERNEL(" + entry.name + ")");
  writer.line("} // namespace fused");
}

/// The lines of `text` with the kernel's name in the place of `@`, wrapped where they are too long.
static void namedLines(StringRef text, StringRef name, Writer &writer) {
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    std::string content;
    for (char c : line)
      content += c == '@' ? name.str() : std::string(1, c);
    StringRef whole = content;
    size_t open = whole.find('('), close = whole.rfind(')');
    if (whole.size() > 96 && !whole.starts_with(" ") && close != StringRef::npos) {
      std::vector<std::string> items;
      for (StringRef item : llvm::split(whole.slice(open + 1, close), ", "))
        items.push_back(item.str());
      writer.list(whole.take_front(open + 1), items, whole.drop_front(close));
    } else {
      writer.line(content);
    }
    text = rest;
  }
}

void CudaTarget::define(const KernelTable &kernels, Writer &writer) const {
  writer.line("namespace fused {");
  for (const KernelTable::Entry &entry : kernels.all()) {
    writer.line();
    if (!entry.function.device.empty()) {
      namedLines(entry.function.device, entry.name, writer);
      writer.line();
    }
    std::string head = "cudaError_t " + entry.name + "(";
    writer.list(head, entry.function.parameters, ") {");
    Writer body = writer.nested();
    namedLines(entry.function.body, entry.name, body);
    writer.append(body);
    writer.line("}");
  }
  writer.line();
  writer.line("} // namespace fused");
}

void CudaTarget::kernelsInside(const KernelTable &kernels, Writer &writer) const {
  writer.line("#ifdef FSDP_RECORD");
  record(kernels, writer);
  writer.line("#else");
  writer.line("using namespace fsdp::rt::device;");
  writer.line();
  // The host's functions of these names are in sight too.
  writer.line("namespace fused {");
  writer.line("using fsdp::rt::device::maximum;");
  writer.line("using fsdp::rt::device::minimum;");
  writer.line("} // namespace fused");
  writer.line();
  define(kernels, writer);
  writer.line("#endif");
}

void CudaTarget::kernelFiles(const EmitOptions &options, const KernelTable &kernels,
                             EmittedProgram &out) const {
  Writer header, source;
  header.line(titleOf("kernels.h", "fused kernels of " + options.name + ", generated by fsdpc"));
  for (StringRef line :
       {"//",
        "// Each enqueues one kernel, or a few copies, on the stream; pointers are to the device.",
        "", "#pragma once", "", "#ifdef FSDP_RECORD", "",
        "#include \"runtime/execution/cuda/Context.h\"", ""})
    header.line(line);
  record(kernels, header);
  for (StringRef line :
       {"", "#else", "", "#include \"runtime/program/ArenaSpan.h\"",
        "#include \"runtime/program/StepState.h\"", "#include \"runtime/program/Storage.h\"", "",
        "#include <cstdint>", "#include <cuda_runtime.h>", ""})
    header.line(line);
  if (kernels.nameBf16())
    for (StringRef line : {"using fsdp::rt::bf16;", ""})
      header.line(line);
  declare(kernels, header);
  header.line();
  header.line("#endif");
  source.line(titleOf("kernels.cu", "fused kernels of " + options.name + ", generated by fsdpc"));
  for (StringRef line :
       {"//",
        "// Sums are added in an order that depends only on their sizes. Compile with "
        "--fmad=false.",
        "", "#include \"kernels.h\"", "", "#include \"runtime/kernels/cuda/FusedKernel.h\"", "",
        "using namespace fsdp::rt;", "using namespace fsdp::rt::device;", ""})
    source.line(line);
  define(kernels, source);
  out.files.push_back({"kernels.h", header.text()});
  out.files.push_back({"kernels.cu", source.text()});
}

std::unique_ptr<Target> mlir::fsdp::createCudaTarget(const ScheduledProgram &program) {
  return std::make_unique<CudaTarget>(program);
}
