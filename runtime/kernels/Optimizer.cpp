//===- Optimizer.cpp ------------------------------------------------------===//

#include "runtime/kernels/Optimizer.h"

#include "runtime/program/Shard.h"

#include <algorithm>
#include <cmath>

namespace fsdp::rt::kernels {

namespace {

/// Calls `visit(begin, end, decay)` for the parts of a shard with and without weight decay, in
/// order, until they cover all of it. Padding has no gradient and is zero, so either kind suits it.
template <typename Visit> void forEachPart(ShardOf shard, bool anyDecay, Visit visit) {
  const Storage &storage = *shard.storage;
  const std::size_t count = storage.shard.count;
  const Table<Parameter> &members = storage.members;
  if (!anyDecay || storage.layout == Layout::Dimension)
    return visit(std::size_t(0), count, anyDecay && members[0].decay);

  const std::size_t first = static_cast<std::size_t>(shard.coordinate) * count;
  for (std::size_t m = 0; m < members.size(); ++m) {
    const std::size_t begin = std::max(m == 0 ? 0 : members[m].offset, first);
    const std::size_t end =
        std::min(m + 1 < members.size() ? members[m + 1].offset : first + count, first + count);
    if (begin < end)
      visit(begin - first, end - first, members[m].decay);
  }
}

struct AdamTerms {
  float beta1, beta2, epsilon, scale;
  float rate;      ///< lr / (1 - beta1^t)
  float secondFix; ///< 1 / sqrt(1 - beta2^t)
  float shrink;    ///< factor of the parameter (decoupled decay)
  float decay;     ///< added to the gradient, times the parameter
};

void adamPart(const AdamTerms &t, std::size_t begin, std::size_t end, float *__restrict p,
              float *__restrict m, float *__restrict v, const float *__restrict g) {
#pragma omp simd
  for (std::size_t i = begin; i < end; ++i) {
    const float gradient = g[i] * t.scale + t.decay * p[i];
    m[i] = t.beta1 * m[i] + (1.0f - t.beta1) * gradient;
    v[i] = t.beta2 * v[i] + (1.0f - t.beta2) * (gradient * gradient);
    // With epsilon 0 an element that never had a gradient would get 0 / 0.
    const float root = std::sqrt(v[i]) * t.secondFix + t.epsilon;
    p[i] = p[i] * t.shrink - t.rate * (root == 0 ? 0.0f : m[i] / root);
  }
}

AdamTerms termsOf(const Adam &options, float lr, const float *scale, std::int64_t update) {
  const auto t = static_cast<double>(update - options.deferred);
  return {options.beta1,
          options.beta2,
          options.epsilon,
          scale ? *scale : 1.0f,
          static_cast<float>(lr / (1 - std::pow(double(options.beta1), t))),
          static_cast<float>(1 / std::sqrt(1 - std::pow(double(options.beta2), t))),
          1.0f,
          0.0f};
}

} // namespace

void sgd(ShardOf shard, Sgd options, float *parameter, const float *gradient, float *buffer,
         float lr, const float *scale) {
  const float factor = scale ? *scale : 1.0f, momentum = options.momentum;
  const bool anyDecay = options.weightDecay != 0;
  forEachPart(shard, anyDecay, [&](std::size_t begin, std::size_t end, bool decays) {
    const float decay = decays ? options.weightDecay : 0.0f;
    float *__restrict p = parameter;
    const float *__restrict g = gradient;
    if (!buffer) {
#pragma omp simd
      for (std::size_t i = begin; i < end; ++i)
        p[i] -= lr * (g[i] * factor + decay * p[i]);
      return;
    }
    float *__restrict b = buffer;
#pragma omp simd
    for (std::size_t i = begin; i < end; ++i) {
      b[i] = momentum * b[i] + (g[i] * factor + decay * p[i]);
      p[i] -= lr * b[i];
    }
  });
}

void adam(ShardOf shard, Adam options, float *parameter, const float *gradient, float *first,
          float *second, float lr, const float *scale, std::int64_t update) {
  AdamTerms terms = termsOf(options, lr, scale, update);
  forEachPart(shard, options.weightDecay != 0,
              [&](std::size_t begin, std::size_t end, bool decays) {
                terms.decay = decays ? options.weightDecay : 0.0f;
                adamPart(terms, begin, end, parameter, first, second, gradient);
              });
}

void adamw(ShardOf shard, Adam options, float *parameter, const float *gradient, float *first,
           float *second, float lr, const float *scale, std::int64_t update) {
  AdamTerms terms = termsOf(options, lr, scale, update);
  forEachPart(
      shard, options.weightDecay != 0, [&](std::size_t begin, std::size_t end, bool decays) {
        terms.shrink = decays ? static_cast<float>(1 - double(lr) * options.weightDecay) : 1.0f;
        adamPart(terms, begin, end, parameter, first, second, gradient);
      });
}

void noteBadGradient(ShardOf shard, const float *gradient, std::int32_t &firstBad) {
  const Storage &storage = *shard.storage;
  for (const Run &run : partRuns(storage, shard.coordinate)) {
    const int parameter = storage.firstParameter + static_cast<int>(run.member);
    if (firstBad >= 0 && firstBad <= parameter)
      return;
    const float *begin = gradient + run.inShard;
    if (!std::all_of(begin, begin + run.count, [](float x) { return std::isfinite(x); }))
      firstBad = parameter;
  }
}

double squareSum(const float *values, std::size_t count) {
  // Sixteen lanes, added at the end: the order depends on the index alone.
  constexpr std::size_t lanes = 16;
  double sums[lanes] = {};
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
#pragma omp simd
    for (std::size_t lane = 0; lane < lanes; ++lane)
      sums[lane] += double(values[i + lane]) * double(values[i + lane]);
  for (std::size_t lane = 0; i < count; ++i, ++lane)
    sums[lane] += double(values[i]) * double(values[i]);
  double total = 0;
  for (double sum : sums)
    total += sum;
  return total;
}

} // namespace fsdp::rt::kernels
