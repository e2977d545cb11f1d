//===- SplitAttention.cpp - attention of ranks with parts of a sequence ---===//
//
// Each rank has as many consecutive positions, with their queries, keys and values. What `exchange`
// of nn.attention says is built here: of attention to keys that are at other places than the
// queries, of arithmetic, and of what ranks exchange.
//
//===----------------------------------------------------------------------===//

#include "dialect/nn/NNDialect.h"
#include "dialect/nn/Precision.h"

using namespace mlir;
using namespace mlir::nn;

namespace {

/// Queries, keys and values, or their gradients.
struct AttentionTensors {
  Value q, k, v;
};

/// What a query has of some of the keys, in the type of sums.
struct AttentionState {
  Value out, logSumExp;
};

/// `Op`, an attention or a gradient of one, on a rank that has `operands`.
template <typename Op> class RankAttention {
public:
  RankAttention(Op op, OpBuilder &builder, ValueRange operands, FactorShards &shards);

  /// The keys and values of all ranks, gathered, and the ids of their documents.
  AttentionTensors gatherKeys() const;
  Value gatherIds() const { return ids ? shards.gather(ids, 1) : Value(); }
  /// The key at the position of the first query of each rank then.
  SmallVector<int64_t> placesAmongAll() const;

  /// The keys and values that the rank `distance` before this one has.
  AttentionTensors ofRankBefore(const AttentionTensors &from, int64_t distance) const;
  /// The key at the position of the first query of each rank, if the keys are its own, those of the
  /// rank `distance` before it; nothing for this rank's own.
  SmallVector<int64_t> placesBehind(int64_t distance) const;
  /// The largest distance at which some query sees a key.
  int64_t lastDistance() const;

  /// Attention to the keys of `parts`, the first query at the key `places` of each rank.
  AttentionOp attend(TypeRange types, const AttentionTensors &parts, ArrayRef<int64_t> places,
                     Value allIds = Value()) const;
  /// Its gradients, in the type of sums.
  AttentionTensors attendGrad(const AttentionTensors &parts, ArrayRef<int64_t> places,
                              Value allIds = Value()) const;
  AttentionBiasGradOp attendBiasGrad(Type type, const AttentionTensors &parts,
                                     ArrayRef<int64_t> places, Value allIds) const;

  AttentionState merge(const AttentionState &a, const AttentionState &b) const;
  AttentionState stateOf(AttentionOp block) const {
    return {widen(block.getOut()), block.getLogSumExp()};
  }
  /// The gradients as the op has them: of its types, and in one tensor where its operand is one.
  SmallVector<Value> pack(const AttentionTensors &gradients, TypeRange types) const;
  Value narrow(Value value, Type like) const {
    return narrowTo(builder, value, getElementTypeOrSelf(like));
  }
  Value add(Value a, Value b) const { return arith::AddFOp::create(builder, loc, a, b); }
  /// The sum over ranks of a gradient of all keys, of which each keeps its own.
  Value scatter(Value gradient) const { return shards.scatterSum(gradient, positionDim()); }

  AttentionTensors own;

private:
  int64_t positionDim() const { return attentionDim(order, 't'); }
  int64_t getPositions() const {
    return cast<RankedTensorType>(own.q.getType()).getDimSize(positionDim());
  }
  /// The order of a part of the one tensor, as a notation.
  std::string onePart() const {
    std::string notation = op.getOrder().str();
    notation[2 * attentionDim(notation, 'n')] = '1';
    return notation;
  }
  AttentionTensors unpack(ValueRange tensors) const;
  Value widen(Value value) const {
    Type type = getSumType(value.getType());
    return type == value.getType() ? value
                                   : Value(arith::ExtFOp::create(builder, loc, type, value));
  }
  SmallVector<Value> inputs(const AttentionTensors &parts, Value allIds) const;
  StringAttr orderAttr() const { return builder.getStringAttr(order); }
  DenseI64ArrayAttr atAttr(ArrayRef<int64_t> places) const {
    return places.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(places);
  }
  ArrayAttr overAttr(ArrayRef<int64_t> places) const {
    return places.empty() ? ArrayAttr() : shards.getAxes();
  }

  mutable Op op; // ops are handles, whose methods are not const
  OpBuilder &builder;
  Location loc;
  FactorShards &shards;
  std::string order; ///< of queries, keys and values apart
  Value bias, ids;
  SmallVector<Value> others; ///< of a gradient: out, log_sum_exp and d_out
};

} // namespace

template <typename Op>
RankAttention<Op>::RankAttention(Op op, OpBuilder &builder, ValueRange operands,
                                 FactorShards &shards)
    : op(op), builder(builder), loc(op.getLoc()), shards(shards),
      order(attentionOutOrder(op.getOrder())) {
  const size_t tensors = op.getTensors().size();
  own = unpack(operands.take_front(tensors));
  ValueRange rest = operands.drop_front(tensors);
  if (op.getBias()) {
    bias = rest.front();
    rest = rest.drop_front();
  }
  if (op.getDocuments()) {
    ids = rest.front();
    rest = rest.drop_front();
  }
  others.assign(rest.begin(), rest.end());
}

