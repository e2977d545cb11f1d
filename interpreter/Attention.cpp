//===- Attention.cpp - evaluation of attention and rotary positions -------===//

#include "interpreter/Evaluator.h"

#include "dialect/nn/NNDialect.h"
#include "dialect/nn/Zigzag.h"
#include "interpreter/Rounding.h"
#include "interpreter/RoundingNoise.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::nn;
using namespace mlir::fsdp::interpreter;

static double held(double value, Type type = {}) { return RoundingNoise::held(value, type); }

namespace {

/// A query, a key that it attends to, and the terms of gradients.
struct Seen {
  int64_t h, t, s;
  int64_t query, key, value, row; ///< offsets of rows; `row` is of the output
  double p, slope, difference;    ///< `difference`: the probability's cotangent less its mean
};

/// Sizes of an attention, and the element where each row of an operand begins.
struct AttentionShape : AttentionLayout {
  double scale, softcap; ///< softcap: 0 without
  bool causal;
  bool packed;    ///< one tensor holds queries, keys and values
  int64_t window; ///< larger than any distance without
  int64_t first;  ///< the key at the position of the first query
  int64_t zigzag; ///< the ranks in whose order queries and keys are; 0 where they are in their own
  int64_t bias;   ///< the operand that holds it, or -1
  bool shared;    ///< all heads have one bias
  int64_t ids;    ///< the operand that holds them, or -1
  int64_t inputs; ///< all of them

  /// `rank`: among those over `over`.
  template <typename Op>
  AttentionShape(Op op, int64_t rank)
      : AttentionLayout(op.getLayout()), scale(op.getScale().convertToDouble()),
        softcap(op.getSoftcap() ? op.getSoftcap()->convertToDouble() : 0), causal(op.getCausal()),
        packed(op.getTensors().size() == 1),
        window(op.getWindow().value_or(std::numeric_limits<int32_t>::max())),
        first(op.getAt() ? (*op.getAt())[rank] : keys - queries),
        zigzag(static_cast<int64_t>(op.getZigzag().value_or(0))),
        bias(op.getBias() ? static_cast<int64_t>(op.getTensors().size()) : -1),
        shared(bias >= 0 &&
               cast<RankedTensorType>(op.getInputs()[bias].getType()).getDimSize(0) == 1),
        ids(op.getDocuments() ? static_cast<int64_t>(op.getInputs().size()) - 1 : -1),
        inputs(static_cast<int64_t>(op.getInputs().size())) {}

  /// The keys that query `t` of batch `b` attends to.
  std::vector<int64_t> visible(ArrayRef<Tensor> in, int64_t b, int64_t t) const {
    std::vector<int64_t> seen;
    auto at = [&](int64_t index) {
      return zigzag == 0 ? index : zigzagPosition(index, keys, zigzag);
    };
    const int64_t own = first + t, position = at(own);
    auto id = [&](int64_t key) { return ids < 0 ? 0 : in[ids].getInt(b * keys + key); };
    for (int64_t s = 0; s < keys; ++s)
      if ((!causal || (at(s) <= position && at(s) > position - window)) && id(s) == id(own))
        seen.push_back(s);
    return seen;
  }
  double capped(double score) const {
    return softcap == 0 ? score : softcap * std::tanh(score / softcap);
  }
  /// The derivative of `capped`, from its result.
  double slope(double score) const {
    return softcap == 0 ? 1 : 1 - (score / softcap) * (score / softcap);
  }
  int64_t biasAt(int64_t h, int64_t t, int64_t s) const {
    return ((shared ? 0 : h) * queries + t) * keys + s;
  }
  /// The number subtracted from the bias of a query that attends to `visible`: the largest bias
  /// there, 0 if that is -infinity. This keeps the precision of scores next to a large bias, and
  /// the softmax is the same.
  double shift(ArrayRef<Tensor> in, int64_t h, int64_t t, ArrayRef<int64_t> visible) const {
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t s : visible)
      if (bias >= 0)
        largest = std::max(largest, in[bias].getFloat(biasAt(h, t, s)));
    return largest == -std::numeric_limits<double>::infinity() ? 0 : largest;
  }
  /// The bias added to the score of a key.
  double added(ArrayRef<Tensor> in, int64_t h, int64_t t, int64_t s, double shift) const {
    return bias < 0 ? 0 : in[bias].getFloat(biasAt(h, t, s)) - shift;
  }
  int64_t query(int64_t b, int64_t h, int64_t t) const { return q.row(b, h, t); }
  int64_t key(int64_t b, int64_t h, int64_t s) const {
    return part + k.row(b, h / (heads / groups), s);
  }
  int64_t value(int64_t b, int64_t h, int64_t s) const { return key(b, h, s) + part; }
  int64_t output(int64_t b, int64_t h, int64_t t) const { return out.row(b, h, t); }
  int64_t sum(int64_t b, int64_t h, int64_t t) const { return (b * heads + h) * queries + t; }

