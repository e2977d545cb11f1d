//===- CollectiveOps.cpp - the shared rules of collectives ----------------===//

#include "dialect/fsdp/FSDPDialect.h"
#include "dialect/fsdp/ReduceInPlace.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/InterleavedRange.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

#include "dialect/fsdp/CollectiveOpInterface.cpp.inc"

Value mlir::fsdp::findReducedInPlace(Value result) {
  Operation *collective = result.getDefiningOp<CollectiveOpInterface>();
  auto kernel = dyn_cast_or_null<nn::KernelOpInterface>(collective);
  if (!kernel)
    return nullptr;
  for (auto [operand, number] : kernel.getInPlacePairs()) {
    Value replaced = collective->getOperand(operand);
    if (collective->getResult(number) == result && replaced.hasOneUse() &&
        replaced.getType() == result.getType())
      return replaced;
  }
  return nullptr;
}

LogicalResult mlir::fsdp::detail::verifyCollective(Operation *op) {
  SmallVector<StringAttr> axes = cast<CollectiveOpInterface>(op).getAxes();
  if (axes.empty())
    return op->emitOpError() << "runs over no axes, expected at least one; use its operand instead";
  if (involvesPeers(op) && isa<nn::FusedOp>(op->getParentOp()))
    return op->emitOpError() << "communicates between ranks and cannot be in 'nn.fused', which is "
                                "one kernel; move it before or after";
  return verifyAxes(op, axes, "runs over");
}

static int64_t bytesOf(Value value) { return nn::bytesOf(value.getType()); }

int64_t mlir::fsdp::detail::getGroupSize(Operation *op) {
  return getMesh(op).getSize(cast<CollectiveOpInterface>(op).getAxes());
}

int64_t mlir::fsdp::detail::getCollectiveBytes(Operation *op) {
  if (!involvesPeers(op))
    return 0;
  // The whole value of the group. Its shards together may be longer, by padding that is not sent.
  if (isa<AllGatherOp>(op))
    return bytesOf(op->getResult(0));
  if (isa<ReduceScatterOp>(op))
    return bytesOf(op->getOperand(0));
  auto collective = cast<CollectiveOpInterface>(op);
  Value given = collective.getSendValue(), received = collective.getRecvValue();
  return std::max(given ? bytesOf(given) : 0, received ? bytesOf(received) : 0);
}

std::string mlir::fsdp::detail::getCollectiveArguments(Operation *op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::ListSeparator blank(" ");
  for (StringAttr name : op->getName().getAttributeNames()) {
    Attribute value = op->getAttr(name);
    if (name == "over" || !value)
      continue;
    os << blank;
    if (auto kind = dyn_cast<ReduceKindAttr>(value)) {
      os << stringifyReduceKind(kind.getValue());
      continue;
    }
    if (isa<UnitAttr>(value)) {
      os << name.getValue();
      continue;
    }
    os << name.getValue() << " ";
    if (auto list = dyn_cast<DenseI64ArrayAttr>(value))
      os << "[" << llvm::interleaved(list.asArrayRef()) << "]";
    else
      os << cast<IntegerAttr>(value).getInt();
  }
  return text;
}

bool mlir::fsdp::involvesPeers(Operation *op) {
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  return collective && collective.involvesPeers();
}

/// Fails unless `dim` is a dimension of `type`.
static LogicalResult verifyDim(Operation *op, RankedTensorType type, int64_t dim) {
  if (dim >= 0 && dim < type.getRank())
    return success();
  return op->emitOpError() << "works along dimension " << dim << ", expected a dimension below "
                           << type.getRank();
}

/// Fails unless `part` is one rank's part of `whole` along `dim`. A flat unit's shard (rank one)
/// may be longer.
static LogicalResult verifyPart(Operation *op, Type wholeType, Type partType, int64_t dim,
                                ArrayAttr over) {
  auto whole = cast<RankedTensorType>(wholeType);
  auto part = cast<RankedTensorType>(partType);
  if (failed(verifyDim(op, whole, dim)))
    return failure();
  int64_t ranks = getMesh(op).getSize(getAxisNames(over));
  SmallVector<int64_t> shape(whole.getShape());
  shape[dim] = llvm::divideCeil(shape[dim], ranks);
  if (part.getRank() == whole.getRank())
    shape[dim] = std::max(shape[dim], part.getDimSize(dim));
  RankedTensorType expected = RankedTensorType::get(shape, whole.getElementType());
  if (part != expected)
    return op->emitOpError() << "has " << part << " as the part of " << whole << " over " << ranks
                             << " ranks, expected " << expected;
  return success();
}

