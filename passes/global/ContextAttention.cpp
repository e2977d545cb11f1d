//===- ContextAttention.cpp - kinds of attention and order of positions ---===//
//
// How the ranks of a sequence attend, and in which order positions are split.
//
//===----------------------------------------------------------------------===//

#include "dialect/fsdp/AxisParts.h"
#include "dialect/fsdp/AxisRoles.h"
#include "passes/global/StepSplitter.h"
#include "passes/sharding/MeshAxes.h"
#include "llvm/Support/FormatVariadic.h"
#include <numeric>

using namespace mlir;
using namespace mlir::fsdp;

bool mlir::fsdp::dividesHeads(const nn::AttentionLayout &sizes, int64_t ranks) {
  if (sizes.groups == sizes.heads)
    return ranks <= sizes.heads;
  return sizes.groups % ranks == 0 || (ranks % sizes.groups == 0 && sizes.heads % ranks == 0);
}

std::string mlir::fsdp::describeSharedHeads(const nn::AttentionLayout &sizes, int64_t ranks) {
  const std::string number = std::to_string(ranks);
  return sizes.groups == sizes.heads ? "at least " + number + " heads"
                                     : "a multiple of " + number + " groups, or a multiple of " +
                                           number + " heads in groups that divide " + number;
}

/// The advice for a mesh whose ranks cannot share the heads.
std::string StepSplitter::findFittingSizes(const nn::AttentionLayout &sizes) const {
  const int64_t others = mesh.getSize(getHeadAxes()) / getParts(); // that split heads besides
  SmallVector<std::string> contexts, products;
  for (int64_t context = 2; context <= sizes.heads; ++context) {
    if (dividesHeads(sizes, context * others))
      contexts.push_back(std::to_string(context));
    for (int64_t tensor = 1; others > 1 && tensor * context <= sizes.heads; ++tensor)
      if (dividesHeads(sizes, tensor * context))
        products.push_back(std::to_string(tensor) + "*" + std::to_string(context));
  }
  const std::string context = axisOf(axes.front()).str();
  if (!contexts.empty())
    return "give the axis '" + context + "' a size of " + llvm::join(contexts, ", ");
  if (!products.empty())
    return "give the axes '" + getLayerAxis().str() + "' and '" + context + "' the sizes " +
           llvm::join(products, ", ");
  return "split the batch over these ranks instead";
}

/// The axes that split heads where attention has all positions: weights split heads first.
SmallVector<StringAttr> StepSplitter::getHeadAxes() const {
  SmallVector<StringAttr> heads;
  for (StringAttr axis : mesh.getAxisNames())
    if (getAxisRole(axis).splitsLayers && mesh.getAxisSize(axis) > 1)
      heads.push_back(axis);
  llvm::append_range(heads, axes);
  return heads;
}

/// Whether queries and keys have the positions of the step's sequences.
bool StepSplitter::isOverPositions(nn::AttentionOp attention) {
  const int64_t dim = nn::attentionDim(attention.getOrder(), 't');
  return llvm::all_of(attention.getTensors(),
                      [&](Value input) { return positions.contains(input, dim); });
}

/// Whether queries or keys have them.
bool StepSplitter::hasPositionsOf(nn::AttentionOp attention) {
  const int64_t dim = nn::attentionDim(attention.getOrder(), 't');
  return llvm::any_of(attention.getTensors(),
                      [&](Value input) { return positions.contains(input, dim); });
}

/// Why attention cannot be of `kind`, which splits positions; empty where it can.
std::string StepSplitter::findFault(nn::AttentionOp attention, AttentionKind kind) {
  const nn::AttentionLayout sizes = attention.getLayout();
  if (!isOverPositions(attention) || sizes.queries != sizes.keys)
    return "takes keys and values of another sequence than its queries, got " +
           std::to_string(sizes.queries) + " queries and " + std::to_string(sizes.keys) + " keys" +
           (attention.getDocuments() ? " with the ids of their documents" : "") +
           ", expected those of one sequence; " +
           (dividesHeads(sizes, mesh.getSize(getHeadAxes())) ? "use all-to-all"
                                                             : findFittingSizes(sizes));
  if (kind == AttentionKind::ring && (attention.getBias() || attention.getDocuments()))
    return std::string("has ") + (attention.getBias() ? "a bias" : "the ids of documents") +
           ", for which a rank needs all keys, expected causal masks, windows and caps alone; use "
           "gather or all-to-all";
  // Keys that are padding are behind all queries that count.
  const bool isMasked = kind == AttentionKind::ring ? attention.getCausal()
                        : attention.getDocuments()  ? attention.getCausal() && !attention.getBias()
                                                    : true;
  if (sizes.queries % getParts() != 0 && !isMasked)
    return "has " + std::to_string(sizes.queries) + " positions, of which " +
           std::to_string(getParts()) + " ranks have padding, and " +
           (attention.getCausal() ? "documents with a bias" : "no causal mask") +
           ", expected a multiple of " + std::to_string(getParts()) + "; use " +
           (kind == AttentionKind::ring ? "gather or " : "") + "all-to-all, or another length";
  return "";
}

