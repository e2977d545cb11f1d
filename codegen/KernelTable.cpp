//===- KernelTable.cpp ----------------------------------------------------===//

#include "codegen/KernelTable.h"

#include "codegen/Elementwise.h"
#include "codegen/Names.h"
#include "codegen/ShapeArguments.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

KernelFunction KernelFunction::declare(const Kernel &kernel, ArrayRef<std::string> held,
                                       ArrayRef<std::string> inputs,
                                       ArrayRef<std::string> outputs) {
  KernelFunction function;
  function.masks = kernel.masks;
  for (const std::string &name : held)
    function.parameters.push_back("std::int64_t " + name);
  auto pointer = [](RankedTensorType type, const std::string &name) {
    return elementType(type.getElementType()).str() + " *" + name;
  };
  for (auto [name, type] : llvm::zip_equal(inputs, kernel.inputs))
    function.parameters.push_back("const " + pointer(type, name));
  for (auto [name, type] : llvm::zip_equal(outputs, kernel.outputs))
    function.parameters.push_back(pointer(type, name));
  return function;
}

bool mlir::fsdp::haveAlikeBuffers(LaunchOp one, LaunchOp other) {
  if (one.getIns().size() != other.getIns().size() ||
      one.getOuts().size() != other.getOuts().size() ||
      !one.getStepState() != !other.getStepState())
    return false;
  const auto buffers = one.getBuffers(), otherBuffers = other.getBuffers();
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].getType() != otherBuffers[i].getType())
      return false;
    for (size_t before = 0; before < i; ++before)
      if ((buffers[i] == buffers[before]) != (otherBuffers[i] == otherBuffers[before]))
        return false;
  }
  return true;
}

size_t EqualKernels::hash(LaunchOp launch) {
  llvm::hash_code code = hashBody(launch);
  for (Value buffer : launch.getBuffers())
    code = llvm::hash_combine(code, buffer.getType(), ScheduledProgram::alignmentOf(buffer));
  return code;
}

bool EqualKernels::areAlike(LaunchOp one, LaunchOp other) {
  return haveAlikeBuffers(one, other) &&
         llvm::equal(one.getBuffers(), other.getBuffers(),
                     [](Value buffer, Value other) {
                       return ScheduledProgram::alignmentOf(buffer) ==
                              ScheduledProgram::alignmentOf(other);
                     }) &&
         haveEqualBodies(one, other);
}

LogicalResult KernelTable::insert(LaunchOp launch, const KernelWriter &write) {
  const Printed *kernel = printed.find(launch, [&](LaunchOp launch) -> FailureOr<Printed> {
    FailureOr<KernelFunction> anonymous = write(launch, true);
    if (failed(anonymous))
      return failure();
    std::string key =
        llvm::join(anonymous->parameters, ",") + "\n" + anonymous->device + anonymous->body;
    // The words of these arguments are no names.
    for (const std::string &argument : anonymous->library)
      llvm::copy_if(argument, std::back_inserter(key), [](char c) { return !llvm::isAlpha(c); });
    auto [place, isNew] = byText.try_emplace(key, entries.size());
    if (isNew) {
      FailureOr<KernelFunction> function = write(launch, false);
      if (failed(function))
        return failure();
      entries.push_back({"", *function, {}});
    }
    return Printed{place->second, anonymous->masks};
  });
  if (!kernel)
    return failure();
  printedOf[launch] = kernel;
  entries[kernel->entry].launches.insert(launch.getName());
  return success();
}

/// The suffix of the function's name in names that only it uses: "_kernel".
static std::vector<std::string> endingsIn(StringRef device) {
  std::vector<std::string> endings;
  for (size_t at = device.find('@'); at != StringRef::npos; at = device.find('@', at + 1)) {
    std::string ending =
        device.substr(at + 1).take_while([](char c) { return llvm::isAlnum(c) || c == '_'; }).str();
    if (!llvm::is_contained(endings, ending))
      endings.push_back(ending);
  }
  return endings;
}

void KernelTable::assignNames() {
  Names names;
  for (const auto &text : byText)
    names.reserveWordsOf(text.first());
  for (Entry &entry : entries) {
    StringRef wanted = entry.function.name, first = entry.launches.front();
    if (wanted.empty())
      wanted = entry.launches.size() == 1 ? first : actionOf(first);
    std::vector<std::string> endings = endingsIn(entry.function.device);
    if (!entry.function.library.empty())
      endings.push_back(loopsEnding.str());
    for (const KernelFunction &rest : entry.function.rest) {
      endings.push_back(restEnding.str());
      llvm::append_range(endings, endingsIn(rest.device));
    }
    entry.name = names.unique(wanted, endings);
  }
}

bool KernelTable::nameBf16() const {
  return llvm::any_of(entries, [](const Entry &entry) {
    return llvm::any_of(entry.function.parameters,
                        [](StringRef text) { return text.contains("bf16 *"); });
  });
}

std::string mlir::fsdp::launchedAs(const KernelTable::Entry &entry) {
  std::string text = "Launched as";
  for (auto [i, name] : llvm::enumerate(entry.launches.getArrayRef().take_front(3)))
    text += (i ? ", '" : " '") + escaped(name) + "'";
  if (entry.launches.size() > 3)
    text += " and " + std::to_string(entry.launches.size() - 3) + " more";
  return text;
}

std::string KernelMask::spell(const ScheduledProgram &program) const {
  if (counted)
    return std::to_string(local) + " * (" + rankIndex(program, over) + ")";
  return "ShardLayout{1, " + std::to_string(local) + ", 1, " + std::to_string(size) + "}.held(" +
         rankIndex(program, over) + ")";
}
