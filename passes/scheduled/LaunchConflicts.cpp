//===- LaunchConflicts.cpp ------------------------------------------------===//

#include "passes/scheduled/LaunchConflicts.h"

using namespace mlir;
using namespace mlir::fsdp;

bool mlir::fsdp::haveConflict(const PlannedLaunch &a, const PlannedLaunch &b) {
  auto overlap = [](const BufferView &one, const BufferView &other) {
    return one.buffer == other.buffer && one.offset < other.offset + other.type.getNumElements() &&
           other.offset < one.offset + one.type.getNumElements();
  };
  auto touch = [&](ArrayRef<BufferView> written, ArrayRef<BufferView> others) {
    return llvm::any_of(written, [&](const BufferView &view) {
      return llvm::any_of(others, [&](const BufferView &other) { return overlap(view, other); });
    });
  };
  return touch(a.outs, b.ins) || touch(a.outs, b.outs) || touch(a.ins, b.outs);
}
