//===- Compute.cpp - evaluation of the ops of `nn` ------------------------===//

#include "interpreter/Evaluator.h"

#include "dialect/nn/NNDialect.h"
#include "dialect/nn/Precision.h"
#include "interpreter/Rounding.h"
#include "interpreter/RoundingNoise.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::fsdp::interpreter;

namespace {

using Names = SmallVector<std::string>;
using Offsets = std::vector<int64_t>;

/// The names of a tensor, major to minor, whatever their grouping.
Names flatNames(const NotationTensor &tensor) {
  Names names;
  for (const NotationDim &dim : tensor)
    names.append(dim.begin(), dim.end());
  return names;
}

/// Names of the pattern that the result lacks, in order of first appearance.
Names reducedNames(const Notation &pattern) {
  Names result = flatNames(pattern.result), reduced;
  for (const std::string &name : pattern.names())
    if (!llvm::is_contained(result, name))
      reduced.push_back(name);
  return reduced;
}

/// The offset in `tensor` of each point of the space over `space` (row-major, last name fastest),
/// from the point where all other names are zero. Names that `tensor` lacks have stride 0.
Offsets offsetsOf(const NotationTensor &tensor, const Names &space,
                  const llvm::StringMap<int64_t> &sizes) {
  llvm::StringMap<int64_t> strides;
  Names names = flatNames(tensor);
  int64_t stride = 1;
  for (const std::string &name : llvm::reverse(names)) {
    strides[name] = stride;
    stride *= sizes.lookup(name);
  }
  Offsets offsets{0};
  for (const std::string &name : space) {
    Offsets finer;
    int64_t size = sizes.lookup(name), step = strides.lookup(name);
    finer.reserve(offsets.size() * size);
    for (int64_t offset : offsets)
      for (int64_t i = 0; i < size; ++i)
        finer.push_back(offset + i * step);
    offsets = std::move(finer);
  }
  return offsets;
}

RankedTensorType resultType(Operation *op) {
  return cast<RankedTensorType>(op->getResult(0).getType());
}

/// Sums are accumulated in f32, or in f64 where the result is f64.
Type accumulatorOf(RankedTensorType type) { return getSumType(type.getElementType()); }

} // namespace

static Kernel compileEinsum(EinsumOp op, Numerics numerics) {
  Notation pattern = op.getPattern();
  llvm::StringMap<int64_t> sizes = op.getNameSizes();
  Names parallel = flatNames(pattern.result), reduced = reducedNames(pattern);
  Offsets lhsBase = offsetsOf(pattern.operands[0], parallel, sizes);
  Offsets rhsBase = offsetsOf(pattern.operands[1], parallel, sizes);
  Offsets lhsStep = offsetsOf(pattern.operands[0], reduced, sizes);
  Offsets rhsStep = offsetsOf(pattern.operands[1], reduced, sizes);
  RankedTensorType type = resultType(op);
  Rounding round(type.getElementType(), numerics), accumulate(accumulatorOf(type), numerics);
  return makeKernel(type, [=](ArrayRef<Tensor> in, Element *to) {
    const Element *lhs = in[0].data(), *rhs = in[1].data();
    for (size_t i = 0; i < lhsBase.size(); ++i) {
      double sum = 0;
      for (size_t k = 0; k < lhsStep.size(); ++k)
        sum = accumulate(
            sum + accumulate(lhs[lhsBase[i] + lhsStep[k]].f * rhs[rhsBase[i] + rhsStep[k]].f));
      to[i].f = round(sum);
    }
  });
}

/// nn.rearrange and nn.repeat: each element of the result is one of the input.
template <typename Op> static Kernel compileMovement(Op op) {
  Notation pattern = op.getPattern();
  Offsets source = offsetsOf(pattern.operands[0], flatNames(pattern.result), op.getNameSizes());
  RankedTensorType type = resultType(op);
  return makeKernel(type, [=](ArrayRef<Tensor> in, Element *to) {
    const Element *from = in[0].data();
    for (size_t i = 0; i < source.size(); ++i)
      to[i] = from[source[i]];
  });
}

