//===- Documents.cpp - documents and spans in rows of tokens --------------===//

#include "base/Sequences.h"
#include "dsl/ModelIR.h"
#include "dsl/Operations.h"

#include "dialect/nn/NNDialect.h"
#include <algorithm>

using namespace mlir;

namespace fsdp::dsl {

static void requireTokens(const char *what, const Located &tokens) {
  RankedTensorType type = typeOf(tokens);
  if (!type.getElementType().isInteger(32) && !type.getElementType().isInteger(64))
    fail(what, {tokens}, "expected tokens that are integers, i32 or i64");
  if (type.getRank() != 2)
    fail(what, {tokens}, "expected the dimensions batch and positions");
}

/// 1 where `predicate` holds between the tokens and `token`, else 0, f32.
static Value compared(OpBuilder &builder, Location loc, arith::CmpIPredicate predicate,
                      const Located &tokens, int64_t token) {
  RankedTensorType type = typeOf(tokens);
  auto number = arith::ConstantOp::create(
      builder, loc,
      DenseElementsAttr::get(type, builder.getIntegerAttr(type.getElementType(), token)));
  Value holds = arith::CmpIOp::create(builder, loc, predicate, valueOf(tokens), number);
  return arith::UIToFPOp::create(builder, loc, type.clone(builder.getF32Type()), holds);
}

/// How many positions ago `sequence` ended.
static Value since(OpBuilder &builder, Location loc, const Located &tokens,
                   ArrayRef<int64_t> sequence, bool documents) {
  return nn::PositionsSinceOp::create(builder, loc, typeOf(tokens).clone(builder.getI32Type()),
                                      valueOf(tokens), builder.getDenseI64ArrayAttr(sequence),
                                      documents ? builder.getUnitAttr() : UnitAttr());
}

// Sums of 0 and 1 are exact in f32 up to 2^24 documents in a row.
Tensor documentIds(Located tokens, int64_t end) {
  requireTokens("documentIds", tokens);
  return create("documentIds", {tokens}, [&](OpBuilder &builder, Location loc) -> Value {
    Value isLast = compared(builder, loc, arith::CmpIPredicate::eq, tokens, end);
    Value sums = nn::ScanSumOp::create(builder, loc, isLast.getType(), "b t", "t", isLast,
                                       /*exclusive=*/true, /*reverse=*/false);
    return arith::FPToSIOp::create(builder, loc, typeOf(tokens).clone(builder.getI32Type()), sums);
  });
}

Tensor documentPositions(Located tokens, int64_t end) {
  requireTokens("documentPositions", tokens);
  return create("documentPositions", {tokens}, [&](OpBuilder &builder, Location loc) {
    return since(builder, loc, tokens, end, /*documents=*/true);
  });
}

Tensor documentMask(Located tokens, int64_t end) {
  requireTokens("documentMask", tokens);
  return create("documentMask", {tokens}, [&](OpBuilder &builder, Location loc) {
    return compared(builder, loc, arith::CmpIPredicate::ne, tokens, end);
  });
}

Tensor spanMask(Located tokens, const std::vector<int64_t> &begin, const std::vector<int64_t> &end,
                std::optional<int64_t> documentEnd) {
  requireTokens("spanMask", tokens);
  std::vector<std::vector<int64_t>> ends;
  if (!end.empty())
    ends.push_back(end);
  if (documentEnd)
    ends.push_back({*documentEnd});
  if (begin.empty())
    fail("spanMask", {tokens}, "expected at least one token after which spans begin");
  for (const std::vector<int64_t> &tokensOf : {begin, end})
    if (tokensOf.size() > nn::PositionsSinceOp::kMaxLength ||
        std::any_of(tokensOf.begin(), tokensOf.end(), [](int64_t token) { return token < 0; }))
      fail("spanMask", {tokens}, "expected at most 16 tokens in a row, none of them below 0");
  for (const std::vector<int64_t> &other : ends)
    if (base::endsWith(begin, other) || base::endsWith(other, begin))
      fail("spanMask", {tokens},
           "expected tokens that begin a span and tokens that end it of which "
           "neither end with the others: a span would begin and end at one token");
  // Without an end, every beginning is nearer than tokens that no row has.
  if (ends.empty())
    ends.push_back({INT64_MAX});
  return create("spanMask", {tokens}, [&](OpBuilder &builder, Location loc) -> Value {
    Value begun = since(builder, loc, tokens, begin, /*documents=*/false);
    auto type = typeOf(tokens).clone(builder.getF32Type());
    Value mask;
    for (const std::vector<int64_t> &other : ends) {
      Value ended = since(builder, loc, tokens, other, /*documents=*/false);
      Value isIn = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt, ended, begun);
      Value inside = arith::UIToFPOp::create(builder, loc, type, isIn);
      mask = mask ? arith::MulFOp::create(builder, loc, mask, inside).getResult() : inside;
    }
    return mask;
  });
}

} // namespace fsdp::dsl