/// By heads where the ranks divide these, else in a ring, which keeps the fewest keys and values of
/// other ranks, or by a gather.
FailureOr<AttentionKind> StepSplitter::choose(nn::AttentionOp attention) {
  if (wanted && *wanted != AttentionKind::allToAll)
    if (std::string fault = findFault(attention, *wanted); !fault.empty())
      return attention.emitError() << "--context-attention=" << attentionKindNames[int(*wanted)]
                                   << ": attention " << fault;
  if (wanted)
    return *wanted;
  const nn::AttentionLayout sizes = attention.getLayout();
  const int64_t parts = mesh.getSize(getHeadAxes());
  if (sizes.heads % parts == 0 && sizes.groups % parts == 0)
    return AttentionKind::allToAll;
  for (AttentionKind kind : {AttentionKind::ring, AttentionKind::gather})
    if (findFault(attention, kind).empty())
      return kind;
  return AttentionKind::allToAll;
}

/// Once for each kind of attention in training.
void StepSplitter::say(nn::AttentionOp attention, AttentionKind kind) {
  if (!kinds.insert(kind).second || step.getKind() != StepKind::train)
    return;
  const nn::AttentionLayout sizes = attention.getLayout();
  InFlightDiagnostic diag = attention.emitRemark()
                            << "attention over " << spell(axes) << "=" << getParts() << ": "
                            << attentionKindNames[int(kind)];
  if (kind == AttentionKind::allToAll) {
    const int64_t parts = mesh.getSize(getHeadAxes());
    diag << ", from positions to heads and back (" << llvm::divideCeil(sizes.heads, parts) << " of "
         << sizes.heads << " heads on each rank";
    if (parts > sizes.groups)
      diag << ", the keys and values of a group on " << parts / sizes.groups;
    diag << ")";
    return;
  }
  diag << (kind == AttentionKind::ring ? ", keys and values from rank to rank ("
                                       : ", keys and values of all ranks on each (")
       << llvm::divideCeil(sizes.queries, getParts()) << " of " << sizes.queries
       << " queries on each rank)" << orderText;
}

/// Why positions cannot be in zigzag order, at an op, as the end of a sentence; no op where they
/// can.
std::pair<Operation *, std::string> StepSplitter::findOrderFault() {
  if (attentions.empty())
    return {step, "there is no attention to balance"};
  for (auto [attention, kind] : attentions) {
    nn::AttentionOp op = attention;
    const int64_t count = op.getLayout().queries;
    if (kind == AttentionKind::allToAll)
      return {op, "attention by all-to-all has all positions on each rank"};
    if (!op.getCausal())
      return {op, "attention is not causal, so that ranks compute as much as each other"};
    if (op.getBias())
      return {op, "attention has a bias, whose keys are in the order of positions"};
    if (count % (2 * getParts()) != 0)
      return {
          op,
          (Twine(2 * getParts()) + " chunks do not divide " + Twine(count) + " positions").str()};
  }
  if (auto fault = sequenceOrder.findFault())
    return {fault->first, fault->second + " depends on the order of positions"};
  return {nullptr, ""};
}

/// By the scores that the busiest rank computes, of all attention by positions.
LogicalResult StepSplitter::chooseOrder() {
  SmallVector<double> scores[2] = {SmallVector<double>(getParts()),
                                   SmallVector<double>(getParts())};
  bool isByPositions = false;
  for (auto [attention, kind] : attentions) {
    nn::AttentionOp op = attention;
    isByPositions |= kind != AttentionKind::allToAll;
    if (!op.getCausal() || kind == AttentionKind::allToAll)
      continue;
    const nn::AttentionLayout sizes = op.getLayout();
    for (PositionOrder order : {PositionOrder::zigzag, PositionOrder::contiguous})
      for (auto [sum, count] : llvm::zip_equal(
               scores[int(order)],
               countScores(sizes.queries, static_cast<int64_t>(op.getWindow().value_or(0)),
                           getParts(), order == PositionOrder::zigzag, bool(op.getBias()))))
        sum += count * static_cast<double>(sizes.heads * sizes.width);
  }
  auto balance = [&](PositionOrder order) {
    const SmallVector<double> &ranks = scores[int(order)];
    const double sum = std::accumulate(ranks.begin(), ranks.end(), 0.0);
    return sum == 0 ? 1 : *llvm::max_element(ranks) * static_cast<double>(ranks.size()) / sum;
  };
  const double even = balance(PositionOrder::zigzag), uneven = balance(PositionOrder::contiguous);
  const bool isNamed = wantedOrder == PositionOrder::zigzag;
  const bool isBetter = even < uneven;
  if (isNamed || (!wantedOrder && isBetter)) {
    sequenceOrder.findWhole(/*inOrder=*/true);
    auto [op, fault] = findOrderFault();
    if (op && isNamed)
      return op->emitError() << "--context-order=zigzag: " << fault
                             << "; use --context-order=contiguous, or auto";
    zigzag = !op;
    if (op)
      orderText = "; positions in contiguous order, as " + fault;
  }
  if (!zigzag)
    sequenceOrder.findWhole(/*inOrder=*/false);
  if (!isByPositions)
    return success();
  if (orderText.empty())
    orderText =
        std::string("; positions in ") + positionOrderNames[int(getOrder())].str() + " order";
  orderText += llvm::formatv(", the busiest rank computing {0:f2} times the mean of scores",
                             zigzag ? even : uneven);
  if (zigzag)
    orderText += llvm::formatv(" ({0:f2} in contiguous order)", uneven);
  return success();
}