static Kernel compileReduce(ReduceOp op, Numerics numerics) {
  Notation pattern = op.getPattern();
  llvm::StringMap<int64_t> sizes = op.getNameSizes();
  Offsets base = offsetsOf(pattern.operands[0], flatNames(pattern.result), sizes);
  Offsets step = offsetsOf(pattern.operands[0], reducedNames(pattern), sizes);
  RankedTensorType type = resultType(op);
  Type element = type.getElementType();
  Reduction kind = op.getKind();
  if (!isa<FloatType>(element)) {
    int64_t lowest = llvm::minIntN(element.getIntOrFloatBitWidth());
    return makeKernel(type, [=](ArrayRef<Tensor> in, Element *to) {
      for (size_t i = 0; i < base.size(); ++i) {
        int64_t value = kind == Reduction::max ? lowest : 0;
        for (int64_t offset : step) {
          int64_t next = in[0].getInt(base[i] + offset);
          value = kind == Reduction::max
                      ? std::max(value, next)
                      : wrapTo(static_cast<int64_t>(static_cast<uint64_t>(value) + next), element);
        }
        to[i].i = value;
      }
    });
  }
  Rounding round(element, numerics), accumulate(accumulatorOf(type), numerics);
  return makeKernel(type, [=](ArrayRef<Tensor> in, Element *to) {
    for (size_t i = 0; i < base.size(); ++i) {
      double value = kind == Reduction::max ? -std::numeric_limits<double>::infinity() : 0;
      for (int64_t offset : step) {
        double next = in[0].getFloat(base[i] + offset);
        if (kind != Reduction::max)
          value = accumulate(value + next);
        else if (next > value || std::isnan(next))
          value = next;
      }
      if (kind == Reduction::mean)
        value /= static_cast<double>(step.size());
      to[i].f = round(value);
    }
  });
}

/// Each sum continues the previous one.
static Kernel compileScanSum(ScanSumOp op, Numerics numerics) {
  RankedTensorType type = resultType(op);
  int64_t dim = op.getDim(), size = type.getDimSize(dim),
          inner = elementsOf(type.getShape().drop_front(dim + 1));
  bool exclusive = op.getExclusive(), reverse = op.getReverse();
  Rounding round(type.getElementType(), numerics), accumulate(accumulatorOf(type), numerics);
  return makeKernel(type, [=](ArrayRef<Tensor> in, Element *to) {
    for (int64_t line = 0; size && line < in[0].size() / size; ++line) {
      int64_t first = line / inner * size * inner + line % inner;
      double sum = 0;
      for (int64_t i = 0; i < size; ++i) {
        int64_t place = first + (reverse ? size - 1 - i : i) * inner;
        double before = sum;
        sum = accumulate(sum + in[0].getFloat(place));
        to[place].f = round(exclusive ? before : sum);
      }
    }
  });
}

/// At each position, each place at which the sequence may end.
static Kernel compilePositionsSince(PositionsSinceOp op) {
  RankedTensorType type = resultType(op);
  const int64_t positions = type.getShape().back();
  const bool documents = op.getDocuments();
  SmallVector<int64_t> sequence(op.getSequence());
  return makeKernel(type, [=](ArrayRef<Tensor> in, Element *to) {
    const auto length = static_cast<int64_t>(sequence.size());
    for (int64_t i = 0; i < in[0].size(); ++i) {
      const int64_t row = i / positions * positions;
      auto endsAt = [&](int64_t place) {
        for (int64_t k = 0; k < length; ++k)
          if (place - k < row || in[0].getInt(place - k) != sequence[length - 1 - k])
            return false;
        return true;
      };
      int64_t last = documents ? i - 1 : i;
      while (last >= row && !endsAt(last))
        --last;
      to[i].i = i - last - documents;
    }
  });
}

//===----------------------------------------------------------------------===//
// Row ops
//===----------------------------------------------------------------------===//

/// The cotangent of the logits of a row, of which the first `count` are classes.
static void writeGradient(const Element *logits, int64_t count, int64_t label, double logSumExp,
                          double upstream, const Rounding &round, Element *to) {
  for (int64_t c = 0; c < count; ++c) {
    double softmax = RoundingNoise::held(std::exp(logits[c].f - logSumExp));
    to[c].f = round((softmax - (label == c ? 1 : 0)) * upstream);
  }
}

static Kernel compileCrossEntropy(CrossEntropyOp op, Numerics numerics) {
  const Rows rows(op.getLogits().getType());
  RankedTensorType type = resultType(op), whole = op.getLogits().getType();
  Rounding round(type.getElementType(), numerics); // of sums: not that of the logits
  Rounding roundLogit(whole.getElementType(), numerics);
  return [=](ArrayRef<Tensor> in, MutableArrayRef<Tensor> out) {
    out[0] = Tensor(type);
    out[1] = Tensor(type);
    if (out.size() > 2)
      out[2] = Tensor(whole);
    Element *loss = out[0].mutableData(), *logSumExp = out[1].mutableData();
    for (int64_t row = 0; row < rows.count; ++row) {
      const Element *logits = in[0].data() + row * rows.width;
      double largest = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t c = 0; c < rows.width; ++c)
        largest = std::max(largest, logits[c].f);
      for (int64_t c = 0; c < rows.width; ++c)
        sum += RoundingNoise::held(std::exp(logits[c].f - largest));
      double value = RoundingNoise::held(largest + RoundingNoise::held(std::log(sum)));
      int64_t label = in[1].getInt(row);
      // An invalid label has the loss NaN, so that it cannot go unnoticed.
      bool known = label >= 0 && label < rows.width;
      loss[row].f = known ? round(value - logits[label].f) : Tensor::poisonElement(true).f;
      logSumExp[row].f = round(value);
      if (out.size() > 2)
        writeGradient(logits, rows.width, label, logSumExp[row].f, in[2].getFloat(row), roundLogit,
                      out[2].mutableData() + row * rows.width);
    }
  };
}

