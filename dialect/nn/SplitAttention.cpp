//===- SplitAttention.cpp - attention of ranks with parts of a sequence ---===//
//
// The attention that `exchange` of nn.attention specifies, built from attention to keys that are at
// other places than the queries, from arithmetic, and from exchanges between ranks.
//
//===----------------------------------------------------------------------===//

#include "dialect/nn/RankAttention.h"

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::nn::detail;

//===----------------------------------------------------------------------===//
// Zigzag order
//===----------------------------------------------------------------------===//

/// The result and the logarithms of a rank, in the order of its positions.
static SmallVector<Value> attendZigzag(RankAttention<AttentionOp> &rank, KeyExchange exchange,
                                       int64_t ranks, TypeRange types) {
  std::array<QueryRows, 2> queries = rank.splitQueries();
  std::array<AttentionState, 2> states;
  if (exchange == KeyExchange::gather) {
    const int64_t dim = rank.positionDim();
    Value k = rank.gatherChunks(rank.own.k, dim), v = rank.gatherChunks(rank.own.v, dim),
          ids = rank.gatherIdsInOrder();
    for (int64_t half : {0, 1}) {
      auto made = rank.attend({queries[half].q, k, v}, rank.placesOfChunk(half), ids);
      states[half] = {made.getOut(), made.getLogSumExp()};
    }
  } else {
    AttentionTensors block = rank.splitKeys();
    const int64_t last = rank.lastDistanceOfPairs();
    for (int64_t distance = 0; distance <= last; ++distance) {
      AttentionTensors next;
      if (distance < last)
        next = rank.ofRankBefore(block, 1);
      for (const auto &[pair, places] : rank.getPairs(distance)) {
        Value k = rank.chunk(block.k, pair.key), v = rank.chunk(block.v, pair.key);
        AttentionState seen = rank.stateOf(rank.attend({queries[pair.query].q, k, v}, places));
        AttentionState &state = states[pair.query];
        state = state.out ? rank.merge(state, seen) : seen;
      }
      block = next;
    }
  }
  Value first = rank.narrow(states[0].out, types[0]), second = rank.narrow(states[1].out, types[0]);
  Value out = rank.join(first, second);
  return {out, rank.join(states[0].logSumExp, states[1].logSumExp, 2)};
}

/// The gradients of a rank, in the type of sums.
static AttentionTensors attendGradZigzag(RankAttention<AttentionGradOp> &rank, KeyExchange exchange,
                                         int64_t ranks) {
  std::array<QueryRows, 2> queries = rank.splitQueries();
  std::array<Value, 2> dQ;
  auto addTo = [&](Value &sum, Value value) { sum = sum ? rank.add(sum, value) : value; };
  if (exchange == KeyExchange::gather) {
    const int64_t dim = rank.positionDim();
    Value k = rank.gatherChunks(rank.own.k, dim), v = rank.gatherChunks(rank.own.v, dim),
          ids = rank.gatherIdsInOrder(), dK, dV;
    for (int64_t half : {0, 1}) {
      const QueryRows &rows = queries[half];
      AttentionTensors d =
          rank.attendGrad({rows.q, k, v}, rows.others, rank.placesOfChunk(half), ids);
      dQ[half] = d.q;
      addTo(dK, d.k);
      addTo(dV, d.v);
    }
    Value ownK = rank.scatterChunks(dK);
    return {rank.join(dQ[0], dQ[1]), ownK, rank.scatterChunks(dV)};
  }
  // As in a ring of consecutive positions: sums go with their block, one rank after it.
  AttentionTensors block = rank.splitKeys(), sums;
  std::array<Value, 2> ownK, ownV;
  const int64_t last = rank.lastDistanceOfPairs();
  for (int64_t distance = 0; distance <= last; ++distance) {
    AttentionTensors next;
    if (distance < last)
      next = rank.ofRankBefore(block, 1);
    std::array<Value, 2> dK, dV;
    if (distance > 1) {
      sums = rank.ofRankBefore(sums, 1);
      for (int64_t half : {0, 1}) {
        dK[half] = rank.chunk(sums.k, half);
        dV[half] = rank.chunk(sums.v, half);
      }
    }
    for (const auto &[pair, places] : rank.getPairs(distance)) {
      const QueryRows &rows = queries[pair.query];
      Value k = rank.chunk(block.k, pair.key), v = rank.chunk(block.v, pair.key);
      AttentionTensors d = rank.attendGrad({rows.q, k, v}, rows.others, places);
      addTo(dQ[pair.query], d.q);
      addTo(dK[pair.key], d.k);
      addTo(dV[pair.key], d.v);
    }
    if (distance == 0)
      ownK = dK, ownV = dV;
    else
      sums = {Value(), rank.stackSums(dK), rank.stackSums(dV)};
    block = next;
  }
  if (last > 0) {
    AttentionTensors home = rank.ofRankBefore(sums, ranks - last);
    for (int64_t half : {0, 1}) {
      addTo(ownK[half], rank.chunk(home.k, half));
      addTo(ownV[half], rank.chunk(home.v, half));
    }
  }
  Value q = rank.join(dQ[0], dQ[1]), k = rank.join(ownK[0], ownK[1]);
  return {q, k, rank.join(ownV[0], ownV[1])};
}

