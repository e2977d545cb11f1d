//===- CpuTarget.cpp - programs of threads and vector loops ---------------===//
//
// Every action is a call `word(c, stream, name, ...)` of runtime/execution/Launch.h.
//
//===----------------------------------------------------------------------===//

#include "codegen/Elementwise.h"
#include "codegen/KernelPrinter.h"
#include "codegen/Names.h"
#include "codegen/Target.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {

class CpuTarget : public Target {
public:
  explicit CpuTarget(const ScheduledProgram &program) : program(program) {}

  FailureOr<KernelFunction> kernel(LaunchOp launch, bool anonymous) const override {
    return printKernel(launch, anonymous);
  }
  void wait(const SpelledLaunch &launch, const std::string &event, Writer &writer) const override {
    writer.line("wait(c, " + launch.stream + ", " + event + ");");
  }
  void record(const SpelledLaunch &launch, const std::string &event,
              Writer &writer) const override {
    writer.line("record(c, " + launch.stream + ", " + event + ");");
  }
  void launch(const SpelledLaunch &launch, const KernelTable &kernels,
              Writer &writer) const override;
  void head(const EmitOptions &options, StringRef file, ArrayRef<std::string> headers,
            Writer &writer) const override;
  StringRef runtimeHeader() const override { return "runtime/Runtime.h"; }
  void includesOfKernels(Writer &writer) const override;
  void kernelsInside(const KernelTable &kernels, Writer &writer) const override {
    define(kernels, writer);
  }
  void kernelFiles(const EmitOptions &options, const KernelTable &kernels,
                   EmittedProgram &out) const override;

private:
  void launchKernel(const SpelledLaunch &launch, const KernelTable &kernels,
                    std::vector<std::string> items, Writer &writer) const;
  void declare(const KernelTable &kernels, Writer &writer) const;
  void define(const KernelTable &kernels, Writer &writer) const;

  const ScheduledProgram &program;
};

} // namespace

//===----------------------------------------------------------------------===//
// Actions
//===----------------------------------------------------------------------===//

void CpuTarget::launch(const SpelledLaunch &launch, const KernelTable &kernels,
                       Writer &writer) const {
  const Call &call = launch.call;
  std::vector<std::string> items = {"c", launch.stream, launch.name};
  if (call.function.empty() || call.hasEpilogue)
    return launchKernel(launch, kernels, items, writer);
  if (!call.collective.empty()) {
    LaunchOp op = launch.op;
    items.push_back(program.names.communicator(op.getStreamAttr(), call.over));
  }
  for (const CallArgument &argument : call.arguments)
    items.push_back(argument.kind == CallArgument::noted
                        ? argument.text + "(" + launch.slice(argument.buffer) + ")"
                    : argument.kind == CallArgument::kernel ? "fused::" + kernels[launch.op].name
                    : argument.buffer                       ? launch.slice(argument.buffer)
                    : argument.kind == CallArgument::absent
                        ? "/*" + argument.text + "=*/ArenaSpan<float>{}"
                        : argument.text);
  writer.list((call.function + "(").str(), items, ");");
}

