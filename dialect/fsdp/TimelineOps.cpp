//===- TimelineOps.cpp - verify buffers and launches ----------------------===//

#include "dialect/fsdp/CollectiveGroup.h"
#include "dialect/fsdp/FSDPDialect.h"
#include "dialect/fsdp/Structure.h"
#include "dialect/fsdp/UpdateGroup.h"
#include "runtime/program/GroupLimit.h"
#include "runtime/program/Limits.h"

using namespace mlir;
using namespace mlir::fsdp;

std::string LaunchOp::getFullName() {
  const StructureAttr structure = getStructureAttr();
  if (!structure || Structure::get(structure).microbatch < 0)
    return getName().str();
  return (getName() + " stage " + Twine(structure.getStage()) + " microbatch " +
          Twine(structure.getMicrobatch()))
      .str();
}

/// Why a buffer cannot be zeroed; empty where it can.
static StringRef whyNotZeroed(BufferOp buffer) {
  if (!buffer.getPersistent())
    return "it is not persistent; let a launch write it";
  bool filled = buffer.getStorage() && buffer.getWhat() != BufferOp::accumulator;
  if (filled || buffer.getType().getTensor() == getStepStateType(buffer.getContext()))
    return "the driver fills it";
  return "";
}

LogicalResult BufferOp::verify() {
  if (std::optional<uint64_t> offset = getOffset())
    if (*offset > static_cast<uint64_t>(nn::kMaxTensorBytes) || *offset % 64 != 0)
      return emitOpError() << "has offset " << static_cast<int64_t>(*offset)
                           << ", expected a multiple of 64 from 0 to 2^48";
  bool inProgram = isa<ProgramOp>((*this)->getParentOp());
  if (inProgram && !getPersistent())
    return emitOpError()
           << "'" << getName()
           << "' is directly in a program; mark it persistent or move it into a segment";
  bool holdsWhole = getWhat() == gathered || getWhat() == gradient;
  if (getStorage() && getPersistent() == holdsWhole)
    return emitOpError()
           << "'" << getName() << "' holds \"" << getWhat().value_or("")
           << (getPersistent()
                   ? "\", expected \"parameter\", a state or \"accumulator\" as it is persistent"
                   : "\", expected \"gathered\" or \"gradient\" as it is "
                     "not persistent");
  if (StringRef why = getZeroed() ? whyNotZeroed(*this) : ""; !why.empty())
    return emitOpError() << "'" << getName() << "' is zeroed, but " << why;
  return success();
}

/// Fails unless all members of `storage` fit into `buffer`.
static LogicalResult verifyWhole(SymbolTableCollection &symbols, BufferOp buffer,
                                 StorageOp storage) {
  if (storage.getMembers().empty())
    return success();
  auto last = dyn_cast<MemberAttr>(storage.getMembers().getValue().back());
  auto param =
      last ? symbols.lookupSymbolIn<ParamOp>(storage->getParentOp(), last.getParam()) : ParamOp();
  if (!param)
    return success(); // reported by the verifier of the storage
  int64_t elements = buffer.getType().getTensor().getNumElements();
  int64_t needed = last.getOffset() + param.getComputeType().getNumElements();
  if (elements >= needed)
    return success();
  return buffer.emitOpError() << "'" << buffer.getName() << "' has " << elements
                              << " elements, expected at least " << needed
                              << ", the members of storage '" << storage.getSymName() << "'";
}

LogicalResult BufferOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!getStorage())
    return success();
  if (getPersistent() && getWhat() != accumulator)
    return fsdp::detail::verifyStorage(symbols, *this, getStorageAttr(), getWhat().value_or(""),
                                       getType().getTensor());
  FailureOr<StorageOp> storage = fsdp::detail::findStorage(symbols, *this, getStorageAttr());
  if (failed(storage) || getWhat() == accumulator) // of a shard, or of all members
    return storage;
  return verifyWhole(symbols, *this, *storage);
}

