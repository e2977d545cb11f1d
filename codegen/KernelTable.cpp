//===- KernelTable.cpp ----------------------------------------------------===//

#include "codegen/KernelTable.h"

#include "codegen/Elementwise.h"
#include "codegen/Names.h"
#include "codegen/ShapeArguments.h"
#include "dialect/fsdp/LaunchBodies.h"
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

KernelSource::KernelSource(const ScheduledProgram &program, LaunchOp launch) : launch(launch) {
  SmallVector<Value> all(launch.getIns());
  llvm::append_range(all, launch.getOuts());
  for (Value buffer : all)
    buffers.push_back({buffer.getType(), static_cast<size_t>(llvm::find(all, buffer) - all.begin()),
                       program.alignmentOf(buffer)});
}

size_t KernelSource::hash() const {
  llvm::hash_code code = hashBody(launch);
  for (const Buffer &buffer : buffers)
    code = llvm::hash_combine(code, buffer.type, buffer.alignment);
  return code;
}

bool KernelSource::operator==(const KernelSource &other) const {
  return buffers == other.buffers && haveEqualBodies(launch, other.launch);
}

FailureOr<const KernelTable::Printed *>
KernelTable::find(const ScheduledProgram &program, LaunchOp launch, const KernelWriter &write) {
  KernelSource source(program, launch);
  SmallVector<const Printed *, 1> &alike = bySource[source.hash()];
  for (const Printed *known : alike)
    if (known->source == source)
      return known;
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
  alike.push_back(
      &printed.emplace_back(Printed{std::move(source), place->second, anonymous->masks}));
  return alike.back();
}

LogicalResult KernelTable::insert(const ScheduledProgram &program, LaunchOp launch,
                                  const KernelWriter &write) {
  FailureOr<const Printed *> kernel = find(program, launch, write);
  if (failed(kernel))
    return failure();
  printedOf[launch] = *kernel;
  entries[(*kernel)->entry].launches.insert(launch.getName());
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