void CpuTarget::launchKernel(const SpelledLaunch &launch, const KernelTable &kernels,
                             std::vector<std::string> items, Writer &writer) const {
  const Call &call = launch.call;
  auto slices = [&](ArrayRef<Value> buffers) {
    std::string text;
    for (Value buffer : buffers)
      text += (text.empty() ? "" : ", ") + launch.slice(buffer);
    return text;
  };
  if (call.hasEpilogue)
    items.push_back(call.arguments.front().text);
  std::string word = call.hasEpilogue ? "gemm(" : "launch(";
  items.push_back("reads(" + slices(call.reads) + ")");
  items.push_back("writes(" + slices(call.writes) + ")");
  const KernelTable::Entry &kernel = kernels[launch.op];
  ArrayRef<KernelMask> masks = kernels.masksOf(launch.op);
  if (masks.empty()) {
    items.push_back("fused::" + kernel.name);
    writer.list(word, items, ");");
    return;
  }
  // Which part of a split dimension it is, and how much of that is real, is a matter of the rank.
  std::string captures, parameters, arguments;
  for (auto [i, mask] : llvm::enumerate(masks)) {
    std::string name = mask.name().str() + (i ? "_" + std::to_string(i + 1) : std::string());
    captures += (i ? ", " : "") + name + " = " + mask.spell(program);
    arguments += (i ? ", " : "") + ("std::int64_t(" + name + ")");
  }
  SmallVector<Value> given(call.reads);
  if (call.hasEpilogue) { // the product stands in its place instead of its sides
    given.erase(given.begin(), given.begin() + 2);
    given.push_back(call.writes.front());
    parameters = "std::int64_t begin, std::int64_t end, ";
    arguments = "begin, end, " + arguments;
  }
  const size_t read = given.size();
  given.append(call.writes);
  for (auto [number, buffer] : llvm::enumerate(given)) {
    Type element = program.spanOf(buffer).type.getElementType();
    std::string name = "p" + std::to_string(number);
    parameters += (number ? ", " : "") + std::string(number < read ? "const " : "") +
                  elementType(element).str() + " *" + name;
    arguments += ", " + name;
  }
  items.push_back("[" + captures + "](" + parameters + ") { fused::" + kernel.name + "(" +
                  arguments + "); }");
  writer.list(word, items, ");");
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

void CpuTarget::head(const EmitOptions &options, StringRef file, ArrayRef<std::string> headers,
                     Writer &writer) const {
  writer.line(titleOf(file, options.name + ", generated by fsdpc; do not edit"));
  writer.line("//");
  writer.line("// Arena offsets, streams, events and the order of actions are fixed here; they are "
              "documented in");
  writer.line("// runtime/program/Program.h and runtime/execution/Launch.h. Compiled with "
              "-DFSDP_RECORD, the program "
              "prints its");
  writer.line("// actions instead of executing them.");
  writer.line();
  for (const std::string &header : headers)
    writer.line("#include \"" + header + "\"");
  writer.line("#include \"" + runtimeHeader() + "\"");
}

void CpuTarget::includesOfKernels(Writer &writer) const {
  writer.line("#include \"runtime/numerics/VectorMath.h\"");
  writer.line();
  writer.line("#include <algorithm>");
  writer.line("#include <cmath>");
}

void CpuTarget::declare(const KernelTable &kernels, Writer &writer) const {
  writer.line("namespace fused {");
  for (const KernelTable::Entry &entry : kernels.all()) {
    writer.line();
    writer.line("/// " + launchedAs(entry) + ".");
    writer.list("void " + entry.name + "(", entry.function.parameters, ");");
  }
  writer.line();
  writer.line("} // namespace fused");
}

void CpuTarget::define(const KernelTable &kernels, Writer &writer) const {
  writer.line("namespace fused {");
  for (const KernelTable::Entry &entry : kernels.all()) {
    writer.line();
    writer.list("void " + entry.name + "(", entry.function.parameters, ") {");
    StringRef body = entry.function.body;
    while (!body.empty()) {
      auto [line, rest] = body.split('\n');
      writer.line("  " + line);
      body = rest;
    }
    writer.line("}");
  }
  writer.line();
  writer.line("} // namespace fused");
}

void CpuTarget::kernelFiles(const EmitOptions &options, const KernelTable &kernels,
                            EmittedProgram &out) const {
  Writer header, source;
  header.line(titleOf("kernels.h", "fused loops of " + options.name + ", generated by fsdpc"));
  for (StringRef line : {"", "#pragma once", "", "#include \"runtime/program/KernelArguments.h\"",
                         "", "#include <cstdint>", ""})
    header.line(line);
  if (kernels.nameBf16())
    for (StringRef line :
         {"#include \"runtime/numerics/BFloat16.h\"", "", "using fsdp::rt::bf16;", ""})
      header.line(line);
  declare(kernels, header);
  source.line(titleOf("kernels.cpp", "fused loops of " + options.name + ", generated by fsdpc"));
  for (StringRef line :
       {"//",
        "// One function per kernel; loops run in index order, so sums are always added in the "
        "same",
        "// order. Compile with runtime/Numerics.cmake's flags.", "", "#include \"kernels.h\"", "",
        "#include \"runtime/numerics/VectorMath.h\"", "", "#include <algorithm>",
        "#include <cmath>", "", "using namespace fsdp::rt;", ""})
    source.line(line);
  define(kernels, source);
  out.files.push_back({"kernels.h", header.text()});
  out.files.push_back({"kernels.cpp", source.text()});
}

std::unique_ptr<Target> mlir::fsdp::createCpuTarget(const ScheduledProgram &program) {
  return std::make_unique<CpuTarget>(program);
}