LogicalResult SubviewOp::verify() {
  if (!getBuffer().getDefiningOp<BufferOp>() && !getBuffer().getDefiningOp<SubviewOp>())
    return emitOpError() << "operand must be an 'fsdp.buffer' or an 'fsdp.subview'";
  RankedTensorType whole = getBuffer().getType().getTensor();
  RankedTensorType part = getType().getTensor();
  if (whole.getElementType() != part.getElementType())
    return emitOpError() << "has element type " << part.getElementType() << ", expected "
                         << whole.getElementType();
  int64_t offset = getOffset();
  if (offset < 0 || offset > whole.getNumElements() - part.getNumElements())
    return emitOpError() << "covers " << part.getNumElements() << " elements from " << offset
                         << ", expected a range within 0 to " << whole.getNumElements();
  return success();
}

/// Fails unless `tensors` have the types of `buffers`, one to one.
static LogicalResult verifyContents(LaunchOp launch, ValueRange tensors, ValueRange buffers,
                                    StringRef inside, StringRef outside) {
  if (tensors.size() != buffers.size())
    return launch.emitOpError() << "has " << tensors.size() << " " << inside << "s, expected "
                                << buffers.size() << ", one for each of its '" << outside << "'";
  for (auto [index, pair] : llvm::enumerate(llvm::zip_equal(tensors, buffers))) {
    Type got = std::get<0>(pair).getType();
    Type expected = cast<BufferType>(std::get<1>(pair).getType()).getTensor();
    if (got != expected)
      return launch.emitOpError() << "has " << got << " as " << inside << " #" << index
                                  << ", expected " << expected;
  }
  return success();
}

RankedTensorType mlir::fsdp::getStepStateType(MLIRContext *context) {
  constexpr int64_t words = limits::kStepBufferBytes / sizeof(int64_t);
  return RankedTensorType::get({words}, IntegerType::get(context, 64));
}

/// Fails if an operand is not declared by a segment of this program.
static LogicalResult verifyOperands(LaunchOp launch) {
  for (Value wait : launch.getWait())
    if (!wait.getDefiningOp<LaunchOp>() && !wait.getDefiningOp<EventOp>())
      return launch.emitOpError() << "'wait' operand must be an 'fsdp.launch' or an 'fsdp.event'";
  llvm::SmallPtrSet<Operation *, 4> recorded;
  for (Value record : launch.getRecords()) {
    auto event = record.getDefiningOp<EventOp>();
    if (!event)
      return launch.emitOpError() << "'records' operand must be an 'fsdp.event'";
    if (!recorded.insert(event).second)
      return launch.emitOpError() << "records event '" << event.getName() << "' twice";
  }
  if (Value state = launch.getStepState()) {
    RankedTensorType expected = getStepStateType(launch.getContext());
    if (RankedTensorType type = cast<BufferType>(state.getType()).getTensor(); type != expected)
      return launch.emitOpError() << "has a step state of " << type << ", expected " << expected;
  }
  for (Value buffer : launch.getBuffers())
    if (!buffer.getDefiningOp<BufferOp>() && !buffer.getDefiningOp<SubviewOp>())
      return launch.emitOpError() << "buffer operand must be an 'fsdp.buffer' or an 'fsdp.subview'";
  return success();
}

