//===- LocalOps.cpp - verify storage access, views and shard updates ------===//

#include "dialect/fsdp/Carried.h"
#include "dialect/fsdp/Fill.h"
#include "dialect/fsdp/StepStateAccess.h"
#include "runtime/program/Limits.h"
#include "llvm/ADT/StringExtras.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

using fsdp::detail::verifyStorage;

FailureOr<StorageOp> mlir::fsdp::detail::findStorage(SymbolTableCollection &symbols, Operation *op,
                                                     FlatSymbolRefAttr symbol) {
  // Storages are in the module; the nearest symbol table is the program.
  auto module = op->getParentOfType<ModuleOp>();
  auto storage = module ? symbols.lookupSymbolIn<StorageOp>(module, symbol) : StorageOp();
  if (!storage)
    return op->emitOpError() << "names '" << symbol.getValue() << "', which is not a storage";
  if (auto program = op->getParentOfType<ProgramOp>(); program && !storage.isOwnedBy(program))
    return op->emitOpError()
           << "is in program '" << program.getSymName() << "' and names storage '"
           << symbol.getValue() << "', which only "
           << llvm::join(llvm::map_range(*storage.getRoles(),
                                         [](Attribute role) {
                                           return "'" +
                                                  cast<FlatSymbolRefAttr>(role).getValue().str() +
                                                  "'";
                                         }),
                         ", ")
           << " keeps; name the program in its 'roles', or let a rank that keeps "
              "the storage send the values";
  return storage;
}

LogicalResult mlir::fsdp::detail::verifyStorage(SymbolTableCollection &symbols, Operation *op,
                                                FlatSymbolRefAttr symbol, StringRef what,
                                                Type type) {
  FailureOr<StorageOp> found = findStorage(symbols, op, symbol);
  if (failed(found))
    return failure();
  StorageOp storage = *found;
  RankedTensorType kept = storage.getKeptType(what);
  if (!kept)
    return op->emitOpError() << "names '" << what << "', which storage '" << symbol.getValue()
                             << "' does not keep; it keeps " << llvm::join(storage.getKept(), ", ");
  if (kept != type)
    return op->emitOpError() << "has type " << type << ", expected " << kept << ", the type of '"
                             << what << "' of storage '" << symbol.getValue() << "'";
  return success();
}

LogicalResult LoadOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyStorage(symbols, *this, getStorageAttr(), getWhat(), getType());
}

LogicalResult StoreOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyStorage(symbols, *this, getStorageAttr(), getWhat(), getValue().getType());
}

LogicalResult CarriedOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!getStorage())
    return success();
  return fsdp::detail::findStorage(symbols, *this, getStorageAttr());
}

/// Fails unless `symbol` names a carried tensor of `type`.
static LogicalResult verifyCarried(SymbolTableCollection &symbols, Operation *op,
                                   FlatSymbolRefAttr symbol, Type type) {
  auto module = op->getParentOfType<ModuleOp>();
  auto carried = module ? symbols.lookupSymbolIn<CarriedOp>(module, symbol) : CarriedOp();
  if (!carried)
    return op->emitOpError() << "names '" << symbol.getValue() << "', expected an 'fsdp.carried'";
  if (carried.getTensorType() != type)
    return op->emitOpError() << "has type " << type << ", expected " << carried.getTensorType()
                             << ", the type of '" << symbol.getValue() << "'";
  return success();
}

LogicalResult CarryLoadOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyCarried(symbols, *this, getCarriedAttr(), getType());
}

LogicalResult CarryStoreOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyCarried(symbols, *this, getCarriedAttr(), getValue().getType());
}

bool mlir::fsdp::isCarried(Value value) {
  while (auto view = value.getDefiningOp<ViewOp>())
    value = view.getFlat();
  return value.getDefiningOp<CarryLoadOp>() != nullptr;
}

