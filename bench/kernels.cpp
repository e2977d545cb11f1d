//===- kernels.cpp - how fast the CPU's kernels are -----------------------===//
//
// Each kernel on its shapes in a GPT-2, on one thread, in processor time: the best of a few calls,
// after a warm-up call. GB/s include only the bytes that a kernel must read and write once.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Kernels.h"
#include "base/WaitCounter.h"
#include "runtime/comm/Reduction.h"
#include "runtime/device/Work.h"
#include "runtime/numerics/Random.h"
#include "runtime/program/Shard.h"
#include "runtime/train/CheckpointLayout.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

using namespace base;
using namespace fsdp::rt;

namespace {

const char *wanted = "";

template <class Call>
void measure(const std::string &name, double flops, double bytes, double elements, Call call) {
  if (name.find(wanted) == std::string::npos)
    return;
  call();
  double best = 1e9;
  for (int i = 0; i < 7; ++i) {
    const double start = processorSeconds();
    call();
    best = std::min(best, processorSeconds() - start);
  }
  std::printf("%-44s %9.3f ms", name.c_str(), best * 1e3);
  const auto rate = [&](double work, const char *unit) {
    if (work > 0)
      std::printf(" %8.1f %-7s", work / best * 1e-9, unit);
    else
      std::printf(" %16s", "");
  };
  rate(flops, "GFLOP/s"), rate(bytes, "GB/s");
  std::printf(" %7.2f ns an element\n", best / elements * 1e9);
  std::fflush(stdout);
}

template <class T> std::vector<T> numbers(std::size_t count, float scale = 1) {
  std::vector<T> values(count);
  const Random random(1, hashName("numbers"));
  for (std::size_t i = 0; i < count; ++i)
    values[i] = scale * (random.uniform(i) - 0.5f);
  return values;
}

template <class T> void attention(const char *type, AttentionShape s) {
  const std::size_t rows = std::size_t(s.batch) * s.heads * s.queries, count = rows * s.width;
  const auto q = numbers<T>(count), k = numbers<T>(count), v = numbers<T>(count);
  const auto dOut = numbers<T>(count);
  std::vector<T> out(count), dQ(count), dK(count), dV(count);
  std::vector<float> sums(rows);
  const std::string shape = std::string(" ") + type + (s.causal ? " causal " : " whole ") +
                            std::to_string(s.queries) + "x" + std::to_string(s.width) +
                            (s.window ? " window " + std::to_string(s.window) : "");
  measure("attention" + shape, flopsOf(s), 0, double(count), [&] {
    kernels::attention(s, q.data(), k.data(), v.data(), nullptr, nullptr, out.data(), sums.data());
  });
  measure("attention_grad" + shape, 2.5 * flopsOf(s), 0, double(count), [&] {
    kernels::attentionGrad(s, q.data(), k.data(), v.data(), nullptr, nullptr, out.data(),
                           sums.data(), dOut.data(), dQ.data(), dK.data(), dV.data());
  });
  const auto bias = numbers<float>(std::size_t(s.queries) * s.keys); // one for all heads
  measure("biased_attention" + shape, flopsOf(s), 0, double(count), [&] {
    kernels::attention(s, q.data(), k.data(), v.data(), bias.data(), nullptr, out.data(),
                       sums.data());
  });
  measure("biased_attention_grad" + shape, 2.5 * flopsOf(s), 0, double(count), [&] {
    kernels::attentionGrad(s, q.data(), k.data(), v.data(), bias.data(), nullptr, out.data(),
                           sums.data(), dOut.data(), dQ.data(), dK.data(), dV.data());
  });
  std::vector<float> dBias(bias.size());
  measure("attention_bias_grad" + shape, flopsOf(s), 0, double(count), [&] {
    kernels::attentionBiasGrad(s, q.data(), k.data(), v.data(), bias.data(), nullptr, out.data(),
                               sums.data(), dOut.data(), dBias.data());
  });
}

template <class T> void rows(const std::string &type) {
  const double size = sizeof(T);
  {
    const NormRows shape{1024, 768, 1e-5};
    const std::size_t count = shape.rows * shape.width;
    const auto x = numbers<T>(count), dY = numbers<T>(count), scale = numbers<T>(shape.width);
    std::vector<T> y(count);
    std::vector<float> mean(shape.rows), rstd(shape.rows), dScale(shape.width), dBias(shape.width);
    measure("layer_norm " + type, 0, 2 * size * double(count), double(count), [&] {
      kernels::layerNorm(shape, x.data(), scale.data(), scale.data(), y.data(), mean.data(),
                         rstd.data());
    });
    measure("layer_norm_grad " + type, 0, 3 * size * double(count), double(count), [&] {
      kernels::layerNormGrad(shape, x.data(), scale.data(), mean.data(), rstd.data(), dY.data(),
                             y.data(), dScale.data(), dBias.data());
    });
    measure("rms_norm " + type, 0, 2 * size * double(count), double(count),
            [&] { kernels::rmsNorm(shape, x.data(), scale.data(), y.data(), rstd.data()); });
    measure("rms_norm_grad " + type, 0, 3 * size * double(count), double(count), [&] {
      kernels::rmsNormGrad(shape, x.data(), scale.data(), rstd.data(), dY.data(), y.data(),
                           dScale.data());
    });
    measure("softmax " + type, 0, 2 * size * double(count), double(count),
            [&] { kernels::softmax({shape.rows, shape.width}, x.data(), y.data()); });
    measure("rope " + type, 0, 2 * size * double(count), double(count),
            [&] { kernels::rope({12, 1024, 1, 64, 10000, false}, x.data(), y.data()); });
    StepState state{};
    const DropoutExtent extents[] = {{count, 1}};
    measure("dropout " + type, 0, 2 * size * double(count), double(count), [&] {
      kernels::dropout(0.1, hashName("drop"), 0, extents, 1, state, x.data(), y.data());
    });
  }
  const LogitRows shape{256, 50257};
  const std::size_t count = shape.rows * shape.classes;
  const auto logits = numbers<T>(count, 8);
  std::vector<T> gradients(count);
  std::vector<std::int32_t> labels(shape.rows, 7);
  std::vector<float> losses(shape.rows), sums(shape.rows), upstream(shape.rows, 1e-3f);
  measure("cross_entropy 50257 " + type, 0, size * double(count), double(count), [&] {
    kernels::crossEntropy(shape, logits.data(), labels.data(), losses.data(), sums.data());
  });
  measure("cross_entropy_grad 50257 " + type, 0, 2 * size * double(count), double(count), [&] {
    kernels::crossEntropyGrad(shape, logits.data(), labels.data(), sums.data(), upstream.data(),
                              gradients.data());
  });
  const EmbeddingShape table{1024, 50257, 768};
  const auto dOut = numbers<T>(table.ids * table.width);
  std::vector<std::int32_t> ids(table.ids);
  for (std::size_t i = 0; i < ids.size(); ++i)
    ids[i] = std::int32_t(i * 7919 % table.vocabulary);
  std::vector<float> dTable(table.vocabulary * table.width);
  measure("embedding_grad 50257 " + type, 0, 4.0 * double(dTable.size()), double(dTable.size()),
          [&] { kernels::embeddingGrad(table, ids.data(), dOut.data(), dTable.data()); });
  const auto other = numbers<T>(count / 4);
  std::vector<T> sum(count / 4);
  const void *sources[] = {logits.data(), other.data()};
  measure("sum of two ranks " + type, 0, 3 * size * double(count / 4), double(count / 4),
          [&] { reduceInRankOrder(sum.data(), sources, 2, count / 4, dtypeOf<T>, ReduceOp::Sum); });
}

void checkpoints() {
  constexpr std::size_t count = 1 << 24;
  static constexpr Parameter member[] = {
      {"p", nullptr, {count}, {count}, 0, Initializer::normal(0, 0.02), true}};
  static constexpr MeshAxis axes[] = {{"fsdp", 1}};
  const Storage storage{"unit", Layout::Flat, {0}, -1, 0, count, 0, ArenaSpan<float>{0, count},
                        {},     member};
  auto p = numbers<float>(count), g = numbers<float>(count, 1e-3f);
  measure("initial normals", 0, 4.0 * count, count,
          [&] { initializeShard(storage, {axes, {0}}, 1, p.data()); });
  std::vector<char> written(std::size_t(4) << 20);
  volatile std::uint64_t sum = 0;
  measure("checksum and copy of a checkpoint", 0, 4.0 * count, count, [&] {
    constexpr std::size_t block = 64 * 1024;
    for (std::size_t i = 0; i < count; i += block) {
      sum = sum + checksum(g.data() + i, i, block);
      std::memcpy(written.data() + i * sizeof(float) % written.size(), g.data() + i,
                  block * sizeof(float));
    }
  });
  double squares = 0;
  measure("square_sum", 0, 4.0 * count, count,
          [&] { kernels::squareSum(count, g.data(), &squares); });
}

} // namespace

int main(int argc, char **argv) {
  if (argc > 1)
    wanted = argv[1];
  for (const std::uint32_t length : {256, 1024})
    for (const bool causal : {true, false}) {
      const AttentionShape s = rowMajor({2, 6, 6, length, length, 64, 0.125f, causal});
      attention<float>("f32", s);
      attention<bf16>("bf16", s);
    }
  AttentionShape s = rowMajor({2, 6, 6, 1024, 1024, 64, 0.125f, true});
  s.window = 128;
  attention<float>("f32", s);
  attention<bf16>("bf16", s);
  rows<float>("f32");
  rows<bf16>("bf16");
  checkpoints();
  return 0;
}
