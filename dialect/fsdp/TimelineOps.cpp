//===- TimelineOps.cpp - verify buffers and launches ----------------------===//

#include "dialect/fsdp/FSDPDialect.h"

using namespace mlir;
using namespace mlir::fsdp;

LogicalResult BufferOp::verify() {
  if (std::optional<uint64_t> offset = getOffset())
    if (static_cast<int64_t>(*offset) < 0 || *offset % 64 != 0)
      return emitOpError() << "has offset " << static_cast<int64_t>(*offset)
                           << ", expected a multiple of 64 that is not negative";
  bool inProgram = isa<ProgramOp>((*this)->getParentOp());
  if (inProgram && !getPersistent())
    return emitOpError()
           << "'" << getName()
           << "' stands directly in a program; mark it persistent or move it into a segment";
  if (!getPersistent() && getStorage())
    return emitOpError() << "'" << getName() << "' holds a storage; mark it persistent";
  return success();
}

LogicalResult SubviewOp::verify() {
  RankedTensorType whole = getBuffer().getType().getTensor();
  RankedTensorType part = getType().getTensor();
  if (whole.getElementType() != part.getElementType())
    return emitOpError() << "has element type " << part.getElementType() << ", expected "
                         << whole.getElementType();
  int64_t offset = getOffset();
  if (offset < 0 || offset + part.getNumElements() > whole.getNumElements())
    return emitOpError() << "covers elements " << offset << " to " << offset + part.getNumElements()
                         << ", expected at most " << whole.getNumElements();
  return success();
}

/// Fails unless `tensors` have the types of `buffers`, one to one.
static LogicalResult verifyContents(LaunchOp launch, ValueRange tensors, ValueRange buffers,
                                    StringRef inside, StringRef outside) {
  if (tensors.size() != buffers.size())
    return launch.emitOpError() << "has " << tensors.size() << " " << inside << ", expected "
                                << buffers.size() << " as it has " << outside;
  for (auto [index, pair] : llvm::enumerate(llvm::zip_equal(tensors, buffers))) {
    Type got = std::get<0>(pair).getType();
    Type expected = cast<BufferType>(std::get<1>(pair).getType()).getTensor();
    if (got != expected)
      return launch.emitOpError() << "has " << got << " as number " << index << " of its " << inside
                                  << ", expected " << expected;
  }
  return success();
}

LogicalResult LaunchOp::verify() {
  Block &body = getBody().front();
  auto yield = cast<YieldOp>(body.getTerminator());
  if (failed(verifyContents(*this, body.getArguments(), getIns(), "block arguments", "ins")) ||
      failed(verifyContents(*this, yield.getValues(), getOuts(), "yielded values", "outs")))
    return failure();
  bool collective =
      llvm::any_of(body, [](Operation &op) { return isa<CollectiveOpInterface>(op); });
  if (collective && body.getOperations().size() != 2)
    return emitOpError() << "holds a collective and something else; launch them apart";
  return success();
}