LogicalResult ViewOp::verify() {
  auto flat = cast<RankedTensorType>(getFlat().getType());
  auto type = cast<RankedTensorType>(getType());
  if (flat.getRank() != 1 || flat.getElementType() != type.getElementType())
    return emitOpError() << "takes a flat tensor of " << type.getElementType() << ", got " << flat;
  int64_t offset = getOffset();
  if (offset < 0 || offset > flat.getNumElements() - type.getNumElements())
    return emitOpError() << "covers " << type.getNumElements() << " elements from " << offset
                         << ", expected a range within 0 to " << flat.getNumElements();
  return success();
}

LogicalResult FlattenOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (type.getRank() != 1)
    return emitOpError() << "has result " << type << ", expected rank 1";
  int64_t elements = 0;
  for (Value input : getInputs()) {
    auto inputType = cast<RankedTensorType>(input.getType());
    if (inputType.getElementType() != type.getElementType())
      return emitOpError() << "has operand " << inputType << ", expected element type "
                           << type.getElementType();
    elements += inputType.getNumElements();
  }
  if (elements > type.getNumElements())
    return emitOpError() << "has " << elements << " elements, expected at most "
                         << type.getNumElements();
  return success();
}

bool MaskPaddingOp::isElementwise() { return true; }
bool MaskPaddingOp::isCheap() { return true; }

LogicalResult MaskPaddingOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  int64_t dim = getDim();
  if (dim < 0 || dim >= type.getRank())
    return emitOpError() << "masks dimension " << dim << ", expected a dimension below "
                         << type.getRank();
  SmallVector<StringAttr> axes = getAxisNames(getOver());
  if (failed(fsdp::detail::verifyAxes(*this, axes, "is split over")))
    return failure();
  if (static_cast<int64_t>(getSize()) < 0)
    return emitOpError() << "masks a dimension of " << static_cast<int64_t>(getSize())
                         << " elements, expected 0 or more";
  if (failed(fsdp::detail::verifyFill(*this, getFill(), type.getElementType())))
    return failure();
  int64_t ranks = getMesh(*this).getSize(axes);
  int64_t expected = llvm::divideCeil(static_cast<int64_t>(getSize()), ranks);
  if (type.getDimSize(dim) < expected)
    return emitOpError() << "has " << type.getDimSize(dim) << " elements along dimension " << dim
                         << ", expected at least " << expected << " (" << getSize() << " over "
                         << ranks << " ranks)";
  return success();
}

static int64_t ceilPart(Operation *op, int64_t size, ArrayAttr over) {
  return llvm::divideCeil(size, getMesh(op).getSize(getAxisNames(over)));
}

/// A dimension of `size` elements that is split over `over`, in parts of `part` elements if given.
static LogicalResult verifyShard(Operation *op, int64_t size, ArrayAttr over,
                                 std::optional<int64_t> part) {
  // (C1)
  if (size < 1 || size > nn::kMaxTensorBytes)
    return op->emitOpError() << "is for a dimension of " << size << " elements, expected 1 to 2^48";
  if (failed(fsdp::detail::verifyAxes(op, getAxisNames(over), "is split over")))
    return failure();
  // (C2)
  if (int64_t least = ceilPart(op, size, over);
      part && (*part <= least || *part > nn::kMaxTensorBytes))
    return op->emitOpError() << "is for parts of " << *part << " elements, expected " << least + 1
                             << " to 2^48; leave 'part' out where a dimension is not padded";
  return success();
}

LogicalResult ShardIndicesOp::verify() {
  return verifyShard(*this, getSize(), getOver(), getPart());
}
LogicalResult ShardSizeOp::verify() { return verifyShard(*this, getSize(), getOver(), getPart()); }
LogicalResult ShardOffsetOp::verify() {
  return verifyShard(*this, getSize(), getOver(), getPart());
}

int64_t ShardIndicesOp::getPartSize() {
  return getPart() ? *getPart() : ceilPart(*this, getSize(), getOver());
}
int64_t ShardSizeOp::getPartSize() {
  return getPart() ? *getPart() : ceilPart(*this, getSize(), getOver());
}
int64_t ShardOffsetOp::getPartSize() {
  return getPart() ? *getPart() : ceilPart(*this, getSize(), getOver());
}