template <typename Op> AttentionTensors RankAttention<Op>::unpack(ValueRange tensors) const {
  const int64_t dim = attentionDim(op.getOrder(), 'n');
  if (dim < 0)
    return {tensors[0], tensors[1], tensors[2]};
  auto part = [&](int64_t index) -> Value {
    auto type = cast<RankedTensorType>(tensors[0].getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = 1;
    Value slice = SliceOp::create(builder, loc, type.clone(shape), tensors[0], dim, index);
    shape.erase(shape.begin() + dim);
    return RearrangeOp::create(builder, loc, type.clone(shape), onePart() + " -> " + order, slice,
                               DictionaryAttr());
  };
  Value q = part(0), k = part(1);
  return {q, k, part(2)};
}

template <typename Op>
SmallVector<Value> RankAttention<Op>::pack(const AttentionTensors &gradients,
                                           TypeRange types) const {
  SmallVector<Value> values;
  for (Value gradient : {gradients.q, gradients.k, gradients.v})
    values.push_back(narrow(gradient, types.front()));
  const int64_t dim = attentionDim(op.getOrder(), 'n');
  if (dim < 0)
    return values;
  auto type = cast<RankedTensorType>(types.front());
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = 1;
  for (Value &value : values)
    value = RearrangeOp::create(builder, loc, type.clone(shape), order + " -> " + onePart(), value,
                                DictionaryAttr());
  return {ConcatOp::create(builder, loc, type, values, dim)};
}

template <typename Op> AttentionTensors RankAttention<Op>::gatherKeys() const {
  Value k = shards.gather(own.k, positionDim());
  return {own.q, k, shards.gather(own.v, positionDim())};
}

template <typename Op> SmallVector<int64_t> RankAttention<Op>::placesAmongAll() const {
  return llvm::map_to_vector(llvm::seq<int64_t>(shards.getRanks()),
                             [&](int64_t rank) { return rank * getPositions(); });
}

template <typename Op>
AttentionTensors RankAttention<Op>::ofRankBefore(const AttentionTensors &from,
                                                 int64_t distance) const {
  Value k = shards.ofRankBefore(from.k, distance);
  return {from.q, k, shards.ofRankBefore(from.v, distance)};
}

template <typename Op>
SmallVector<int64_t> RankAttention<Op>::placesBehind(int64_t distance) const {
  SmallVector<int64_t> places;
  const int64_t ranks = shards.getRanks();
  if (distance != 0)
    for (int64_t rank = 0; rank < ranks; ++rank)
      places.push_back((rank < distance ? distance - ranks : distance) * getPositions());
  return places;
}

template <typename Op> int64_t RankAttention<Op>::lastDistance() const {
  const int64_t all = shards.getRanks() - 1;
  if (!op.getWindow())
    return all;
  // The first query of a rank sees this many keys before its own.
  const int64_t before = static_cast<int64_t>(*op.getWindow()) - 1;
  return std::min<int64_t>(llvm::divideCeil(before, getPositions()), all);
}

template <typename Op>
SmallVector<Value> RankAttention<Op>::inputs(const AttentionTensors &parts, Value allIds) const {
  SmallVector<Value> values = {parts.q, parts.k, parts.v};
  if (bias)
    values.push_back(bias);
  if (allIds)
    values.push_back(allIds);
  return values;
}

template <typename Op>
AttentionOp RankAttention<Op>::attend(TypeRange types, const AttentionTensors &parts,
                                      ArrayRef<int64_t> places, Value allIds) const {
  return AttentionOp::create(builder, loc, types, orderAttr(), inputs(parts, allIds),
                             op.getScaleAttr(), op.getCausalAttr(), op.getWindowAttr(),
                             op.getSoftcapAttr(), bias ? builder.getUnitAttr() : UnitAttr(),
                             op.getDocumentsAttr(), KeyExchangeAttr(), atAttr(places),
                             overAttr(places));
}

template <typename Op>
AttentionTensors RankAttention<Op>::attendGrad(const AttentionTensors &parts,
                                               ArrayRef<int64_t> places, Value allIds) const {
  Type types[] = {parts.q.getType(), parts.k.getType(), parts.v.getType()};
  auto grad = AttentionGradOp::create(
      builder, loc, types, orderAttr(), inputs(parts, allIds), others[0], others[1], others[2],
      op.getScaleAttr(), op.getCausalAttr(), op.getWindowAttr(), op.getSoftcapAttr(),
      bias ? builder.getUnitAttr() : UnitAttr(), op.getDocumentsAttr(), KeyExchangeAttr(),
      atAttr(places), overAttr(places));
  Value q = widen(grad.getGradients()[0]), k = widen(grad.getGradients()[1]);
  return {q, k, widen(grad.getGradients()[2])};
}

template <typename Op>
AttentionBiasGradOp RankAttention<Op>::attendBiasGrad(Type type, const AttentionTensors &parts,
                                                      ArrayRef<int64_t> places,
                                                      Value allIds) const {
  return AttentionBiasGradOp::create(
      builder, loc, type, orderAttr(), inputs(parts, allIds), others[0], others[1], others[2],
      op.getScaleAttr(), op.getCausalAttr(), op.getWindowAttr(), op.getSoftcapAttr(),
      op.getDocumentsAttr(), KeyExchangeAttr(), atAttr(places), overAttr(places));
}

// The formulas stand in the description of nn.attention. A query sees a key of its own rank, so
// that no maximum is -infinity.
template <typename Op>
AttentionState RankAttention<Op>::merge(const AttentionState &a, const AttentionState &b) const {
  Value top = arith::MaximumFOp::create(builder, loc, a.logSumExp, b.logSumExp);
  auto weigh = [&](const AttentionState &state) -> Value {
    return math::ExpOp::create(builder, loc,
                               arith::SubFOp::create(builder, loc, state.logSumExp, top));
  };
  Value weightA = weigh(a), weightB = weigh(b), sum = add(weightA, weightB);
  auto share = [&](const AttentionState &state, Value weight) -> Value {
    Value ofRow = arith::DivFOp::create(builder, loc, weight, sum);
    Value each = RepeatOp::create(builder, loc, state.out.getType(), "b h t -> " + order, ofRow);
    return arith::MulFOp::create(builder, loc, state.out, each);
  };
  Value shareA = share(a, weightA), out = add(shareA, share(b, weightB));
  return {out, add(top, math::LogOp::create(builder, loc, sum))};
}

bool AttentionOp::needsEvenParts() { return true; }
bool AttentionGradOp::needsEvenParts() { return true; }
bool AttentionBiasGradOp::needsEvenParts() { return true; }

SmallVector<Value> AttentionOp::buildSplit(OpBuilder &builder, ValueRange operands, TypeRange types,
                                           FactorShards &shards) {
  RankAttention<AttentionOp> rank(*this, builder, operands, shards);
  Type blockTypes[] = {rank.own.q.getType(), types[1]}; // of `out`, whose order is that of queries
  if (*getExchange() == KeyExchange::gather) {
    AttentionTensors all = rank.gatherKeys();
    auto made = rank.attend(blockTypes, all, rank.placesAmongAll(), rank.gatherIds());
    return {made.getOut(), made.getLogSumExp()};
  }
  // Each block is sent on before it is attended to, so that the next one comes meanwhile.
  AttentionTensors block = rank.own;
  AttentionState state;
  const int64_t last = rank.lastDistance();
  for (int64_t distance = 0; distance <= last; ++distance) {
    AttentionTensors next;
    if (distance < last)
      next = rank.ofRankBefore(block, 1);
    AttentionState seen = rank.stateOf(rank.attend(blockTypes, block, rank.placesBehind(distance)));
    state = distance == 0 ? seen : rank.merge(state, seen);
    block = next;
  }
  return {rank.narrow(state.out, types[0]), state.logSumExp};
}

SmallVector<Value> AttentionGradOp::buildSplit(OpBuilder &builder, ValueRange operands,
                                               TypeRange types, FactorShards &shards) {
  RankAttention<AttentionGradOp> rank(*this, builder, operands, shards);
  if (*getExchange() == KeyExchange::gather) {
    AttentionTensors all = rank.gatherKeys();
    AttentionTensors d = rank.attendGrad(all, rank.placesAmongAll(), rank.gatherIds());
    Value dK = rank.scatter(d.k);
    return rank.pack({d.q, dK, rank.scatter(d.v)}, types);
  }
  // The sums of a block's gradients go with it, from the rank behind its owner on, one rank after
  // the block itself; from the last rank to the owner, which adds its own.
  AttentionTensors block = rank.own, own, sums;
  const int64_t last = rank.lastDistance();
  for (int64_t distance = 0; distance <= last; ++distance) {
    AttentionTensors next;
    if (distance < last)
      next = rank.ofRankBefore(block, 1);
    if (distance > 1)
      sums = rank.ofRankBefore(sums, 1);
    AttentionTensors d = rank.attendGrad(block, rank.placesBehind(distance));
    if (distance == 0)
      own = d;
    else if (distance == 1)
      sums = {rank.add(own.q, d.q), d.k, d.v};
    else
      sums = {rank.add(sums.q, d.q), rank.add(sums.k, d.k), rank.add(sums.v, d.v)};
    block = next;
  }
  if (last > 0) {
    AttentionTensors home = rank.ofRankBefore(sums, shards.getRanks() - last);
    own = {sums.q, rank.add(own.k, home.k), rank.add(own.v, home.v)};
  }
  return rank.pack(own, types);
}

SmallVector<Value> AttentionBiasGradOp::buildSplit(OpBuilder &builder, ValueRange operands,
                                                   TypeRange types, FactorShards &shards) {
  RankAttention<AttentionBiasGradOp> rank(*this, builder, operands, shards);
  AttentionTensors all = rank.gatherKeys();
  return {rank.attendBiasGrad(types[0], all, rank.placesAmongAll(), rank.gatherIds())};
}