//===----------------------------------------------------------------------===//
// Splitting of the ops
//===----------------------------------------------------------------------===//

int64_t AttentionOp::getSplitRanks() { return static_cast<int64_t>(getZigzag().value_or(0)); }
int64_t AttentionGradOp::getSplitRanks() { return static_cast<int64_t>(getZigzag().value_or(0)); }
/// Where keys that are padding cannot be told from others: by no mask, or not by one number of keys
/// for ids and bias.
template <typename Op> static bool attendsToPadding(Op op) {
  return op.getDocuments() ? !op.getCausal() || op.getBias()
                           : !op.getCausal() && op.getExchange() == KeyExchange::ring;
}

bool AttentionOp::needsEvenParts() { return attendsToPadding(*this); }
bool AttentionGradOp::needsEvenParts() { return attendsToPadding(*this); }
bool AttentionBiasGradOp::needsEvenParts() { return attendsToPadding(*this); }

SmallVector<Value> AttentionOp::buildSplit(OpBuilder &builder, ValueRange operands, TypeRange types,
                                           FactorShards &shards) {
  RankAttention<AttentionOp> rank(*this, builder, operands, shards);
  if (getZigzag())
    return attendZigzag(rank, *getExchange(), shards.getRanks(), types);
  if (*getExchange() == KeyExchange::gather) {
    AttentionTensors all = rank.gatherKeys();
    auto made = rank.attend(all, rank.placesAmongAll(), rank.gatherIds());
    Value out = rank.masked(made.getOut(), rank.positionDim());
    return {out, rank.masked(made.getLogSumExp(), 2)};
  }
  // Each block is sent on before it is attended to, so that the next one comes meanwhile.
  AttentionTensors block = rank.own;
  AttentionState state;
  const int64_t last = rank.lastDistance();
  for (int64_t distance = 0; distance <= last; ++distance) {
    AttentionTensors next;
    if (distance < last)
      next = rank.ofRankBefore(block, 1);
    AttentionState seen = rank.stateOf(rank.attend(block, rank.placesBehind(distance)));
    state = distance == 0 ? seen : rank.merge(state, seen);
    block = next;
  }
  Value out = rank.masked(rank.narrow(state.out, types[0]), rank.positionDim());
  return {out, rank.masked(state.logSumExp, 2)};
}

SmallVector<Value> AttentionGradOp::buildSplit(OpBuilder &builder, ValueRange operands,
                                               TypeRange types, FactorShards &shards) {
  RankAttention<AttentionGradOp> rank(*this, builder, operands, shards);
  if (getZigzag())
    return rank.pack(attendGradZigzag(rank, *getExchange(), shards.getRanks()), types);
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