static Kernel compilePartialCrossEntropy(PartialCrossEntropyOp op, Numerics numerics) {
  const Rows rows(op.getLogits().getType());
  RankedTensorType type = resultType(op), whole = op.getLogits().getType();
  Rounding round(type.getElementType(), numerics); // of sums: not that of the logits
  Rounding roundLogit(whole.getElementType(), numerics);
  return [=](ArrayRef<Tensor> in, MutableArrayRef<Tensor> out) {
    for (Tensor &result : out.take_front(3))
      result = Tensor(type);
    if (out.size() > 3)
      out[3] = Tensor(whole);
    const int64_t count = std::clamp<int64_t>(in[2].getInt(0), 0, rows.width);
    for (int64_t row = 0; row < rows.count; ++row) {
      const Element *logits = in[0].data() + row * rows.width;
      double largest = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t c = 0; c < count; ++c)
        largest = std::max(largest, logits[c].f);
      const double base =
          std::isinf(largest) && largest < 0 ? 0 : largest; // other ranks may have larger ones
      for (int64_t c = 0; c < count; ++c)
        sum += RoundingNoise::held(std::exp(logits[c].f - base));
      int64_t label = in[1].getInt(row);
      double picked = label == -1                   ? 0
                      : label >= 0 && label < count ? logits[label].f
                                                    : Tensor::poisonElement(true).f;
      out[0].mutableData()[row].f = largest;
      out[1].mutableData()[row].f = round(RoundingNoise::held(sum));
      out[2].mutableData()[row].f = picked;
      if (out.size() > 3) { // rounded as by the ops that compute the loss
        double logSum = round(RoundingNoise::held(std::log(out[1].getFloat(row))));
        writeGradient(logits, count, label, round(RoundingNoise::held(logSum + largest)),
                      in[3].getFloat(row), roundLogit, out[3].mutableData() + row * rows.width);
      }
    }
  };
}

static Kernel compileCrossEntropyGrad(CrossEntropyGradOp op, Numerics numerics) {
  const Rows rows(op.getLogits().getType());
  RankedTensorType type = resultType(op);
  Rounding round(type.getElementType(), numerics);
  return makeKernel(type, [=](ArrayRef<Tensor> in, Element *to) {
    const int64_t count =
        in.size() > 4 ? std::clamp<int64_t>(in[4].getInt(0), 0, rows.width) : rows.width;
    for (int64_t row = 0; row < rows.count; ++row)
      writeGradient(in[0].data() + row * rows.width, count, in[1].getInt(row), in[2].getFloat(row),
                    in[3].getFloat(row), round, to + row * rows.width);
  });
}

static Kernel compileArgmax(ArgmaxOp op) {
  const Rows rows(op.getInput().getType());
  RankedTensorType type = resultType(op);
  return makeKernel(type, [=](ArrayRef<Tensor> in, Element *to) {
    for (int64_t row = 0; row < rows.count; ++row) {
      int64_t best = 0;
      for (int64_t c = 1; c < rows.width; ++c)
        if (in[0].getFloat(row * rows.width + c) > in[0].getFloat(row * rows.width + best))
          best = c;
      to[row].i = best;
    }
  });
}

Kernel mlir::fsdp::interpreter::detail::compileCompute(Operation *op, Numerics numerics) {
  return llvm::TypeSwitch<Operation *, Kernel>(op)
      .Case([&](EinsumOp op) { return compileEinsum(op, numerics); })
      .Case<RearrangeOp, RepeatOp>([](auto op) { return compileMovement(op); })
      .Case([&](ReduceOp op) { return compileReduce(op, numerics); })
      .Case([&](ScanSumOp op) { return compileScanSum(op, numerics); })
      .Case([&](CrossEntropyOp op) { return compileCrossEntropy(op, numerics); })
      .Case([&](PartialCrossEntropyOp op) { return compilePartialCrossEntropy(op, numerics); })
      .Case([&](CrossEntropyGradOp op) { return compileCrossEntropyGrad(op, numerics); })
      .Case([](ArgmaxOp op) { return compileArgmax(op); })
      .Case([](PositionsSinceOp op) { return compilePositionsSince(op); })
      .Default([&](Operation *op) {
        for (auto part : {compileNorm, compileMove})
          if (Kernel kernel = part(op, numerics))
            return kernel;
        return compileAttention(op, numerics);
      });
}