  double dot(const Tensor &a, int64_t rowA, const Tensor &b, int64_t rowB, double sign = 1) const {
    double sum = 0;
    for (int64_t i = 0; i < width; ++i)
      sum = held(sum + sign * a.getFloat(rowA + i) * b.getFloat(rowB + i));
    return sum;
  }
  /// Calls `fn(b, h, t)` for each query.
  template <typename Fn> void forEachQuery(Fn fn) const {
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t t = 0; t < queries; ++t)
          fn(b, h, t);
  }
  /// Calls `fn(seen)` for each query and each key that it attends to. `in`: the operands of a
  /// gradient.
  template <typename Fn> void forEachSeen(ArrayRef<Tensor> in, Type type, Fn fn) const {
    const Tensor &queries = in[0], &keys = in[packed ? 0 : 1], &values = in[packed ? 0 : 2],
                 &forward = in[inputs], &sums = in[inputs + 1], &d = in[inputs + 2];
    forEachQuery([&](int64_t b, int64_t h, int64_t t) {
      Seen at{h, t, 0, query(b, h, t), 0, 0, output(b, h, t), 0, 0, 0};
      const double total = sums.getFloat(sum(b, h, t));
      if (total == -std::numeric_limits<double>::infinity())
        return; // attends to no key
      // Where `forward` is one of the values, the difference below is 0. Noise tells the two sums
      // apart, as programs form them in different orders: it depends on the sign.
      const double delta = -dot(d, at.row, forward, at.row, -1);
      const std::vector<int64_t> seen = visible(in, b, t);
      const double shift = this->shift(in, h, t, seen);
      for (int64_t s : seen) {
        at.s = s, at.key = key(b, h, s), at.value = value(b, h, s);
        const double score = capped(scale * dot(queries, at.query, keys, at.key));
        at.slope = slope(score);
        at.p = held(std::exp(score + added(in, h, t, s, shift) - total), type);
        at.difference = dot(d, at.row, values, at.value) - delta;
        fn(at);
      }
    });
  }
};

} // namespace

static Kernel compileForward(AttentionOp op, Numerics numerics, int64_t rank) {
  RankedTensorType outType = op.getOut().getType(), rowType = op.getLogSumExp().getType();
  AttentionShape shape(op, rank);
  Rounding round(outType.getElementType(), numerics), roundSum(rowType.getElementType(), numerics);
  return [=](ArrayRef<Tensor> in, MutableArrayRef<Tensor> out) {
    const Tensor &q = in[0], &k = in[shape.packed ? 0 : 1], &v = in[shape.packed ? 0 : 2];
    out[0] = Tensor(outType);
    out[1] = Tensor(rowType);
    shape.forEachQuery([&](int64_t b, int64_t h, int64_t t) {
      int64_t query = shape.query(b, h, t), to = shape.output(b, h, t);
      std::vector<int64_t> keys = shape.visible(in, b, t);
      std::vector<double> score(keys.size());
      const double shift = shape.shift(in, h, t, keys);
      double largest = -std::numeric_limits<double>::infinity(), sum = 0;
      for (auto [s, number] : llvm::zip_equal(keys, score)) {
        number = shape.capped(shape.scale * shape.dot(q, query, k, shape.key(b, h, s))) +
                 shape.added(in, h, t, s, shift);
        largest = std::max(largest, number);
      }
      // A query does not attend to keys whose bias is -infinity.
      if (llvm::all_of(score, [](double number) {
            return number == -std::numeric_limits<double>::infinity();
          }))
        score.clear(), keys.clear();
      for (double &number : score)
        sum += number = held(std::exp(number - largest), outType.getElementType());
      for (int64_t i = 0; i < shape.width; ++i) {
        double value = 0;
        for (auto [s, number] : llvm::zip_equal(keys, score))
          value += number / sum * v.getFloat(shape.value(b, h, s) + i);
        out[0].mutableData()[to + i].f = round(value);
      }
      out[1].mutableData()[shape.sum(b, h, t)].f = roundSum(largest + std::log(sum));
    });
  };
}

