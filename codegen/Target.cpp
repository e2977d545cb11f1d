//===- Target.cpp - the actions of emitted programs -----------------------===//

#include "codegen/Target.h"

using namespace mlir;
using namespace mlir::fsdp;

void Target::wait(const std::string &stream, const std::string &event, Writer &writer) const {
  writer.line("wait(c, " + stream + ", " + event + ");");
}

void Target::record(const std::string &stream, const std::string &event, Writer &writer) const {
  writer.line("record(c, " + stream + ", " + event + ");");
}

/// The generated kernel of `launch` as an argument. A rank's part of a split dimension, and its
/// number of valid elements, depend on the rank: they are the first arguments of the kernel.
std::string Target::spellKernel(const PrintedLaunch &launch, const KernelTable &kernels) const {
  const std::string name = "fused::" + kernels[launch.op].name;
  ArrayRef<KernelMask> masks = kernels.masksOf(launch.op);
  if (masks.empty())
    return name;
  std::string captures, names;
  for (auto [i, mask] : llvm::enumerate(masks)) {
    const std::string each = mask.name().str() + (i ? "_" + std::to_string(i + 1) : std::string());
    captures += (i ? ", " : "") + each + " = " + mask.spell(program);
    names += each + ", ";
  }
  return "[" + captures + "](auto... p) { return " + name + "(" + names + "p...); }";
}

/// A member of a group as an argument: "all_gather(ShardLayout{...}, source, target)".
static std::string spellMember(const PrintedLaunch &launch, const Call &member) {
  std::string text = (member.function + "(").str();
  for (auto [index, argument] : llvm::enumerate(member.arguments))
    text += (index ? ", " : "") + (argument.buffer ? launch.slice(argument.buffer) : argument.text);
  return text + ")";
}

void Target::launch(const PrintedLaunch &launch, const KernelTable &kernels, Writer &writer) const {
  const Call &call = launch.call;
  std::vector<std::string> items;
  items.reserve(call.arguments.size() + 7);
  items.push_back("c");
  items.push_back(launch.stream);
  items.push_back(launch.name);
  if (call.over)
    items.push_back(program.names.communicator(CommunicatorKey::of(launch.op)));
  bool kernelIsNext = call.kernel == Call::argument;
  for (const CallArgument &argument : call.arguments) {
    if (!argument.buffer) {
      items.push_back(argument.text);
      continue;
    }
    if (std::exchange(kernelIsNext, false))
      items.push_back(spellKernel(launch, kernels));
    std::string slice = launch.slice(argument.buffer);
    items.push_back(argument.text.empty() ? std::move(slice) : argument.text + "(" + slice + ")");
  }
  for (const Call &member : call.members)
    items.push_back(spellMember(launch, member));
  if (call.kernel == Call::alone || call.kernel == Call::epilogue) {
    auto slices = [&](ArrayRef<Value> buffers) {
      std::string text;
      for (Value buffer : buffers)
        text += (text.empty() ? "" : ", ") + launch.slice(buffer);
      return text;
    };
    items.push_back("reads(" + slices(call.reads) + ")");
    items.push_back("writes(" + slices(call.writes) + ")");
    items.push_back(spellKernel(launch, kernels));
  }
  const StringRef function = call.kernel == Call::alone ? "launch" : call.function;
  writer.list((function + "(").str(), items, ");");
}