static int64_t sizeAlong(Value value, int64_t dim) {
  return cast<RankedTensorType>(value.getType()).getDimSize(dim);
}

/// Bytes of one index along `dim` of `value`; 0 where it has no elements.
static int64_t bytesAlong(Value value, int64_t dim) {
  const int64_t size = sizeAlong(value, dim);
  return size ? bytesOf(value) / size : 0;
}

/// The elements outside and inside the split dimension, in the order of the runtime's ShardLayout.
static nn::ShapeArgument layoutOf(StringRef type, Value whole, Value piece, int64_t dim) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(whole.getType()).getShape();
  return nn::ShapeArgument(type.str())
      .field("outer", nn::elementsOf(shape.take_front(dim)))
      .field("local", sizeAlong(piece, dim))
      .field("inner", nn::elementsOf(shape.drop_front(dim + 1)))
      .field("total", shape[dim]);
}

// The last rank already holds the least of its result; padding is not sent.
int64_t AllGatherOp::getReceivedBytes() {
  const int64_t dim = getDim(), size = sizeAlong(getResult(), dim),
                part = sizeAlong(getInput(), dim);
  return bytesAlong(getResult(), dim) * std::min(size, (getGroupSize() - 1) * part);
}
nn::ShapeArgument AllGatherOp::getRequest() {
  return layoutOf("ShardLayout", getResult(), getInput(), getDim());
}
LogicalResult AllGatherOp::verify() {
  return verifyPart(*this, getType(), getInput().getType(), getDim(), getOver());
}

// The first rank holds the most, and receives as much from each other rank.
int64_t ReduceScatterOp::getReceivedBytes() {
  const int64_t dim = getDim(), size = sizeAlong(getInput(), dim),
                part = sizeAlong(getResult(), dim);
  return bytesAlong(getInput(), dim) * std::min(size, part) * (getGroupSize() - 1);
}
nn::ShapeArgument ReduceScatterOp::getRequest() {
  return layoutOf("ShardLayout", getInput(), getResult(), getDim());
}
LogicalResult ReduceScatterOp::verify() {
  return verifyPart(*this, getInput().getType(), getType(), getDim(), getOver());
}

// A reduce-scatter and an all-gather of the parts: the first rank receives its part from each other
// rank, then the rest.
int64_t AllReduceOp::getReceivedBytes() {
  const int64_t elements = cast<RankedTensorType>(getType()).getNumElements(),
                ranks = getGroupSize();
  const int64_t part = llvm::divideCeil(elements, ranks);
  return elements ? ((ranks - 1) * part + elements - part) * (bytesOf(getInput()) / elements) : 0;
}

nn::ShapeArgument AllReduceOp::getRequest() {
  const bool max = getKind() == ReduceKind::max;
  return nn::ShapeArgument().expression("op", max ? "ReduceOp::Max" : "ReduceOp::Sum");
}

bool AllSliceOp::involvesPeers() { return false; }
int64_t AllSliceOp::getReceivedBytes() { return 0; }
nn::ShapeArgument AllSliceOp::getRequest() {
  return layoutOf("RankPiece", getInput(), getResult(), getDim()).rankIndex("index", getOver());
}
nn::KernelCall AllSliceOp::getKernelCall() {
  return {*this, getRequest(), nn::KernelElements::any};
}
LogicalResult AllSliceOp::verify() {
  return verifyPart(*this, getInput().getType(), getType(), getDim(), getOver());
}

