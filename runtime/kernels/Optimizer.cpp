//===- Optimizer.cpp ------------------------------------------------------===//

#include "runtime/kernels/Optimizer.h"
#include "runtime/kernels/Kernels.h"

#include "runtime/device/Workers.h"
#include "runtime/device/Workspace.h"
#include "runtime/program/Shard.h"

#include <algorithm>
#include <cmath>

namespace fsdp::rt::kernels {

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

void forEachUpdateRange(ShardOf shard, UpdateStep step,
                        void (*update)(const void *self, std::int64_t begin, std::int64_t end,
                                       const UpdateStep &step),
                        const void *self) {
  const float rate = step.lr;
  forEachUpdatePart(shard, [&](std::size_t begin, std::size_t end, UpdateSetting setting) {
    step.lr = rate * setting.rateScale;
    step.decays = setting.decays;
    forEachPart(end - begin, 1, 64, [&](std::size_t first, std::size_t last) {
      update(self, static_cast<std::int64_t>(begin + first),
             static_cast<std::int64_t>(begin + last), step);
    });
  });
}

/// The same of one block of the numbers.
static double squareSumOfBlock(std::size_t count, const float *values) {
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

void squareSum(std::size_t count, const float *values, double *out) {
  constexpr std::size_t block = std::size_t(1) << 18;
  const std::size_t blocks = (count + block - 1) / block;
  auto *sums = static_cast<double *>(Workspace::ofThread().reserve(blocks * sizeof(double)));
  forEachPiece(blocks, [&](std::size_t piece, std::size_t) {
    const std::size_t begin = piece * block;
    sums[piece] = squareSumOfBlock(std::min(block, count - begin), values + begin);
  });
  double total = 0;
  for (std::size_t i = 0; i < blocks; ++i)
    total += sums[i];
  *out = total;
}

} // namespace fsdp::rt::kernels