/// (C2)
static LogicalResult verifyCollectives(LaunchOp launch, Block &body) {
  auto collectives = llvm::to_vector(body.getOps<CollectiveOpInterface>());
  if (collectives.empty())
    return success();
  if (body.getOperations().size() != collectives.size() + 1)
    return launch.emitOpError() << "contains a collective and other ops; use separate launches";
  if (collectives.size() == 1)
    return success();
  if (collectives.size() > limits::kMaxGroupedCollectives)
    return launch.emitOpError() << "groups " << collectives.size()
                                << " collectives, expected at most "
                                << limits::kMaxGroupedCollectives << "; use separate launches";
  CollectiveOpInterface first = collectives.front();
  Operation *yield = body.getTerminator();
  for (auto [index, op] : llvm::enumerate(collectives)) {
    if (!mayBeGrouped(op) || op->getName() != first->getName())
      return launch.emitOpError() << "groups '" << first->getName() << "' and '" << op->getName()
                                  << "', expected only 'fsdp.all_gather' or only "
                                     "'fsdp.reduce_scatter'; use separate launches";
    if (op.getAxes() != first.getAxes())
      return launch.emitOpError() << "groups a collective over "
                                  << getAxisArray(op.getContext(), op.getAxes())
                                  << " with one over "
                                  << getAxisArray(op.getContext(), first.getAxes())
                                  << ", expected the same axes; use separate launches";
    if (index >= body.getNumArguments() || op.getSendValue() != body.getArgument(index) ||
        index >= yield->getNumOperands() || op.getRecvValue() != yield->getOperand(index))
      return launch.emitOpError() << "groups collectives of which #" << index
                                  << " does not take block argument #" << index
                                  << " and give yielded value #" << index
                                  << "; bring them into one order";
  }
  return success();
}

void LaunchOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  for (OpOperand &wait : getWaitMutable())
    if (wait.get().getDefiningOp<EventOp>())
      effects.emplace_back(MemoryEffects::Read::get(), &wait);
  for (OpOperand &in : getInsMutable())
    effects.emplace_back(MemoryEffects::Read::get(), &in);
  for (OpOperand &out : getOutsMutable())
    effects.emplace_back(MemoryEffects::Write::get(), &out);
  for (OpOperand &record : getRecordsMutable())
    effects.emplace_back(MemoryEffects::Write::get(), &record);
  for (Operation &op : getBody().front()) {
    std::optional<SmallVector<MemoryEffects::EffectInstance>> inside = getEffectsRecursively(&op);
    if (!inside) { // any effect
      effects.emplace_back(MemoryEffects::Write::get());
      continue;
    }
    llvm::copy_if(*inside, std::back_inserter(effects),
                  [](const MemoryEffects::EffectInstance &effect) {
                    return !effect.getValue(); // else on a value of the body
                  });
  }
}

LogicalResult LaunchOp::verify() {
  if (failed(verifyOperands(*this)))
    return failure();
  Block &body = getBody().front();
  auto yield = cast<YieldOp>(body.getTerminator());
  if (failed(verifyContents(*this, body.getArguments(), getIns(), "block argument", "ins")) ||
      failed(verifyContents(*this, yield.getValues(), getOuts(), "yielded value", "outs")))
    return failure();
  return verifyCollectives(*this, body);
}

SmallVector<CollectiveOpInterface> mlir::fsdp::getCollectives(LaunchOp launch) {
  SmallVector<CollectiveOpInterface> collectives;
  for (Operation &op : launch.getBody().front()) {
    if (!isa<FSDPDialect>(op.getDialect())) // the interface of other ops takes longer to look up
      continue;
    if (auto collective = dyn_cast<CollectiveOpInterface>(op);
        collective && collective.involvesPeers())
      collectives.push_back(collective);
  }
  return collectives;
}

SmallVector<OptimizerStepOp> mlir::fsdp::getUpdates(LaunchOp launch) {
  return llvm::to_vector(launch.getBody().front().getOps<OptimizerStepOp>());
}

bool mlir::fsdp::mayShareLaunch(OptimizerStepOp one, OptimizerStepOp other) {
  return one.getStorageAttr() != other.getStorageAttr() &&
         one.getOptimizer() == other.getOptimizer() && one.getLr() == other.getLr() &&
         one.getScale() == other.getScale() && one.getOk() == other.getOk() &&
         one.getDeferred() == other.getDeferred();
}

bool mlir::fsdp::mayBeGrouped(Operation *op) { return isa<AllGatherOp, ReduceScatterOp>(op); }
