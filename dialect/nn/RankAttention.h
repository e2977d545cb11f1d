//===- RankAttention.h - attention of a rank to keys of others --*- C++ -*-===//
//
// Each rank has the same number of positions, consecutive ones, the last of which may be padding,
// or two chunks in zigzag order, with their queries, keys and values. From the parts in this file
// SplitAttention builds the attention of all ranks together.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_NN_RANKATTENTION_H
#define DIALECT_NN_RANKATTENTION_H

#include "dialect/nn/NNDialect.h"
#include "dialect/nn/Precision.h"
#include "dialect/nn/Zigzag.h"
#include <array>

namespace mlir::nn::detail {

/// Queries, keys and values, or their gradients.
struct AttentionTensors {
  Value q, k, v;
};

/// The attention of queries to some of the keys, in the type of sums.
struct AttentionState {
  Value out, logSumExp;
};

/// Queries of a rank and the other operands of a gradient for them: `out`, `log_sum_exp` and
/// `d_out`.
struct QueryRows {
  Value q;
  SmallVector<Value, 3> others;
};

/// A pair of chunks in zigzag order: the numbers of the query's and the key's chunk of a rank, 0 or
/// 1.
struct ChunkPair {
  int64_t query, key;
};

/// `Op`, an attention or a gradient of one, on a rank that has `operands`.
template <typename Op> class RankAttention {
public:
  RankAttention(Op op, OpBuilder &builder, ValueRange operands, FactorShards &shards)
      : op(op), builder(builder), loc(op.getLoc()), shards(shards),
        order(attentionOutOrder(op.getOrder())) {
    // Positions behind the last have zeros, so that all they compute is finite, and their gradients
    // 0.
    auto masked = [&](Value value, int64_t dim) { return shards.masked(value, dim, 0); };
    const size_t tensors = op.getTensors().size();
    SmallVector<Value> all;
    for (Value value : operands.take_front(tensors))
      all.push_back(masked(value, attentionDim(op.getOrder(), 't')));
    own = unpack(all);
    ValueRange rest = operands.drop_front(tensors);
    if (op.getBias()) {
      bias = masked(rest.front(), 1);
      rest = rest.drop_front();
    }
    if (op.getDocuments()) {
      ids = rest.front();
      rest = rest.drop_front();
    }
    for (auto [index, value] : llvm::enumerate(rest)) // log_sum_exp is (batch, heads, queries)
      others.push_back(masked(value, index == 1 ? 2 : positionDim()));
  }

  /// The keys and values of all ranks, gathered, and the ids of their documents.
  AttentionTensors gatherKeys() const {
    Value k = gather(own.k);
    return {own.q, k, gather(own.v)};
  }
  Value gatherIds() const { return ids ? shards.gather(ids, 1) : Value(); }
  /// The key at the position of the first query of each rank then.
  SmallVector<int64_t> placesAmongAll() const {
    return llvm::map_to_vector(llvm::seq<int64_t>(shards.getRanks()),
                               [&](int64_t rank) { return rank * getPositions(); });
  }

  /// The keys and values that the rank `distance` before this one has.
  AttentionTensors ofRankBefore(const AttentionTensors &from, int64_t distance) const {
    Value k = shards.ofRankBefore(from.k, distance);
    return {from.q, k, shards.ofRankBefore(from.v, distance)};
  }
  /// The key at the position of the first query of each rank, if the keys are its own, those of the
  /// rank `distance` before it; nothing for this rank's own.
  SmallVector<int64_t> placesBehind(int64_t distance) const {
    SmallVector<int64_t> places;
    const int64_t ranks = shards.getRanks();
    if (distance != 0)
      for (int64_t rank = 0; rank < ranks; ++rank)
        places.push_back((rank < distance ? distance - ranks : distance) * getPositions());
    return places;
  }

  /// The largest distance at which some query sees a key.
  int64_t lastDistance() const {
    const int64_t all = shards.getRanks() - 1;
    if (!op.getWindow())
      return all;
    // The first query of a rank sees this many keys before its own.
    const int64_t before = static_cast<int64_t>(*op.getWindow()) - 1;
    return std::min<int64_t>(llvm::divideCeil(before, getPositions()), all);
  }

  /// Attention to the keys of `parts`, the first query at the key `places` of each rank.
  AttentionOp attend(const AttentionTensors &parts, ArrayRef<int64_t> places,
                     Value allIds = Value()) const {
    auto q = cast<RankedTensorType>(parts.q.getType());
    Type sums =
        RankedTensorType::get({q.getDimSize(attentionDim(order, 'b')),
                               q.getDimSize(attentionDim(order, 'h')), q.getDimSize(positionDim())},
                              getElementTypeOrSelf(getSumType(q)));
    return AttentionOp::create(builder, loc, TypeRange{q, sums}, orderAttr(), inputs(parts, allIds),
                               op.getScaleAttr(), op.getCausalAttr(), op.getWindowAttr(),
                               op.getSoftcapAttr(), bias ? builder.getUnitAttr() : UnitAttr(),
                               op.getDocumentsAttr(), KeyExchangeAttr(), IntegerAttr(),
                               atAttr(places), overAttr(places));
  }

  /// Its gradients, in the type of sums, where `others` are those of the queries of `parts`.
  AttentionTensors attendGrad(const AttentionTensors &parts, ValueRange others,
                              ArrayRef<int64_t> places, Value allIds = Value()) const {
    Type types[] = {parts.q.getType(), parts.k.getType(), parts.v.getType()};
    auto grad = AttentionGradOp::create(
        builder, loc, types, orderAttr(), inputs(parts, allIds), others[0], others[1], others[2],
        op.getScaleAttr(), op.getCausalAttr(), op.getWindowAttr(), op.getSoftcapAttr(),
        bias ? builder.getUnitAttr() : UnitAttr(), op.getDocumentsAttr(), KeyExchangeAttr(),
        IntegerAttr(), atAttr(places), overAttr(places));
    Value q = widen(grad.getGradients()[0]), k = widen(grad.getGradients()[1]);
    return {q, k, widen(grad.getGradients()[2])};
  }

  AttentionTensors attendGrad(const AttentionTensors &parts, ArrayRef<int64_t> places,
                              Value allIds = Value()) const {
    return attendGrad(parts, others, places, allIds);
  }
  AttentionBiasGradOp attendBiasGrad(Type type, const AttentionTensors &parts,
                                     ArrayRef<int64_t> places, Value allIds) const {
    return AttentionBiasGradOp::create(
        builder, loc, type, orderAttr(), inputs(parts, allIds), others[0], others[1], others[2],
        op.getScaleAttr(), op.getCausalAttr(), op.getWindowAttr(), op.getSoftcapAttr(),
        op.getDocumentsAttr(), KeyExchangeAttr(), atAttr(places), overAttr(places));
  }

  /// The attention of the queries to the keys of both: the description of nn.attention has the
  /// formulas. A query sees a key of its own rank, so that no maximum is -infinity.
  AttentionState merge(const AttentionState &a, const AttentionState &b) const {
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

  AttentionState stateOf(AttentionOp block) const {
    return {widen(block.getOut()), block.getLogSumExp()};
  }
  /// In zigzag order: the chunks of a rank, 0 and 1, of a value whose dimension `dim` are
  /// positions.
  Value split(Value value, int64_t dim) const { return splitChunks(builder, loc, value, dim, 2); }
  Value split(Value value) const { return split(value, positionDim()); }
  Value chunk(Value chunks, int64_t index) const { return takeChunk(builder, loc, chunks, index); }
  std::array<QueryRows, 2> splitQueries() const {
    std::array<QueryRows, 2> rows;
    auto add = [&](Value value, int64_t dim, llvm::function_ref<void(QueryRows &, Value)> take) {
      Value chunks = split(value, dim);
      for (int64_t half : {0, 1})
        take(rows[half], chunk(chunks, half));
    };
    add(own.q, positionDim(), [](QueryRows &row, Value part) { row.q = part; });
    for (auto [index, value] : llvm::enumerate(others))
      add(value, index == 1 ? 2 : positionDim(), // log_sum_exp is (batch, heads, queries)
          [](QueryRows &row, Value part) { row.others.push_back(part); });
    return rows;
  }

  /// The opposite, of the values of both chunks.
  Value join(Value first, Value second, int64_t dim) const {
    return mergeChunks(builder, loc, stack(first, second), dim);
  }
  Value join(Value first, Value second) const { return join(first, second, positionDim()); }
  Value stack(Value first, Value second) const {
    return stackChunks(builder, loc, {first, second});
  }
  /// A sum for both chunks of keys of a rank, 0 for one that no query sees.
  Value stackSums(std::array<Value, 2> sums) const {
    const Type type = (sums[0] ? sums[0] : sums[1]).getType();
    for (Value &sum : sums)
      if (!sum)
        sum = createSplat(builder, loc, type, 0);
    return stack(sums[0], sums[1]);
  }

  /// The keys, values or ids of all ranks in the order of their positions, of two chunks each, and
  /// the sum over ranks of a gradient of them, of which each keeps its two chunks.
  Value gatherChunks(Value value, int64_t dim) const {
    Value all = shards.gather(split(value, dim), 0);
    return mergeChunks(builder, loc, fromZigzagChunks(builder, loc, all, shards.getRanks()), dim);
  }
  Value gatherIdsInOrder() const { return ids ? gatherChunks(ids, 1) : Value(); }
  Value scatterChunks(Value gradient) const {
    const int64_t ranks = shards.getRanks();
    Value chunks = splitChunks(builder, loc, gradient, positionDim(), 2 * ranks);
    Value own = shards.scatterSum(toZigzagChunks(builder, loc, chunks, ranks), 0);
    return mergeChunks(builder, loc, own, positionDim());
  }

  /// The chunk of all at the first query of each rank's chunk `half`, in keys.
  SmallVector<int64_t> placesOfChunk(int64_t half) const {
    const int64_t ranks = shards.getRanks();
    return llvm::map_to_vector(llvm::seq<int64_t>(ranks), [&](int64_t rank) {
      return zigzagChunk(rank, half, ranks) * getChunk();
    });
  }

  /// The key at the position of the first query of each rank, of a pair of chunks, if the keys are
  /// those of the rank `distance` before it; nothing where no rank sees a key.
  std::optional<SmallVector<int64_t>> placesOf(ChunkPair pair, int64_t distance) const {
    const int64_t ranks = shards.getRanks(), length = getChunk();
    SmallVector<int64_t> places;
    bool isSeen = false;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const int64_t owner = (rank + ranks - distance) % ranks;
      const int64_t place =
          (zigzagChunk(rank, pair.query, ranks) - zigzagChunk(owner, pair.key, ranks)) * length;
      places.push_back(place);
      // The last query sees the first key, and in a window the first query the last key.
      isSeen |= place > -length &&
                (!op.getWindow() || place - static_cast<int64_t>(*op.getWindow()) < length - 1);
    }
    return isSeen ? std::optional(places) : std::nullopt;
  }

  /// The pairs that some rank sees at `distance`, each query's own chunk first.
  SmallVector<std::pair<ChunkPair, SmallVector<int64_t>>> getPairs(int64_t distance) const {
    SmallVector<std::pair<ChunkPair, SmallVector<int64_t>>> pairs;
    for (ChunkPair pair : {ChunkPair{0, 0}, {1, 1}, {1, 0}, {0, 1}})
      if (std::optional<SmallVector<int64_t>> places = placesOf(pair, distance)) {
        if (llvm::all_of(*places, [](int64_t place) { return place == 0; }))
          places->clear(); // the rank's own keys, at the places of its queries
        pairs.push_back({pair, *places});
      }
    return pairs;
  }

  /// The largest distance at which some rank sees a pair.
  int64_t lastDistanceOfPairs() const {
    int64_t last = shards.getRanks() - 1;
    while (last > 0 && getPairs(last).empty())
      --last;
    return last;
  }

  /// Keys and values as chunks, which are sent together.
  AttentionTensors splitKeys() const {
    Value k = split(own.k);
    return {Value(), k, split(own.v)};
  }

  /// The gradients as the op has them: of its types, and in one tensor where its operand is one.
  SmallVector<Value> pack(const AttentionTensors &gradients, TypeRange types) const {
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
      value = RearrangeOp::create(builder, loc, type.clone(shape), order + " -> " + onePart(),
                                  value, DictionaryAttr());
    return {ConcatOp::create(builder, loc, type, values, dim)};
  }

  Value narrow(Value value, Type like) const {
    return narrowTo(builder, value, getElementTypeOrSelf(like));
  }
  Value add(Value a, Value b) const { return arith::AddFOp::create(builder, loc, a, b); }
  /// The sum over ranks of a gradient of all keys, of which each keeps its own.
  Value scatter(Value gradient) const {
    auto type = cast<RankedTensorType>(gradient.getType());
    if (leavesPaddingOut()) {
      SmallVector<int64_t> shape(type.getShape());
      shape[positionDim()] = getPositions() * shards.getRanks();
      gradient = PadOp::create(builder, loc, type.clone(shape), gradient, positionDim(), 0);
    }
    return shards.scatterSum(gradient, positionDim());
  }

  /// A result of attention, with zeros behind the last position.
  Value masked(Value result, int64_t dim) const { return shards.masked(result, dim, 0); }

  int64_t positionDim() const { return attentionDim(order, 't'); }

  AttentionTensors own;

private:
  int64_t getPositions() const {
    return cast<RankedTensorType>(own.q.getType()).getDimSize(positionDim());
  }
  int64_t getChunk() const { return getPositions() / 2; }
  /// The gathered keys or values that count: no query sees padding before it under a causal mask,
  /// but a bias has none.
  Value gather(Value keys) const {
    Value all = shards.gather(keys, positionDim());
    auto type = cast<RankedTensorType>(all.getType());
    if (!leavesPaddingOut())
      return all;
    SmallVector<int64_t> shape(type.getShape());
    shape[positionDim()] = shards.getSize();
    return SliceOp::create(builder, loc, type.clone(shape), all, positionDim(), 0);
  }

  bool leavesPaddingOut() const {
    return (!op.getCausal() || bias) && getPositions() * shards.getRanks() != shards.getSize();
  }
  /// The order of a part of the one tensor, as a notation.
  std::string onePart() const {
    std::string notation = op.getOrder().str();
    notation[2 * attentionDim(notation, 'n')] = '1';
    return notation;
  }

  AttentionTensors unpack(ValueRange tensors) const {
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

  Value widen(Value value) const {
    Type type = getSumType(value.getType());
    return type == value.getType() ? value
                                   : Value(arith::ExtFOp::create(builder, loc, type, value));
  }

  SmallVector<Value> inputs(const AttentionTensors &parts, Value allIds) const {
    SmallVector<Value> values = {parts.q, parts.k, parts.v};
    if (bias)
      values.push_back(bias);
    if (allIds)
      values.push_back(allIds);
    return values;
  }

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

} // namespace mlir::nn::detail

#endif // DIALECT_NN_RANKATTENTION_H
