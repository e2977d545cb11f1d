//===- Collectives.cpp - evaluation of collectives ------------------------===//

#include "dialect/nn/Precision.h"
#include "interpreter/Program.h"
#include "interpreter/Rounding.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/ErrorHandling.h"
#include <cmath>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

namespace {

/// How ranks' elements are combined, one after the other in rank order. Sums of 16-bit floats are
/// formed in f32.
struct Combine {
  ReduceKind kind;
  Type type;
  Rounding accumulate;

  Element operator()(Element a, Element b) const {
    bool isFloat = isa<FloatType>(type);
    if (kind == ReduceKind::max) {
      if (isFloat)
        return std::isnan(a.f) || a.f >= b.f ? a : b;
      return a.i >= b.i ? a : b;
    }
    Element result;
    if (isFloat) {
      result.f = accumulate(a.f + b.f);
    } else {
      result.i = wrapTo(
          static_cast<int64_t>(static_cast<uint64_t>(a.i) + static_cast<uint64_t>(b.i)), type);
    }
    return result;
  }
};

} // namespace

Tensor interpreter::reduceInOrder(ArrayRef<Tensor> operands, ReduceKind kind, Numerics numerics) {
  Tensor result = operands.front();
  Type type = result.getType().getElementType();
  Combine combine{kind, type, Rounding(nn::getSumType(type), numerics)};
  Rounding round(type, numerics);
  Element *to = result.mutableData();
  for (const Tensor &operand : operands.drop_front())
    for (int64_t i = 0; i < result.size(); ++i)
      to[i] = combine(to[i], operand.data()[i]);
  if (result.isFloat())
    for (int64_t i = 0; i < result.size(); ++i)
      to[i].f = round(to[i].f);
  return result;
}

/// The value whose parts the ranks hold, split again: elements that no rank holds are zero.
static void allToAll(AllToAllOp op, RankedTensorType type, ArrayRef<Tensor> operands,
                     MutableArrayRef<Tensor> results) {
  int64_t split = op.getSplit(), concat = op.getConcat();
  RankedTensorType part = operands.front().getType();
  SmallVector<int64_t> shape(part.getShape());
  shape[concat] = split == concat ? part.getDimSize(concat) * static_cast<int64_t>(operands.size())
                                  : type.getDimSize(concat);
  const Tensor whole = joinParts(part.clone(shape), concat, operands);
  for (auto [index, result] : llvm::enumerate(results))
    result = takePart(whole, type, split, index);
}

void interpreter::performCollective(Operation *op, ArrayRef<Tensor> operands,
                                    MutableArrayRef<Tensor> results, Numerics numerics) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](AllGatherOp gather) {
        const Tensor whole = joinParts(type, gather.getDim(), operands);
        for (Tensor &result : results)
          result = whole;
      })
      .Case([&](ReduceScatterOp scatter) {
        Tensor sum = reduceInOrder(operands, ReduceKind::sum, numerics);
        for (auto [index, result] : llvm::enumerate(results))
          result = takePart(sum, type, scatter.getDim(), index);
      })
      .Case([&](AllReduceOp reduce) {
        Tensor sum = reduceInOrder(operands, reduce.getKind(), numerics);
        for (Tensor &result : results)
          result = sum;
      })
      .Case([&](AllToAllOp exchange) { allToAll(exchange, type, operands, results); })
      .Case([&](CollectivePermuteOp permute) {
        for (auto [source, result] : llvm::zip_equal(permute.getFrom(), results))
          result = source < 0 ? Tensor(type) : operands[source];
      })
      .Case([&](BroadcastOp broadcast) {
        for (Tensor &result : results)
          result = operands[broadcast.getFrom()];
      })
      .Default([](Operation *op) {
        llvm::report_fatal_error("interpreter/Collectives.cpp has no case for '" +
                                 op->getName().getStringRef() + "'");
      });
}

std::string interpreter::signatureOf(Operation *op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << op->getName();
  auto collective = cast<CollectiveOpInterface>(op);
  if (std::string arguments = collective.getArguments(); !arguments.empty())
    os << " " << arguments;
  os << " over [";
  llvm::interleaveComma(collective.getAxes(), os);
  os << "] : ";
  if (Value given = collective.getSendValue())
    os << given.getType();
  if (collective.getSendValue() && collective.getRecvValue())
    os << " -> ";
  if (Value received = collective.getRecvValue())
    os << received.getType();
  return text;
}
