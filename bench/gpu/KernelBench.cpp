//===- KernelBench.cpp - times every kernel of the runtime ----------------===//
//
// Each function of runtime/kernels/cuda/Kernels.h at its shapes in a model on one rank; functions
// that a model does not call, with tensors of its size. Bytes are those that a launch must read and
// write once.
//
//===----------------------------------------------------------------------===//

#include "DeviceBench.h"
#include "runtime/device/Work.h"
#include "test/unit/cuda/TestRules.h"

namespace fsdp::rt {

namespace {

/// Heads in the layout of the model's products: gpt2's queries, keys and values side by side.
AttentionShape headsOf(const Sizes &s, bool together) {
  const std::uint32_t width = s.width / s.heads;
  AttentionShape a = {s.batch, s.heads, s.groups, s.context, s.context, width, 0.125f, true};
  const std::size_t queries = std::size_t(s.heads) * width, keys = std::size_t(s.groups) * width;
  const std::size_t q = together ? queries + 2 * keys : queries, k = together ? q : keys;
  a.q = {s.context * q, width, q};
  a.k = {s.context * k, width, k};
  a.out = {s.context * queries, width, queries};
  a.part = queries;
  return a;
}

/// A dimension of `size` elements, all of which one rank has.
IndexShard ofSize(std::size_t size) {
  return {0, static_cast<std::int64_t>(size), static_cast<std::int64_t>(size), 0};
}

template <class T> struct Kernels {
  DeviceBench &bench;
  const Sizes &s;
  static constexpr double kSize = sizeof(T);
  const char *type = typeName<T>;

  template <class Call>
  void measure(const char *name, const std::string &shape, double bytes, Call call,
               double flops = 0) {
    bench.measure(name, type, shape, bytes, flops, call);
    bench.release();
  }

  void norms() {
    const NormRows shape{s.rows(), s.width, 1e-5};
    const std::size_t n = shape.rows * shape.width;
    const double size = kSize * double(n);
    const std::string text = by(shape.rows, shape.width);
    const auto stream = bench.stream();
    const bool layer = s.model.rfind("gpt2", 0) == 0;
    const auto take = [&] { return bench.take<T>(n); };
    for (const bool gradient : {false, true}) {
      const T *x = take(), *dY = gradient ? take() : nullptr, *scale = bench.take<T>(s.width);
      T *y = take();
      float *mean = bench.take<float>(shape.rows), *rstd = bench.take<float>(shape.rows);
      float *dScale = bench.take<float>(s.width), *dBias = bench.take<float>(s.width);
      const double bytes = (gradient ? 3 : 2) * size;
      if (layer && !gradient)
        measure("layer_norm", text, bytes,
                [&] { return layer_norm(shape, x, scale, scale, y, mean, rstd, stream); });
      else if (layer)
        measure("layer_norm_grad", text, bytes, [&] {
          return layer_norm_grad(shape, x, scale, mean, rstd, dY, y, dScale, dBias, stream);
        });
      else if (!gradient)
        measure("rms_norm", text, bytes,
                [&] { return rms_norm(shape, x, scale, y, rstd, stream); });
      else
        measure("rms_norm_grad", text, bytes,
                [&] { return rms_norm_grad(shape, x, scale, rstd, dY, y, dScale, stream); });
    }
  }

  /// The operands and results of attention and its gradients, allocated and released for each
  /// measurement. With queries, keys and values in one tensor, that of q holds all.
  struct Attention {
    AttentionShape shape;
    std::string text;
    double queries, operands; ///< bytes of one tensor of queries; of queries, keys and values
    const T *q, *k, *v, *dOut, *read;
    T *out, *dQ, *dK, *dV;
    float *sums;
  };
  Attention takeAttention(bool together) {
    const AttentionShape a = headsOf(s, together);
    const std::size_t n = s.rows() * s.width, m = s.rows() * s.groups * a.width,
                      all = together ? n + 2 * m : n;
    T *q = bench.take<T>(all), *dOut = bench.take<T>(n), *out = bench.take<T>(n),
      *dQ = bench.take<T>(all);
    const auto after = [&](T *place) { return together ? place + a.part : bench.take<T>(m); };
    T *k = after(q), *v = after(k), *dK = after(dQ), *dV = after(dK);
    return {a,
            by(s.batch, s.heads, s.groups, s.context, a.width),
            kSize * double(n),
            kSize * double(n + 2 * m),
            q,
            k,
            v,
            dOut,
            out,
            out,
            dQ,
            dK,
            dV,
            bench.take<float>(s.rows() * s.heads)};
  }

  void attentions() {
    const bool together = s.heads == s.groups;
    const auto stream = bench.stream();
    Attention x = takeAttention(together);
    measure(
        "attention", x.text, x.operands + x.queries,
        [&] { return attention(x.shape, x.q, x.k, x.v, nullptr, nullptr, x.out, x.sums, stream); },
        flopsOf(x.shape));
    x = takeAttention(together);
    measure(
        "attention_grad", x.text, 2 * x.operands + 2 * x.queries,
        [&] {
          return attention_grad(x.shape, x.q, x.k, x.v, nullptr, nullptr, x.read, x.sums, x.dOut,
                                x.dQ, x.dK, x.dV, stream);
        },
        2.5 * flopsOf(x.shape));
  }

  /// The same with a bias that is one for all heads.
  void biasedAttentions() {
    const std::size_t ofBias = std::size_t(s.context) * s.context;
    const double biasBytes = 4 * double(ofBias);
    const auto stream = bench.stream();
    const float *bias = nullptr;
    Attention x;
    const auto takeAgain = [&] {
      x = takeAttention(/*together=*/false);
      bias = bench.take<float>(ofBias);
    };
    takeAgain();
    measure(
        "biased_attention", x.text, x.operands + x.queries + biasBytes,
        [&] { return attention(x.shape, x.q, x.k, x.v, bias, nullptr, x.out, x.sums, stream); },
        flopsOf(x.shape));
    takeAgain();
    measure(
        "biased_attention_grad", x.text, 2 * (x.operands + x.queries + biasBytes),
        [&] {
          return attention_grad(x.shape, x.q, x.k, x.v, bias, nullptr, x.read, x.sums, x.dOut, x.dQ,
                                x.dK, x.dV, stream);
        },
        2.5 * flopsOf(x.shape));
    takeAgain();
    auto *dBias = bench.take<float>(ofBias);
    measure(
        "attention_bias_grad", x.text, x.operands + 2 * x.queries + 2 * biasBytes,
        [&] {
          return attention_bias_grad(x.shape, x.q, x.k, x.v, bias, nullptr, x.read, x.sums, x.dOut,
                                     dBias, stream);
        },
        flopsOf(x.shape));
  }

  /// One token of each sample, at the last position.
  void generation() {
    const std::uint32_t width = headsOf(s, false).width, context = std::uint32_t(s.context);
    const std::size_t n = std::size_t(s.batch) * s.heads * width, m = s.rows() * s.groups * width;
    const auto stream = bench.stream();
    const T *q = bench.take<T>(n), *v = bench.take<T>(m), *rows = bench.take<T>(n);
    T *k = bench.take<T>(m), *out = bench.take<T>(n);
    const std::vector<std::int32_t> last(s.batch, std::int32_t(s.context) - 1);
    auto *positions = bench.take<std::int32_t>(s.batch);
    if (positions)
      cudaMemcpy(positions, last.data(), last.size() * sizeof(last[0]), cudaMemcpyHostToDevice);
    cudaDeviceSynchronize();
    CachedAttentionShape shape{};
    shape.batch = std::uint32_t(s.batch), shape.heads = std::uint32_t(s.heads);
    shape.groups = std::uint32_t(s.groups), shape.queries = 1, shape.keys = context;
    shape.width = width, shape.scale = 0.125f;
    shape.q = {std::size_t(s.heads) * width, width, width};
    const std::int32_t *at = positions;
    bench.measure(
        "cached_attention", type, by(s.batch, s.heads, s.groups, s.context, width),
        kSize * double(2 * m + 2 * n), 4.0 * double(s.context) * double(n),
        [&] { return cached_attention(shape, q, static_cast<const T *>(k), v, at, out, stream); });
    bench.measure("write_rows", type, by(s.batch, s.groups, s.context, width),
                  2 * kSize * double(s.batch * s.groups * width), 0, [&] {
                    return write_rows(WriteShape{s.batch, s.groups, s.context, 1, width},
                                      static_cast<const T *>(k), rows, at, k, stream);
                  });
  }

  void losses() {
    const LogitRows shape{s.rows(), s.classes};
    const std::size_t n = shape.rows * shape.classes;
    const double size = kSize * double(n);
    const std::string text = by(shape.rows, shape.classes);
    const auto stream = bench.stream();
    T *logits = bench.take<T>(n);
    const auto *labels = bench.take<std::int32_t>(shape.rows);
    float *losses = bench.take<float>(shape.rows), *sums = bench.take<float>(shape.rows),
          *picked = bench.take<float>(shape.rows);
    auto *count = bench.take<std::int64_t>(1);
    if (count)
      shard_size(ofSize(s.classes), count, stream);
    bench.measure("cross_entropy", type, text, size, 0, [&] {
      return cross_entropy(shape, static_cast<const T *>(logits), labels, losses, sums, stream);
    });
    bench.measure("partial_cross_entropy", type, text, size, 0, [&] {
      return partial_cross_entropy(shape, static_cast<const T *>(logits), labels, count, losses,
                                   sums, picked, stream);
    });
    measure("cross_entropy_grad", text, 2 * size, [&] { // in place, as programs do
      return cross_entropy_grad(shape, static_cast<const T *>(logits), labels, sums, losses, logits,
                                stream);
    });
  }

  void tables() {
    const EmbeddingShape shape{s.rows(), s.classes, s.width};
    const std::size_t n = shape.ids * shape.width, table = shape.vocabulary * shape.width;
    const std::string text = by(shape.ids, shape.vocabulary, shape.width);
    const auto stream = bench.stream();
    const T *rows = bench.take<T>(table);
    T *out = bench.take<T>(n);
    float *gradient = bench.take<float>(table);
    std::vector<std::int32_t> ids(shape.ids);
    for (std::size_t i = 0; i < ids.size(); ++i)
      ids[i] = static_cast<std::int32_t>(i * 7919 % shape.vocabulary);
    auto *ids_ = bench.take<std::int32_t>(shape.ids);
    if (ids_)
      cudaMemcpy(ids_, ids.data(), ids.size() * sizeof(ids[0]), cudaMemcpyHostToDevice);
    cudaDeviceSynchronize();
    const std::int32_t *idsOf = ids_;
    bench.measure("embedding", type, text, 2 * kSize * double(n), 0,
                  [&] { return embedding(shape, rows, idsOf, out, stream); });
    auto *own = bench.take<std::int32_t>(shape.ids);
    SequenceShape ends{};
    ends.rows = s.batch, ends.positions = s.context, ends.length = 1;
    bench.measure("positions_since", "i32", by(s.batch, s.context), 8.0 * double(shape.ids), 0,
                  [&] { return positions_since(ends, idsOf, own, stream); });
    bench.measure("shard_indices", "i32", by(shape.ids), 8.0 * double(shape.ids), 0, [&] {
      const auto classes = static_cast<std::int64_t>(s.classes);
      return shard_indices(IndexShard{shape.ids, classes, classes / 2, 1}, idsOf, own, stream);
    });
    measure("embedding_grad", text, kSize * double(n) + 4 * double(table), [&] {
      return embedding_grad(shape, idsOf, static_cast<const T *>(out), gradient, stream);
    });
  }

  /// Kernels of one operand and one result.
  void unary() {
    const std::size_t n = s.rows() * s.width;
    const double bytes = 2 * kSize * double(n);
    const auto stream = bench.stream();
    const T *x = bench.take<T>(n);
    T *y = bench.take<T>(n);
    const auto *state = bench.take<StepState>(1);
    const auto one = [&](const char *name, const std::string &shape, double moved, auto call) {
      bench.measure(name, type, shape, moved, 0, call);
    };
    one("rope", by(s.batch, s.context, s.heads, s.width / s.heads), bytes, [&] {
      return rope({s.batch, s.context, s.heads, s.width / s.heads, 10000, false}, x, y, stream);
    });
    one("softmax", by(s.rows(), s.width), bytes,
        [&] { return softmax({s.rows(), s.width}, x, y, stream); });
    one("scan_sum", by(s.rows(), s.width), bytes,
        [&] { return scan_sum({s.rows(), s.width, 1, false, false}, x, y, stream); });
    one("dropout", by(s.rows(), s.width), bytes,
        [&] { return dropout(DropoutMask<1>{0.1, 1, 0, {{n, 1}}}, state, x, y, stream); });
    const Part half = {s.rows(), s.width, 0, s.width / 2};
    one("slice", by(s.rows(), s.width / 2), bytes / 2, [&] { return slice(half, x, y, stream); });
    one("pad", by(s.rows(), s.width), bytes * 0.75, [&] { return pad(half, x, y, stream); });
    one("concat", by(s.rows(), s.width / 2, 2), bytes, [&] {
      return concat(Join<2>{s.rows(), {s.width / 2, s.width / 2}}, x, x + n / 2, y, stream);
    });
    const ShardLayout tile{1, s.rows() / 2, s.width, s.rows()};
    one("slice_piece", by(tile.local, s.width), bytes / 2,
        [&] { return slice_piece(tile, 1, sizeof(T), x, y, stream); });
    one("pack_pieces", by(tile.total, s.width), bytes,
        [&] { return pack_pieces(tile, 2, sizeof(T), x, y, stream); });
    one("unpack_pieces", by(tile.total, s.width), bytes,
        [&] { return unpack_pieces(tile, 2, sizeof(T), x, y, stream); });
    RankSources sources = {2, {x, x + n / 2}};
    one("reduce_in_rank_order", by(2, n / 2), 0.75 * bytes,
        [&] { return reduce_in_rank_order(sources, y, n / 2, dtypeOf<T>, ReduceOp::Sum, stream); });
    bench.release();
  }

  /// Of f32 in every program, over the parameters of a block.
  void updates() {
    type = "f32";
    const std::size_t n = s.unit;
    const Shape shape{static_cast<std::int64_t>(n)};
    const Parameter member[] = {{"p", nullptr, shape, shape, 0, Initializer::zeros(), true}};
    Storage storage = {
        "unit", Layout::Flat, {}, 0, 0, n, 0, Buffer(), {}, Table<Parameter>(member)};
    storage.shard.count = n;
    const ShardOf shard{&storage, 0};
    const auto stream = bench.stream();
    float *p = bench.take<float>(n), *g = bench.take<float>(n), *m = bench.take<float>(n),
          *v = bench.take<float>(n), *lr = bench.take<float>(1);
    auto *ok = bench.take<bool>(1);
    auto *bad = bench.take<std::int32_t>(1);
    auto *state = bench.take<StepState>(1);
    auto *sum = bench.take<double>(1);
    if (ok)
      cudaMemset(ok, 1, 1);
    const auto one = [&](const char *name, double perElement, auto call) {
      bench.measure(name, type, by(n), perElement * double(n), 0, call);
    };
    // The loop around a program's update rule, with rules as short as those of tests are.
    one("update, two states", 28,
        [&] { return average(shard, false, g, lr, nullptr, ok, state, p, m, v, bad, stream); });
    one("update, no state", 12,
        [&] { return descend(shard, false, g, lr, nullptr, ok, state, p, bad, stream); });
    one("square_sum", 4, [&] { return square_sum(n, g, sum, stream); });
    one("square_sums", 4,
        [&] { return square_sums(Counts<2>{{n / 2, n - n / 2}}, g, g + n / 2, sum, stream); });
    bench.release();
  }

  /// Launches of one thread: their time is that of a launch.
  void control() {
    type = "-";
    const auto stream = bench.stream();
    auto *state = bench.take<StepState>(1);
    auto *bad = bench.take<BadGradients>(1);
    auto *ok = bench.take<bool>(1);
    float *lr = bench.take<float>(1);
    auto *count = bench.take<std::int64_t>(1);
    const auto one = [&](const char *name, auto call) {
      bench.measure(name, type, "1", 0, 0, call);
    };
    one("learning_rate", [&] { return learning_rate(state, lr, stream); });
    float *scale = bench.take<float>(1);
    one("clip_scale",
        [&] { return clip_scale(state, static_cast<const float *>(lr), scale, stream); });
    one("sample_count", [&] { return sample_count(state, count, stream); });
    one("microbatch_samples",
        [&] { return microbatch_samples(Microbatches{1, 2, 2, 0}, state, count, stream); });
    one("next_microbatch", [&] { return next_microbatch(2, state, state, stream); });
    one("acceptable", [&] {
      return acceptable(state, static_cast<const float *>(lr), static_cast<const float *>(lr), ok,
                        stream);
    });
    one("advance", [&] { return advance(state, ok, bad, state, bad, stream); });
    one("shard_size", [&] { return shard_size(ofSize(2), count, stream); });
    one("shard_offset", [&] { return shard_offset(ofSize(2), count, stream); });
    bench.release();
  }

  void all() {
    norms();
    attentions();
    biasedAttentions();
    generation();
    losses();
    tables();
    unary();
    updates();
    control();
  }
};

} // namespace

void benchKernels(DeviceBench &bench, const Sizes &sizes) {
  bench.section(sizes.model, "kernels");
  if (sizes.model == "gpt2-124m-f32")
    Kernels<float>{bench, sizes}.all();
  else
    Kernels<bf16>{bench, sizes}.all();
}

} // namespace fsdp::rt