int64_t AllToAllOp::getReceivedBytes() {
  const int64_t ranks = getGroupSize(), bytes = bytesOf(getResult());
  auto from = cast<RankedTensorType>(getInput().getType()), to = cast<RankedTensorType>(getType());
  int64_t most = 0;
  if (bytes == 0)
    return 0;
  if (getSplit() != getConcat()) {
    const int64_t size = to.getDimSize(getConcat()), part = from.getDimSize(getConcat());
    const int64_t whole = from.getDimSize(getSplit()), own = to.getDimSize(getSplit());
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const int64_t gets = std::clamp<int64_t>(whole - rank * own, 0, own);
      most = std::max(most, gets * (size - std::clamp<int64_t>(size - rank * part, 0, part)));
    }
    return bytes / (size * own) * most;
  }
  const int64_t size = to.getDimSize(getSplit()), held = from.getDimSize(getSplit());
  for (int64_t rank = 0; rank < ranks; ++rank) {
    int64_t begin = std::max(rank * size, rank * held);
    int64_t end = std::min((rank + 1) * size, (rank + 1) * held);
    int64_t exists = std::min((rank + 1) * size, ranks * held) - rank * size;
    most = std::max(most, std::max<int64_t>(exists, 0) - std::max<int64_t>(end - begin, 0));
  }
  return bytes / size * most;
}
nn::ShapeArgument AllToAllOp::getRequest() {
  ArrayRef<int64_t> from = getInput().getType().getShape(), to = getResult().getType().getShape();
  const size_t split = getSplit(), concat = getConcat(), first = std::min(split, concat),
               last = std::max(split, concat);
  const int64_t outer = nn::elementsOf(from.take_front(first)),
                inner = nn::elementsOf(from.drop_front(last + 1));
  if (split == concat)
    return nn::ShapeArgument("RepartitionLayout")
        .field("outer", outer)
        .field("given", from[split])
        .field("inner", inner)
        .field("received", to[split]);
  return nn::ShapeArgument("AllToAllLayout")
      .field("outer", outer)
      .field("middle", nn::elementsOf(from.slice(first + 1, last - first - 1)))
      .field("inner", inner)
      .field("splitLocal", to[split])
      .field("splitTotal", from[split])
      .field("concatLocal", from[concat])
      .field("concatTotal", to[concat])
      .field("splitFirst", split < concat);
}
LogicalResult AllToAllOp::verify() {
  auto from = cast<RankedTensorType>(getInput().getType()), to = cast<RankedTensorType>(getType());
  int64_t split = getSplit(), concat = getConcat();
  if (failed(verifyDim(*this, from, split)) || failed(verifyDim(*this, from, concat)))
    return failure();
  SmallVector<int64_t> shape(from.getShape());
  if (from.getRank() == to.getRank()) {
    int64_t ranks = getMesh(*this).getSize(getAxes());
    shape[concat] = to.getDimSize(concat);
    if (split != concat) {
      shape[split] = llvm::divideCeil(from.getDimSize(split), ranks);
      if (int64_t part = llvm::divideCeil(shape[concat], ranks); from.getDimSize(concat) != part)
        return emitOpError() << "has " << from.getDimSize(concat) << " elements along dimension "
                             << concat << ", expected " << part << " (" << shape[concat] << " over "
                             << ranks << " ranks)";
    }
  }
  if (RankedTensorType expected = RankedTensorType::get(shape, from.getElementType());
      to != expected)
    return emitOpError() << "produces " << to << " from " << from << ", expected " << expected;
  return success();
}

int64_t CollectivePermuteOp::getReceivedBytes() {
  for (auto [rank, source] : llvm::enumerate(getFrom()))
    if (source >= 0 && source != static_cast<int64_t>(rank))
      return bytesOf(getResult());
  return 0;
}
nn::ShapeArgument CollectivePermuteOp::getRequest() {
  std::string ranks;
  llvm::raw_string_ostream(ranks) << llvm::interleaved(getFrom());
  return nn::ShapeArgument().expression("sources", "SourceRanks::of<" + ranks + ">()");
}
LogicalResult mlir::fsdp::detail::verifySources(Operation *op, ArrayRef<int64_t> from,
                                                int64_t ranks, StringRef advice) {
  if (static_cast<int64_t>(from.size()) != ranks)
    return op->emitOpError() << "has " << from.size() << " sources, expected one for each of "
                             << ranks << " ranks; -1 means none";
  llvm::SmallDenseSet<int64_t> seen;
  for (int64_t source : from) {
    if (source < -1 || source >= ranks)
      return op->emitOpError() << "receives from rank " << source
                               << ", expected -1 or a rank below " << ranks;
    if (source >= 0 && !seen.insert(source).second)
      return op->emitOpError() << "receives from rank " << source
                               << " twice, expected each rank at most once" << advice;
  }
  return success();
}