/// The runtime's shard of a dimension, and how many indices into it an op renumbers.
template <typename Op> static nn::KernelCall shardCall(Op op, int64_t indices) {
  return {op, nn::ShapeArgument("IndexShard")
                  .field("count", indices)
                  .field("size", static_cast<int64_t>(op.getSize()))
                  .field("part", op.getPartSize())
                  .rankIndex("index", op.getOver())};
}
nn::KernelCall ShardIndicesOp::getKernelCall() {
  return shardCall(*this, cast<RankedTensorType>(getType()).getNumElements());
}
nn::KernelCall ShardSizeOp::getKernelCall() { return shardCall(*this, 0); }
nn::KernelCall ShardOffsetOp::getKernelCall() { return shardCall(*this, 0); }

nn::ShardingRule ShardIndicesOp::getShardingRule() { return nn::ShardingRule::elementwise(*this); }
int64_t ShardIndicesOp::getIndexBound(unsigned) { return getSize(); }

LogicalResult OptimizerStepOp::verifySymbolUses(SymbolTableCollection &symbols) {
  Type type = getParameter().getType();
  SmallVector<StringRef> names = getOptimizer().getStateNames();
  if (getStates().size() != names.size() || getNewStates().size() != names.size())
    return emitOpError() << "has " << getStates().size() << " states, expected " << names.size()
                         << " (" << llvm::join(names, ", ") << ")";
  auto sameType = [&](Value value) { return value.getType() == type; };
  if (!sameType(getGradient()) || !sameType(getNewParameter()) ||
      !llvm::all_of(getStates(), sameType) || !llvm::all_of(getNewStates(), sameType))
    return emitOpError() << "requires gradient, states and results of the parameter's type "
                         << type;
  FailureOr<StorageOp> storage = fsdp::detail::findStorage(symbols, *this, getStorageAttr());
  if (failed(storage))
    return failure();
  if (storage->getShard() != type)
    return emitOpError() << "has type " << type << ", expected " << storage->getShard()
                         << ", the shard of storage '" << getStorage() << "'";
  return success();
}

nn::KernelCall LearningRateOp::getKernelCall() { return *this; }

LogicalResult ClipScaleOp::verify() {
  // (C1)
  if (getOptimizer().getClip() <= 0)
    return emitOpError() << "requires an optimizer that clips, got clip = 0";
  return success();
}
nn::KernelCall ClipScaleOp::getKernelCall() { return {*this, {}, nn::KernelElements::operandsF32}; }

nn::KernelCall AcceptableOp::getKernelCall() {
  return {*this, {}, nn::KernelElements::operandsF32};
}

nn::KernelCall SquareSumOp::getKernelCall() {
  SmallVector<int64_t> counts;
  for (Value input : getInputs())
    counts.push_back(cast<RankedTensorType>(input.getType()).getNumElements());
  if (counts.size() == 1)
    return {*this, nn::ShapeArgument().field("count", counts.front()),
            nn::KernelElements::operandsF32};
  nn::KernelCall call(
      *this, nn::ShapeArgument("Counts<" + std::to_string(counts.size()) + ">").field("of", counts),
      nn::KernelElements::operandsF32);
  call.callee = "square_sums";
  return call;
}

LogicalResult SquareSumOp::verify() {
  // (C1)
  if (!getInputs().empty() && getInputs().size() <= limits::kMaxSquaredShards)
    return success();
  return emitOpError() << "has " << getInputs().size() << " shards, expected 1 to "
                       << limits::kMaxSquaredShards << "; add up the results of several";
}

nn::KernelCall AdvanceOp::getKernelCall() { return *this; }

LogicalResult AdvanceOp::verify() {
  for (Operation *op = (*this)->getNextNode(); op; op = op->getNextNode()) {
    if (getStepStateAccess({op}).isNone() && !isa<UpdateOp>(op))
      continue;
    InFlightDiagnostic diag =
        emitOpError()
        << "precedes '" << op->getName()
        << "', which would read the state of the next step; move it after all other uses";
    diag.attachNote(op->getLoc()) << "the op that must come first is here";
    return diag;
  }
  return success();
}
