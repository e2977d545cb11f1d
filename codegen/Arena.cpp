//===- Arena.cpp ----------------------------------------------------------===//

#include "codegen/Arena.h"

#include "codegen/Elementwise.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

static Type elementOf(Value buffer) {
  return cast<BufferType>(buffer.getType()).getTensor().getElementType();
}

LogicalResult Arena::readType(Value buffer) {
  auto [entry, isNew] = types.try_emplace(elementOf(buffer));
  if (!isNew)
    return success();
  const StringRef type = elementType(elementOf(buffer));
  if (type.empty())
    return buffer.getDefiningOp()->emitOpError()
           << "has element type " << elementOf(buffer)
           << ", which the runtime of this target does not support; use f32";
  entry->second = texts.insert(("ArenaSpan<" + type + ">").str()).first->first();
  return success();
}

LogicalResult Arena::create() {
  Names names(/*qualified=*/true);
  auto add = [&](Value buffer) {
    const std::string name =
        isState(buffer) ? "step_state" : names.unique(program.modelNames.of(buffer).whole());
    persistent.push_back(buffer);
    declared.try_emplace(buffer, Slice{"", name});
  };
  add(program.stepState->getResult(0));
  for (auto buffer : program.program.getBody().front().getOps<BufferOp>())
    if (buffer != program.stepState) {
      if (failed(readType(buffer)))
        return failure();
      add(buffer);
    }
  for (const Timeline &timeline : program.timelines)
    for (const Action &action : timeline.actions)
      for (Value buffer : action.launch.getBuffers())
        if (!isState(buffer) && failed(readType(buffer)))
          return failure();
  return success();
}

StringRef Arena::typeOf(Value buffer) const {
  return isState(buffer) ? StringRef("ArenaSpan<StepState>")
                         : types.find(elementOf(buffer))->second;
}

std::string Arena::spellValue(Value buffer) const {
  const ArenaSpan span = program.spanOf(buffer);
  return "{" + std::to_string(span.offset) + ", " +
         std::to_string(isState(buffer) ? 1 : span.type.getNumElements()) + "}";
}

std::string Arena::spell(Value buffer) const {
  auto slice = declared.find(buffer);
  if (slice == declared.end())
    return spellValue(buffer);
  return (slice->second.segment.empty() ? "persistent::" : "arena::") + slice->second.name;
}

std::string Arena::spellOutside(Value buffer) const {
  auto slice = declared.find(buffer);
  if (slice == declared.end())
    return typeOf(buffer).str() + spellValue(buffer);
  const StringRef segment = slice->second.segment;
  return (segment.empty() ? "" : segment.str() + "::") + spell(buffer);
}

void Arena::declare(Value buffer, const Slice &slice, Writer &writer) const {
  const ArenaSpan span = program.spanOf(buffer);
  std::string note;
  if (span.type.getRank() > 1 && !isState(buffer))
    for (int64_t size : span.type.getShape())
      note += (note.empty() ? " // " : " x ") + std::to_string(size);
  if (auto subview = buffer.getDefiningOp<SubviewOp>())
    note += (note.empty() ? " // of " : " of ") +
            commentFor(program.modelNames.of(subview.getBuffer()).whole());
  writer.line("constexpr " + typeOf(buffer) + " " + slice.name + spellValue(buffer) + ";" + note);
}

void Arena::declarePersistent(Writer &writer) const {
  for (Value buffer : persistent)
    declare(buffer, declared.find(buffer)->second, writer);
}

void Arena::declare(ArrayRef<Action> actions, StringRef segment, Names &names, Writer &writer) {
  for (const Action &action : actions)
    for (Value buffer : action.launch.getBuffers()) {
      auto [slice, isNew] = declared.try_emplace(buffer);
      if (!isNew)
        continue;
      slice->second = {segment, names.unique(program.modelNames.of(buffer).whole())};
      declare(buffer, slice->second, writer);
    }
}
