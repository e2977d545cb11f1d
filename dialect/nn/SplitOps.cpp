//===- SplitOps.cpp - ops that rows or classes are numbered for, on a part of them ----------===//

#include "dialect/nn/NNDialect.h"

using namespace mlir;
using namespace mlir::nn;

SmallVector<Value> EmbeddingOp::buildSplit(OpBuilder &builder, ValueRange operands, TypeRange types,
                                           FactorShards &shards) {
  return {EmbeddingOp::create(builder, getLoc(), types[0], operands[0],
                              shards.renumber(operands[1]),
                              /*partial=*/true)};
}

SmallVector<Value> EmbeddingGradOp::buildSplit(OpBuilder &builder, ValueRange operands,
                                               TypeRange types, FactorShards &shards) {
  return {EmbeddingGradOp::create(builder, getLoc(), types[0], shards.renumber(operands[0]),
                                  operands[1],
                                  /*partial=*/true)};
}

// The description of nn.partial_cross_entropy has the formulas.
SmallVector<Value> CrossEntropyOp::buildSplit(OpBuilder &builder, ValueRange operands,
                                              TypeRange types, FactorShards &shards) {
  Location loc = getLoc();
  Value labels = shards.renumber(operands[1]), count = shards.count();
  auto part = PartialCrossEntropyOp::create(builder, loc, TypeRange{types[0], types[0], types[0]},
                                            operands[0], labels, count);
  Value top = shards.allReduce(part.getMax(), Reduction::max);
  Value shift = arith::SubFOp::create(builder, loc, part.getMax(), top);
  Value scale = math::ExpOp::create(builder, loc, shift);
  Value scaled = arith::MulFOp::create(builder, loc, part.getSum(), scale);
  Value sum = shards.allReduce(scaled, Reduction::sum);
  Value picked = shards.allReduce(part.getPicked(), Reduction::sum);
  Value logSum = math::LogOp::create(builder, loc, sum);
  Value logSumExp = arith::AddFOp::create(builder, loc, logSum, top);
  return {arith::SubFOp::create(builder, loc, logSumExp, picked), logSumExp};
}

SmallVector<Value> CrossEntropyGradOp::buildSplit(OpBuilder &builder, ValueRange operands,
                                                  TypeRange types, FactorShards &shards) {
  Value labels = shards.renumber(operands[1]), count = shards.count();
  return {CrossEntropyGradOp::create(builder, getLoc(), types[0], operands[0], labels, operands[2],
                                     operands[3], count)};
}
