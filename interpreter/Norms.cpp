//===- Norms.cpp - evaluation of softmax and normalizations ---------------===//

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

/// Allocates the results of `types`.
void allocate(ArrayRef<RankedTensorType> types, MutableArrayRef<Tensor> out) {
  for (auto [type, tensor] : llvm::zip_equal(types, out))
    tensor = Tensor(type);
}

SmallVector<RankedTensorType> resultTypes(Operation *op) {
  return llvm::map_to_vector(op->getResultTypes(),
                             [](Type type) { return cast<RankedTensorType>(type); });
}

} // namespace

static Kernel compileSoftmax(SoftmaxOp op, Numerics numerics) {
  RankedTensorType type = op.getX().getType();
  Rows rows(type);
  Rounding round(type.getElementType(), numerics);
  return makeKernel(type, [=](ArrayRef<Tensor> in, Element *to) {
    for (int64_t row = 0; row < rows.count; ++row) {
      const Element *x = in[0].data() + row * rows.width;
      Element *y = to + row * rows.width;
      double largest = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t i = 0; i < rows.width; ++i)
        largest = std::max(largest, x[i].f);
      for (int64_t i = 0; i < rows.width; ++i)
        sum += RoundingNoise::held(std::exp(x[i].f - largest));
      for (int64_t i = 0; i < rows.width; ++i)
        y[i].f = round(RoundingNoise::held(std::exp(x[i].f - largest)) / sum);
    }
  });
}

static Kernel compileLayerNorm(LayerNormOp op, Numerics numerics) {
  Rows rows(op.getX().getType());
  double eps = op.getEps().convertToDouble(), width = static_cast<double>(rows.width);
  Type element = op.getX().getType().getElementType();
  Rounding round(element, numerics), roundSum(getSumType(element), numerics);
  return [=, types = resultTypes(op)](ArrayRef<Tensor> in, MutableArrayRef<Tensor> out) {
    allocate(types, out);
    const Element *scale = in[1].data(), *bias = in[2].data();
    for (int64_t row = 0; row < rows.count; ++row) {
      const Element *x = in[0].data() + row * rows.width;
      Element *y = out[0].mutableData() + row * rows.width;
      double mean = 0, variance = 0;
      for (int64_t i = 0; i < rows.width; ++i)
        mean += x[i].f / width;
      mean = RoundingNoise::held(mean);
      for (int64_t i = 0; i < rows.width; ++i)
        variance += (x[i].f - mean) * (x[i].f - mean) / width;
      double rstd = RoundingNoise::held(1 / std::sqrt(variance + eps));
      for (int64_t i = 0; i < rows.width; ++i)
        y[i].f = round(RoundingNoise::held(RoundingNoise::held(x[i].f - mean) * rstd * scale[i].f) +
                       bias[i].f);
      out[1].mutableData()[row].f = roundSum(mean);
      out[2].mutableData()[row].f = roundSum(rstd);
    }
  };
}

static Kernel compileRmsNorm(RmsNormOp op, Numerics numerics) {
  Rows rows(op.getX().getType());
  double eps = op.getEps().convertToDouble(), width = static_cast<double>(rows.width);
  Type element = op.getX().getType().getElementType();
  Rounding round(element, numerics), roundSum(getSumType(element), numerics);
  return [=, types = resultTypes(op)](ArrayRef<Tensor> in, MutableArrayRef<Tensor> out) {
    allocate(types, out);
    for (int64_t row = 0; row < rows.count; ++row) {
      const Element *x = in[0].data() + row * rows.width;
      Element *y = out[0].mutableData() + row * rows.width;
      double square = 0;
      for (int64_t i = 0; i < rows.width; ++i)
        square += x[i].f * x[i].f / width;
      double rstd = 1 / std::sqrt(square + eps);
      for (int64_t i = 0; i < rows.width; ++i)
        y[i].f = round(x[i].f * rstd * in[1].getFloat(i));
      out[1].mutableData()[row].f = roundSum(rstd);
    }
  };
}

/// Both norms: the layer norm subtracts means and has the gradient of a bias, the RMS norm has
/// neither.
static Kernel compileNormGrad(Operation *op, bool centered, Numerics numerics) {
  SmallVector<RankedTensorType> types = resultTypes(op);
  Rows rows(types[0]);
  double width = static_cast<double>(rows.width);
  Type element = types[0].getElementType();
  Rounding round(element, numerics), roundSum(getSumType(element), numerics);
  return [=](ArrayRef<Tensor> in, MutableArrayRef<Tensor> out) {
    allocate(types, out);
    const size_t operands = centered ? 5 : 4, sums = centered ? 3 : 2; // without the joined ones
    const Tensor &rstds = in[operands - 2], &cotangent = in[operands - 1];
    std::vector<double> scaleSum(rows.width), biasSum(rows.width), n(rows.width), g(rows.width),
        rowSum(rows.width);
    for (int64_t row = 0; row < rows.count; ++row) {
      double mean = centered ? in[2].getFloat(row) : 0, rstd = rstds.getFloat(row);
      double meanG = 0, meanGN = 0;
      for (int64_t i = 0; i < rows.width; ++i) {
        double d = cotangent.getFloat(row * rows.width + i);
        n[i] = RoundingNoise::held((in[0].getFloat(row * rows.width + i) - mean) * rstd);
        g[i] = RoundingNoise::held(d * in[1].getFloat(i));
        meanG += centered ? g[i] / width : 0;
        meanGN += g[i] * n[i] / width;
        scaleSum[i] = RoundingNoise::held(scaleSum[i] + d * n[i]);
        biasSum[i] = RoundingNoise::held(biasSum[i] + d);
      }
      meanG = RoundingNoise::held(meanG), meanGN = RoundingNoise::held(meanGN);
      Element *to = out[0].mutableData() + row * rows.width;
      for (int64_t i = 0; i < rows.width; ++i) {
        double total = rstd * (g[i] - meanG - n[i] * meanGN);
        if (in.size() > operands)
          total = RoundingNoise::held(total) + in[operands].getFloat(row * rows.width + i);
        rowSum[i] = RoundingNoise::held(rowSum[i] + total);
        to[i].f = round(total);
      }
    }
    for (int64_t i = 0; i < rows.width; ++i) {
      out[1].mutableData()[i].f = roundSum(scaleSum[i]);
      if (centered)
        out[2].mutableData()[i].f = roundSum(biasSum[i]);
      if (out.size() > sums)
        out[sums].mutableData()[i].f = roundSum(rowSum[i]);
    }
  };
}

Kernel mlir::fsdp::interpreter::detail::compileNorm(Operation *op, Numerics numerics) {
  return llvm::TypeSwitch<Operation *, Kernel>(op)
      .Case([&](SoftmaxOp op) { return compileSoftmax(op, numerics); })
      .Case([&](LayerNormOp op) { return compileLayerNorm(op, numerics); })
      .Case([&](RmsNormOp op) { return compileRmsNorm(op, numerics); })
      .Case([&](LayerNormGradOp op) { return compileNormGrad(op, true, numerics); })
      .Case([&](RmsNormGradOp op) { return compileNormGrad(op, false, numerics); })
      .Default([](Operation *) { return Kernel(); });
}
