//===- Attention.cpp - what attention and rotary positions compute --------===//

#include "interpreter/Evaluator.h"

#include "dialect/nn/NNDialect.h"
#include "interpreter/Rounding.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::fsdp::interpreter;

namespace {

/// The sizes of an attention, and where the row of a query or a key begins.
struct AttentionShape {
  int64_t batch, heads, queries, width, groups, keys;
  double scale;
  bool causal;

  AttentionShape(RankedTensorType q, RankedTensorType k, const APFloat &scale, bool causal)
      : batch(q.getDimSize(0)), heads(q.getDimSize(1)), queries(q.getDimSize(2)),
        width(q.getDimSize(3)), groups(k.getDimSize(1)), keys(k.getDimSize(2)),
        scale(scale.convertToDouble()), causal(causal) {}

  /// How many keys query `t` sees: the first ones.
  int64_t visible(int64_t t) const { return causal ? t + keys - queries + 1 : keys; }
  int64_t queryRow(int64_t b, int64_t h, int64_t t) const { return (b * heads + h) * queries + t; }
  int64_t keyRow(int64_t b, int64_t h, int64_t s) const {
    return (b * groups + h / (heads / groups)) * keys + s;
  }
  double dot(const Tensor &a, int64_t rowA, const Tensor &b, int64_t rowB) const {
    double sum = 0;
    for (int64_t i = 0; i < width; ++i)
      sum += a.getFloat(rowA * width + i) * b.getFloat(rowB * width + i);
    return sum;
  }
  /// Calls `fn(b, h, t)` for each query.
  template <typename Fn> void forEachQuery(Fn fn) const {
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t t = 0; t < queries; ++t)
          fn(b, h, t);
  }
};

} // namespace

static Kernel compileForward(AttentionOp op, Numerics numerics) {
  RankedTensorType outType = op.getOut().getType(), rowType = op.getLogSumExp().getType();
  AttentionShape shape(outType, op.getK().getType(), op.getScale(), op.getCausal());
  Rounding round(outType.getElementType(), numerics), roundSum(rowType.getElementType(), numerics);
  return [=](ArrayRef<Tensor> in, MutableArrayRef<Tensor> out) {
    out[0] = Tensor(outType);
    out[1] = Tensor(rowType);
    shape.forEachQuery([&](int64_t b, int64_t h, int64_t t) {
      int64_t row = shape.queryRow(b, h, t), count = shape.visible(t);
      std::vector<double> score(count);
      double largest = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t s = 0; s < count; ++s) {
        score[s] = shape.scale * shape.dot(in[0], row, in[1], shape.keyRow(b, h, s));
        largest = std::max(largest, score[s]);
      }
      for (int64_t s = 0; s < count; ++s)
        sum += score[s] = std::exp(score[s] - largest);
      for (int64_t i = 0; i < shape.width; ++i) {
        double value = 0;
        for (int64_t s = 0; s < count; ++s)
          value += score[s] / sum * in[2].getFloat(shape.keyRow(b, h, s) * shape.width + i);
        out[0].mutableData()[row * shape.width + i].f = round(value);
      }
      out[1].mutableData()[row].f = roundSum(largest + std::log(sum));
    });
  };
}

static Kernel compileBackward(AttentionGradOp op, Numerics numerics) {
  RankedTensorType qType = op.getQ().getType(), kType = op.getK().getType();
  AttentionShape shape(qType, kType, op.getScale(), op.getCausal());
  Rounding round(qType.getElementType(), numerics);
  return [=](ArrayRef<Tensor> in, MutableArrayRef<Tensor> out) {
    const Tensor &q = in[0], &k = in[1], &v = in[2], &forward = in[3], &d = in[5];
    int64_t width = shape.width;
    out[0] = Tensor(qType);
    out[1] = Tensor(kType);
    out[2] = Tensor(kType);
    Element *dQ = out[0].mutableData(), *dK = out[1].mutableData(), *dV = out[2].mutableData();
    shape.forEachQuery([&](int64_t b, int64_t h, int64_t t) {
      int64_t row = shape.queryRow(b, h, t);
      double delta = shape.dot(d, row, forward, row);
      for (int64_t s = 0; s < shape.visible(t); ++s) {
        int64_t key = shape.keyRow(b, h, s);
        double p = std::exp(shape.scale * shape.dot(q, row, k, key) - in[4].getFloat(row));
        double dScore = shape.scale * p * (shape.dot(d, row, v, key) - delta);
        for (int64_t i = 0; i < width; ++i) {
          dQ[row * width + i].f += dScore * k.getFloat(key * width + i);
          dK[key * width + i].f += dScore * q.getFloat(row * width + i);
          dV[key * width + i].f += p * d.getFloat(row * width + i);
        }
      }
    });
    for (Tensor &tensor : out)
      for (int64_t i = 0; i < tensor.size(); ++i)
        tensor.mutableData()[i].f = round(tensor.getFloat(i));
  };
}

static Kernel compileRope(RopeOp op, Numerics numerics) {
  RankedTensorType type = op.getX().getType();
  int64_t width = type.getShape().back(), positions = type.getShape().take_back(2).front();
  double theta = op.getTheta().convertToDouble(), sign = op.getInverse() ? -1 : 1;
  Rounding round(type.getElementType(), numerics);
  return [=](ArrayRef<Tensor> in, MutableArrayRef<Tensor> out) {
    out[0] = Tensor(type);
    Element *to = out[0].mutableData();
    int64_t rows = width ? in[0].size() / width : 0, half = width / 2;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < half; ++i) {
        double angle = sign * static_cast<double>(row % positions) *
                       std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(width));
        int64_t a = row * width + i, b = a + half;
        double x = in[0].getFloat(a), y = in[0].getFloat(b);
        to[a].f = round(x * std::cos(angle) - y * std::sin(angle));
        to[b].f = round(y * std::cos(angle) + x * std::sin(angle));
      }
  };
}

Kernel mlir::fsdp::interpreter::detail::compileAttention(Operation *op, Numerics numerics) {
  return llvm::TypeSwitch<Operation *, Kernel>(op)
      .Case([&](AttentionOp op) { return compileForward(op, numerics); })
      .Case([&](AttentionGradOp op) { return compileBackward(op, numerics); })
      .Case([&](RopeOp op) { return compileRope(op, numerics); })
      .Default([](Operation *) { return Kernel(); });
}