static Kernel compileBackward(AttentionGradOp op, Numerics numerics, int64_t rank) {
  SmallVector<RankedTensorType> types;
  for (Type type : op.getResultTypes())
    types.push_back(cast<RankedTensorType>(type));
  AttentionShape shape(op, rank);
  Rounding round(types[0].getElementType(), numerics);
  return [=](ArrayRef<Tensor> in, MutableArrayRef<Tensor> out) {
    const size_t kAt = shape.packed ? 0 : 1, vAt = shape.packed ? 0 : 2;
    for (auto [tensor, type] : llvm::zip_equal(out, types))
      tensor = Tensor(type);
    Element *dQ = out[0].mutableData(), *dK = out[kAt].mutableData(), *dV = out[vAt].mutableData();
    const Tensor &q = in[0], &k = in[kAt], &d = in[shape.inputs + 2];
    shape.forEachSeen(in, round.type, [&](const Seen &at) {
      const double dScore = held(shape.scale * at.slope * at.p * at.difference, round.type);
      for (int64_t i = 0; i < shape.width; ++i) {
        dQ[at.query + i].f += dScore * k.getFloat(at.key + i);
        dK[at.key + i].f += dScore * q.getFloat(at.query + i);
        dV[at.value + i].f += at.p * d.getFloat(at.row + i);
      }
    });
    for (Tensor &tensor : out)
      for (int64_t i = 0; i < tensor.size(); ++i)
        tensor.mutableData()[i].f = round(tensor.getFloat(i));
  };
}

static Kernel compileBiasBackward(AttentionBiasGradOp op, Numerics numerics, int64_t rank) {
  auto type = cast<RankedTensorType>(op.getGradient().getType());
  AttentionShape shape(op, rank);
  Rounding round(type.getElementType(), numerics);
  return makeKernel(type, [=](ArrayRef<Tensor> in, Element *dBias) {
    shape.forEachSeen(in, round.type, [&](const Seen &at) {
      dBias[shape.biasAt(at.h, at.t, at.s)].f += held(at.p * at.difference, round.type);
    });
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      dBias[i].f = round(dBias[i].f);
  });
}

static Kernel compileRope(RopeOp op, Numerics numerics) {
  RankedTensorType type = op.getX().getType();
  int64_t width = type.getShape().back(), positions = type.getDimSize(op.getDim()),
          inner = elementsOf(type.getShape().drop_front(op.getDim() + 1).drop_back());
  double theta = op.getTheta().convertToDouble(), sign = op.getInverse() ? -1 : 1;
  auto number = [](std::optional<APFloat> value, double otherwise) {
    return value ? value->convertToDouble() : otherwise;
  };
  double factor = number(op.getFactor(), 1), magnitude = number(op.getMagnitude(), 1);
  double from = number(op.getFrom(), 0), to = number(op.getTo(), 0);
  std::optional<RopeRamp> ramp = op.getRamp();
  auto rateOf = [=](double i) {
    double rate = std::pow(theta, -2.0 * i / static_cast<double>(width));
    double at = ramp == RopeRamp::index ? i : rate;
    double share = ramp ? std::clamp((at - from) / (to - from), 0.0, 1.0) : 0;
    return factor == 1 ? rate : share * rate + (1 - share) * (rate / factor);
  };
  Rounding round(type.getElementType(), numerics);
  const int64_t perSample = type.getDimSize(0) ? type.getNumElements() / type.getDimSize(0) : 0;
  return makeKernel(type, [=](ArrayRef<Tensor> in, Element *result) {
    int64_t rows = width ? in[0].size() / width : 0, half = width / 2;
    auto positionOf = [&](int64_t row) {
      const int64_t t = row / inner % positions;
      return in.size() > 1 ? in[1].getInt(row * width / perSample * positions + t) : t;
    };
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < half; ++i) {
        double angle = sign * static_cast<double>(positionOf(row)) * rateOf(static_cast<double>(i));
        int64_t a = row * width + i, b = a + half;
        double x = in[0].getFloat(a), y = in[0].getFloat(b);
        result[a].f = round(magnitude * (x * std::cos(angle) - y * std::sin(angle)));
        result[b].f = round(magnitude * (y * std::cos(angle) + x * std::sin(angle)));
      }
  });
}

