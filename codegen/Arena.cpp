//===- Arena.cpp ----------------------------------------------------------===//

#include "codegen/Arena.h"

#include "codegen/Elementwise.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

LogicalResult Arena::add(Value buffer, StringRef segment, Names &names) {
  if (numbers.contains(buffer))
    return success();
  ArenaSpan span = program.spanOf(buffer);
  bool isState = buffer == program.stepState->getResult(0);
  std::string type = isState ? "StepState" : elementType(span.type.getElementType()).str();
  if (type.empty())
    return buffer.getDefiningOp()->emitOpError()
           << "has element type " << span.type.getElementType()
           << ", which the runtime of this target does not support; use f32";
  std::string name = isState ? "step_state" : names.unique(program.modelNames.of(buffer).whole());
  numbers[buffer] = slices.size();
  slices.push_back({buffer, segment, types.insert("ArenaSpan<" + type + ">").first->first(),
                    (segment.empty() ? "persistent::" : "arena::") + name});
  return success();
}

void Arena::declare(const Slice &slice, Writer &writer) const {
  const ArenaSpan span = program.spanOf(slice.buffer);
  const bool isState = slice.buffer == program.stepState->getResult(0);
  std::string note;
  if (span.type.getRank() > 1 && !isState)
    for (int64_t size : span.type.getShape())
      note += (note.empty() ? " // " : " x ") + std::to_string(size);
  if (auto subview = slice.buffer.getDefiningOp<SubviewOp>())
    note += (note.empty() ? " // of " : " of ") +
            commentFor(program.modelNames.of(subview.getBuffer()).whole());
  const StringRef name = StringRef(slice.spelling).split("::").second;
  writer.line("constexpr " + slice.type + " " + name + "{" + llvm::Twine(span.offset) + ", " +
              llvm::Twine(isState ? 1 : span.type.getNumElements()) + "};" + note);
}

LogicalResult Arena::create() {
  Names persistentNames(/*qualified=*/true);
  if (failed(add(program.stepState->getResult(0), "", persistentNames)))
    return failure();
  for (auto buffer : program.program.getBody().front().getOps<BufferOp>())
    if (failed(add(buffer, "", persistentNames)))
      return failure();
  for (const Timeline &timeline : program.timelines) {
    const std::string &segment = program.names.segment(timeline.segment);
    Names names(/*qualified=*/true);
    for (const Action &action : timeline.actions)
      for (ValueRange used :
           {ValueRange(action.launch.getIns()), ValueRange(action.launch.getOuts())})
        for (Value buffer : used)
          if (failed(add(buffer, segment, names)))
            return failure();
  }
  return success();
}

void Arena::declarePersistent(Writer &writer) const {
  for (const Slice &slice : slices)
    if (slice.segment.empty())
      declare(slice, writer);
}

void Arena::declare(ArrayRef<Action> actions, llvm::DenseSet<Value> &declared,
                    Writer &writer) const {
  for (const Action &action : actions)
    for (ValueRange used :
         {ValueRange(action.launch.getIns()), ValueRange(action.launch.getOuts())})
      for (Value buffer : used)
        if (const Slice &slice = slices[find(buffer)];
            !slice.segment.empty() && declared.insert(buffer).second)
          declare(slice, writer);
}
