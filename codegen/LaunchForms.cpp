//===- LaunchForms.cpp ----------------------------------------------------===//

#include "codegen/LaunchForms.h"

using namespace mlir;
using namespace mlir::fsdp;

bool EqualForms::areAlike(LaunchOp one, LaunchOp other) {
  if (one->getBlock() != other->getBlock() || one.getStreamAttr() != other.getStreamAttr() ||
      one.getIns().size() != other.getIns().size() ||
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
  return haveEqualBodies(one, other);
}

size_t EqualForms::hash(LaunchOp launch) {
  llvm::hash_code code = hashBody(launch);
  for (Value buffer : launch.getBuffers())
    code = llvm::hash_combine(code, buffer.getType());
  return code;
}

unsigned LaunchForm::numberOf(Value buffer) const {
  const auto buffers = first.getBuffers();
  return static_cast<unsigned>(llvm::find(buffers, buffer) - buffers.begin());
}