static Kernel compileCachedAttention(CachedAttentionOp op, Numerics numerics) {
  RankedTensorType type = op.getQ().getType(), keysType = op.getK().getType();
  auto sizeOf = [&](char letter) { return type.getDimSize(attentionDim(op.getOrder(), letter)); };
  auto strideOf = [&](char letter) {
    return elementsOf(type.getShape().drop_front(attentionDim(op.getOrder(), letter) + 1));
  };
  const int64_t batch = sizeOf('b'), heads = sizeOf('h'), queries = sizeOf('t'),
                width = sizeOf('d'), groups = keysType.getDimSize(1), keys = keysType.getDimSize(2);
  const int64_t ofBatch = strideOf('b'), ofHead = strideOf('h'), ofQuery = strideOf('t');
  const int64_t window = op.getWindow().value_or(std::numeric_limits<int32_t>::max());
  const double scale = op.getScale().convertToDouble(),
               softcap = op.getSoftcap() ? op.getSoftcap()->convertToDouble() : 0;
  Rounding round(type.getElementType(), numerics);
  return makeKernel(type, [=](ArrayRef<Tensor> in, Element *result) {
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t t = 0; t < queries; ++t) {
          const int64_t query = b * ofBatch + h * ofHead + t * ofQuery;
          const int64_t first = (b * groups + h / (heads / groups)) * keys * width;
          const int64_t end =
              std::clamp<int64_t>(in[3].getInt(b * queries), 0, keys - queries) + t + 1;
          std::vector<double> scores;
          double largest = -std::numeric_limits<double>::infinity(), sum = 0;
          for (int64_t s = std::max<int64_t>(end - window, 0); s < end; ++s) {
            double dot = 0;
            for (int64_t i = 0; i < width; ++i)
              dot += in[0].getFloat(query + i) * in[1].getFloat(first + s * width + i);
            dot *= scale;
            scores.push_back(softcap > 0 ? softcap * std::tanh(dot / softcap) : dot);
            largest = std::max(largest, scores.back());
          }
          for (double &score : scores)
            sum += score = held(std::exp(score - largest));
          const int64_t begin = end - static_cast<int64_t>(scores.size());
          for (int64_t i = 0; i < width; ++i) {
            double value = 0;
            for (auto [s, score] : llvm::enumerate(scores))
              value +=
                  score * in[2].getFloat(first + (begin + static_cast<int64_t>(s)) * width + i);
            result[query + i].f = round(value / sum);
          }
        }
  });
}

static Kernel compileWriteRows(WriteRowsOp op) {
  RankedTensorType type = op.getTable().getType();
  const auto dim = static_cast<size_t>(op.getDim());
  const int64_t samples = type.getDimSize(0), positions = type.getDimSize(dim),
                outer = elementsOf(type.getShape().take_front(dim).drop_front()),
                width = elementsOf(type.getShape().drop_front(dim + 1)),
                rows = op.getRows().getType().getDimSize(dim);
  return [=](ArrayRef<Tensor> in, MutableArrayRef<Tensor> out) {
    out[0] = in[0];
    Element *table = out[0].mutableData();
    for (int64_t block = 0; block < samples * outer; ++block)
      for (int64_t row = 0; row < rows; ++row)
        if (const int64_t at = in[2].getInt(block / outer * rows + row); at >= 0 && at < positions)
          std::copy_n(in[1].data() + (block * rows + row) * width, width,
                      table + (block * positions + at) * width);
  };
}

Kernel mlir::fsdp::interpreter::detail::compileAttention(Operation *op, Numerics numerics,
                                                         int64_t rank) {
  return llvm::TypeSwitch<Operation *, Kernel>(op)
      .Case([&](AttentionOp op) { return compileForward(op, numerics, rank); })
      .Case([&](AttentionGradOp op) { return compileBackward(op, numerics, rank); })
      .Case([&](AttentionBiasGradOp op) { return compileBiasBackward(op, numerics, rank); })
      .Case([&](RopeOp op) { return compileRope(op, numerics); })
      .Case([&](CachedAttentionOp op) { return compileCachedAttention(op, numerics); })
      .Case([](WriteRowsOp op) { return compileWriteRows(op); })
      .Default([](Operation *) { return Kernel(); });
}
