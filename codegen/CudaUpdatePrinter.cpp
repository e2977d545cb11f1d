//===- CudaUpdatePrinter.cpp - an update rule for runtime/kernels/cuda/Update.h ----===//

#include "codegen/CudaKernelWriter.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

/// A type that computes the values that depend on the step alone once per block, and applies the
/// rule to the elements of a thread; the runtime has the loop.
KernelFunction CudaKernelWriter::printUpdate() {
  vectorized = true; // `i` is an element of a thread
  SmallVector<int> outside, inside;
  llvm::BitVector kept(kernel.nodes.size()); // outside, and used inside
  for (int number = 0, end = kernel.nodes.size(); number < end; ++number) {
    (inLoop(number) ? inside : outside).push_back(number);
    if (inLoop(number))
      for (int operand : kernel.nodes[number].operands)
        kept[operand] = !inLoop(operand) && !inlined(operand);
  }

  Writer members;
  for (int number : outside) {
    if (inlined(number))
      continue;
    const KernelNode &node = kernel.nodes[number];
    const std::string type = typeName(node.type);
    nodes[number] = named(node.name);
    if (kept[number])
      members.line(type + " " + nodes[number] + ";");
    writer.line((kept[number] ? "" : "const " + type + " ") + nodes[number] + " = " +
                value(number) + ";");
  }
  head.line("struct @_rule {");
  Writer body = head.nested();
  body.line("UpdateStep step;");
  body.lines(members.text());
  body.line();
  body.open("__device__ void prepare()");
  body.lines(writer.text());
  body.close();
  std::vector<std::string> parameters = {"int " + loops.front(), "bool decays"};
  for (const std::string &input : inputs)
    parameters.push_back("const float *" + input);
  for (const std::string &output : outputs)
    parameters.push_back("float *" + output);
  body.list("__device__ void apply(", parameters, ") const {");
  writer = Writer();
  defineAll(inside);
  for (const KernelStore &each : kernel.stores)
    store(each);
  Writer statements = body.nested();
  statements.lines(writer.text());
  body.append(statements);
  body.line("}");
  head.append(body);
  head.line("};");

  KernelFunction function;
  function.device = head.text();
  function.parameters = {"const fsdp::rt::ShardUpdates<" + std::to_string(outputs.size()) +
                             "> &updates",
                         "cudaStream_t stream"};
  host.line("return device::update<@_rule>(updates, stream);");
  function.body = host.text();
  return function;
}
