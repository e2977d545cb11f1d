//===- Arena.cpp ----------------------------------------------------------===//

#include "codegen/Arena.h"

#include "codegen/Elementwise.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

LogicalResult Arena::add(Value buffer, StringRef segment, Names &names,
                         std::vector<Declaration> &slices) {
  if (spelling.count(buffer))
    return success();
  ArenaSpan span = program.spanOf(buffer);
  bool isState = buffer == program.stepState->getResult(0);
  std::string type = elementType(span.type.getElementType()).str();
  if (span.type.getElementType().isBF16())
    type = "bf16";
  if (type.empty())
    return buffer.getDefiningOp()->emitOpError()
           << "has element type " << span.type.getElementType()
           << ", which the runtime of this target does not support; use f32";
  std::string name = isState ? "step_state" : names.unique(bufferName(buffer, &program.symbols));
  std::string shape;
  for (int64_t size : span.type.getShape())
    shape += (shape.empty() ? "" : " x ") + std::to_string(size);
  if (auto subview = buffer.getDefiningOp<SubviewOp>())
    shape += " of " + commentFor(bufferName(subview.getBuffer(), &program.symbols));
  spelling[buffer] = (segment.empty() ? "persistent::" : "arena::") + name;
  types[buffer] = isState ? "StepState" : type;
  outside[buffer] = (segment.empty() ? "" : segment.str() + "::") + spelling[buffer];
  slices.push_back({name,
                    "constexpr ArenaSpan<" + (isState ? "StepState" : type) + "> " + name + "{" +
                        std::to_string(span.offset) + ", " +
                        std::to_string(isState ? 1 : span.type.getNumElements()) + "};",
                    isState || shape.empty() ? "" : " // " + shape});
  return success();
}

LogicalResult Arena::create() {
  Names persistentNames(/*qualified=*/true);
  if (failed(add(program.stepState->getResult(0), "", persistentNames, persistent)))
    return failure();
  for (auto buffer : program.program.getBody().front().getOps<BufferOp>())
    if (failed(add(buffer, "", persistentNames, persistent)))
      return failure();
  for (const Timeline &timeline : program.timelines) {
    const std::string &segment = program.names.segment(timeline.segment);
    std::vector<Declaration> &slices = segments.emplace_back();
    Names names(/*qualified=*/true);
    for (const Action &action : timeline.actions) {
      SmallVector<Value> used(action.launch.getIns());
      llvm::append_range(used, action.launch.getOuts());
      for (Value buffer : used)
        if (failed(add(buffer, segment, names, slices)))
          return failure();
    }
  }
  return success();
}

void Arena::declarePersistent(Writer &writer) const {
  for (const Declaration &slice : persistent)
    writer.line(slice.declaration + slice.note);
}

void Arena::declareSegment(Writer &writer, const Timeline &timeline) const {
  for (const Declaration &slice : segments[&timeline - program.timelines.data()])
    writer.line(slice.declaration + slice.note);
}
