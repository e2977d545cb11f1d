//===- LaunchForms.cpp ----------------------------------------------------===//

#include "codegen/LaunchForms.h"

using namespace mlir;
using namespace mlir::fsdp;

SmallVector<Value, 16> mlir::fsdp::getBuffers(LaunchOp launch) {
  SmallVector<Value, 16> buffers(launch.getIns());
  llvm::append_range(buffers, launch.getOuts());
  if (Value state = launch.getStepState())
    buffers.push_back(state);
  return buffers;
}

static bool haveOneForm(LaunchOp one, LaunchOp other) {
  if (one->getBlock() != other->getBlock() || one.getStreamAttr() != other.getStreamAttr() ||
      one.getIns().size() != other.getIns().size() ||
      one.getOuts().size() != other.getOuts().size() ||
      !one.getStepState() != !other.getStepState())
    return false;
  const auto buffers = getBuffers(one), otherBuffers = getBuffers(other);
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].getType() != otherBuffers[i].getType())
      return false;
    for (size_t before = 0; before < i; ++before)
      if ((buffers[i] == buffers[before]) != (otherBuffers[i] == otherBuffers[before]))
        return false;
  }
  return haveEqualBodies(one, other);
}

static size_t hashForm(LaunchOp launch) {
  llvm::hash_code code = hashBody(launch);
  for (Value buffer : getBuffers(launch))
    code = llvm::hash_combine(code, buffer.getType());
  return code;
}

unsigned LaunchForm::numberOf(Value buffer) const {
  const auto buffers = getBuffers(first);
  return static_cast<unsigned>(llvm::find(buffers, buffer) - buffers.begin());
}

FailureOr<const LaunchForm *> LaunchForms::find(const ScheduledProgram &program, LaunchOp launch) {
  SmallVector<const LaunchForm *, 1> &alike = byHash[hashForm(launch)];
  for (const LaunchForm *form : alike)
    if (haveOneForm(form->first, launch))
      return form;
  FailureOr<Call> call = callFor(program, launch);
  if (failed(call))
    return failure();
  forms.push_back({launch, std::move(*call)});
  alike.push_back(&forms.back());
  return &forms.back();
}