LogicalResult CollectivePermuteOp::verify() {
  return detail::verifySources(*this, getFrom(), getMesh(*this).getSize(getAxes()),
                               "; use 'fsdp.broadcast'");
}

int64_t BroadcastOp::getReceivedBytes() { return bytesOf(getResult()); }
nn::ShapeArgument BroadcastOp::getRequest() {
  return nn::ShapeArgument("Root").field("rank", static_cast<int64_t>(getFrom()));
}
LogicalResult BroadcastOp::verify() {
  int64_t ranks = getMesh(*this).getSize(getAxes());
  if (getFrom() >= static_cast<uint64_t>(ranks))
    return emitOpError() << "receives from rank " << static_cast<int64_t>(getFrom())
                         << ", expected a rank below " << ranks;
  return success();
}

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

std::optional<int64_t> mlir::fsdp::getPeer(Operation *transfer, int64_t index) {
  auto collective = cast<CollectiveOpInterface>(transfer);
  const int64_t peer = index + collective.getPeerOffset(), ranks = collective.getGroupSize();
  if (collective.isInRing())
    return (peer + ranks) % ranks;
  if (peer < 0 || peer >= ranks)
    return std::nullopt;
  return peer;
}

/// Whether ranks of `role` have the position `index` in a group over `axes`.
static bool isOfRole(MeshAttr mesh, DictionaryAttr role, ArrayRef<StringAttr> axes, int64_t index) {
  for (StringAttr axis : llvm::reverse(axes)) {
    int64_t size = mesh.getAxisSize(axis);
    if (auto coordinate = role.getAs<IntegerAttr>(axis);
        coordinate && coordinate.getInt() != index % size)
      return false;
    index /= size;
  }
  return true;
}

static LogicalResult verifyTransfer(Operation *op) {
  auto collective = cast<CollectiveOpInterface>(op);
  int64_t offset = collective.getPeerOffset(), ranks = collective.getGroupSize();
  if (offset == 0)
    return op->emitOpError() << "has offset 0, which is the rank itself; use the value directly";
  if (ranks == 1)
    return op->emitOpError() << "has offset " << offset
                             << " over 1 rank, but a transfer over a single rank has no peer, "
                                "expected axes with at least 2 ranks; "
                             << (collective.getSendValue()
                                     ? "remove the op"
                                     : "use zeros, the value it would receive");
  if (offset <= -ranks || offset >= ranks)
    return op->emitOpError() << "has offset " << offset << " over " << ranks << " ranks, expected "
                             << 1 - ranks << " to " << ranks - 1;
  auto program = op->getParentOfType<ProgramOp>();
  if (!program)
    return success();
  MeshAttr mesh = getMesh(op);
  SmallVector<StringAttr> axes = collective.getAxes();
  for (int64_t index = 0; index < ranks; ++index)
    if (getPeer(op, index) && isOfRole(mesh, program.getRole(), axes, index))
      return success();
  return op->emitOpError()
         << "has offset " << offset << ", but no rank of program '" << program.getSymName()
         << "' has a peer at that offset among the " << ranks
         << " ranks of its group; remove the op, or use the offset of a rank that exists";
}

/// In the communicator of a transfer the sender is rank 0, and the receiver rank 1.
static nn::ShapeArgument peerAt(int64_t offset) {
  return nn::ShapeArgument("Peer").field("offset", offset);
}

nn::ShapeArgument SendOp::getRequest() { return peerAt(1); }
int64_t SendOp::getPeerOffset() { return static_cast<int64_t>(getOffset()); }
bool SendOp::isInRing() { return getRing(); }
int64_t SendOp::getReceivedBytes() { return 0; }
LogicalResult SendOp::verify() { return verifyTransfer(*this); }

nn::ShapeArgument ReceiveOp::getRequest() { return peerAt(-1); }
int64_t ReceiveOp::getPeerOffset() { return static_cast<int64_t>(getOffset()); }
bool ReceiveOp::isInRing() { return getRing(); }
int64_t ReceiveOp::getReceivedBytes() { return bytesOf(getResult()); }
LogicalResult ReceiveOp::verify() { return verifyTransfer(*this); }
