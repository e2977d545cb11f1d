// The bits of kernels do not depend on the number of threads.
#include "runtime/comm/Reduction.h"
#include "runtime/device/StreamingStores.h"
#include "runtime/device/Workers.h"
#include "runtime/kernels/Gemm.h"
#include "runtime/kernels/Kernels.h"
#include "runtime/kernels/Optimizer.h"
#include "runtime/kernels/RowOrder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace fsdp::rt;

namespace {

/// Numbers in [-1, 1), the same ones each time.
template <class T> std::vector<T> numbers(std::size_t count, std::uint32_t seed) {
  std::vector<T> values(count);
  for (T &value : values) {
    seed = seed * 1664525 + 1013904223;
    value = T(float(int(seed >> 8)) / 8388608.0f - 1.0f);
  }
  return values;
}

std::vector<std::int32_t> ids(std::size_t count, std::uint32_t below) {
  std::vector<std::int32_t> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<std::int32_t>(std::uint32_t(i * 2654435761u) >> 8) % int(below);
  return values;
}

/// What a kernel writes, with other numbers before.
template <class T> struct Result {
  std::vector<T> values;
  explicit Result(std::size_t count) : values(count, T(-7.0f)) {}
  operator T *() { return values.data(); }
  std::string bytes() const {
    return {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T)};
  }
};

/// Runs `kernel`, which returns the bytes of its results, on a thread with this many.
std::string bytesOn(int threads, const std::function<std::string()> &kernel) {
  std::string bytes;
  std::thread([&] {
    std::optional<Workers> workers;
    if (threads > 0)
      Workers::setOfThread(&workers.emplace(threads));
    bytes = kernel();
    if (threads > 0) { // with what is prepared and reserved
      const std::string again = kernel();
      EXPECT_TRUE(again == bytes) << "another result in the second call";
    }
  }).join();
  return bytes;
}

void expectSameBits(const std::string &name, const std::function<std::string()> &kernel) {
  const std::string alone = bytesOn(0, kernel);
  for (int threads : {1, 2, 3, 4, 6})
    EXPECT_TRUE(bytesOn(threads, kernel) == alone) << name << " on " << threads << " threads";
}

/// A product, row-major, of sides that lie row by row or column by column.
Gemm gemmOf(std::int64_t m, std::int64_t n, std::int64_t k, bool turnsA, bool turnsB) {
  Gemm g;
  g.m = m, g.n = n, g.k = k;
  g.a = turnsA ? GemmStrides{1, m, {}} : GemmStrides{k, 1, {}};
  g.b = turnsB ? GemmStrides{1, k, {}} : GemmStrides{n, 1, {}};
  g.c = {n, 1, {}};
  return g;
}

/// Adds up over the rows of a product, as an emitted kernel does, and negates it in place.
struct Epilogue {
  std::int64_t rows, columns;
  float *product, *sums;

  void perform(std::int64_t begin, std::int64_t end, ColumnPart part) const {
    const std::int64_t first = part.begin(columns), last = part.end(columns);
    if (begin == 0)
      std::fill(sums + first, sums + last, 0.0f);
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t j = first; j < last; ++j) {
        sums[j] += product[i * columns + j];
        product[i * columns + j] = -product[i * columns + j];
      }
  }
  EpilogueCallback callback(bool sumsUp) {
    EpilogueCallback done;
    done.self = this;
    if (!sumsUp) { // of rows that are told of in any order
      done.call = [](void *self, std::int64_t begin, std::int64_t end) {
        const auto &epilogue = *static_cast<Epilogue *>(self);
        for (std::int64_t i = begin * epilogue.columns; i < end * epilogue.columns; ++i)
          epilogue.product[i] *= 3;
      };
      return done;
    }
    done.call = [](void *self, std::int64_t begin, std::int64_t end) {
      static_cast<Epilogue *>(self)->perform(begin, end, {});
    };
    done.callColumns = [](void *self, std::int64_t rows, ColumnPart columns) {
      static_cast<Epilogue *>(self)->perform(0, rows, columns);
    };
    return done;
  }
};

template <class In> void expectSameProducts(const std::string &type) {
  struct Case {
    const char *name;
    std::int64_t m, n, k;
    bool turnsA, turnsB;
  };
  for (const Case &each :
       {Case{"small", 70, 96, 64, false, false}, Case{"forward", 1100, 320, 96, false, false},
        Case{"gradient of x", 1100, 96, 320, false, true},
        Case{"gradient of w", 520, 1100, 2200, true, false},
        Case{"wide", 530, 40, 3000, true, true}}) {
    const Gemm g = gemmOf(each.m, each.n, each.k, each.turnsA, each.turnsB);
    const auto a = numbers<In>(std::size_t(g.m * g.k), 1),
               b = numbers<In>(std::size_t(g.k * g.n), 2);
    for (int epilogue : {0, 1, 2})
      expectSameBits(type + " product, " + each.name, [&] {
        Result<float> c(std::size_t(g.m * g.n)), sums(std::size_t(g.n));
        Epilogue end{g.m, g.n, c, sums};
        kernels::gemm(g, a.data(), b.data(), static_cast<float *>(c),
                      epilogue ? end.callback(epilogue == 2) : EpilogueCallback());
        return c.bytes() + sums.bytes();
      });
  }
  Gemm batched = gemmOf(33, 40, 24, false, true);
  batched.batch[0] = 3, batched.batch[2] = 4;
  for (GemmStrides *x : {&batched.a, &batched.b, &batched.c}) {
    x->batch[2] = 33 * 40;
    x->batch[0] = 4 * 33 * 40;
  }
  const auto a = numbers<In>(12 * 33 * 40, 3), b = numbers<In>(12 * 33 * 40, 4);
  expectSameBits(type + " products of a batch", [&] {
    Result<float> c(12 * 33 * 40);
    kernels::gemm(batched, a.data(), b.data(), static_cast<float *>(c));
    return c.bytes();
  });
}

/// Of one row and more: columns that are no multiple of a vector, several groups of them; sums that
/// are added to what is there; a left side with gaps.
template <class In, class Out> void expectSameProductsOfFewRows(const std::string &type) {
  for (std::int64_t rows : {1, 2, 3, 4, 5})
    for (bool turns : {false, true})
      for (float beta : {0.0f, 1.0f}) {
        Gemm g = gemmOf(rows, 1357, 270, rows % 2 == 0, turns);
        g.beta = beta;
        const auto a = numbers<In>(std::size_t(g.m * g.k), 1),
                   b = numbers<In>(std::size_t(g.k * g.n), 2);
        expectSameBits(type + " product of few rows", [&] {
          Result<Out> c(std::size_t(g.m * g.n));
          kernels::gemm(g, a.data(), b.data(), static_cast<Out *>(c));
          return c.bytes();
        });
      }
}

TEST(Threads, DoNotChangeProductsOfFewRows) {
  expectSameProductsOfFewRows<float, float>("f32");
  expectSameProductsOfFewRows<bf16, bf16>("bf16");
  expectSameProductsOfFewRows<bf16, float>("bf16 to f32");
}

TEST(Threads, DoNotChangeProducts) {
  expectSameProducts<float>("f32");
  expectSameProducts<bf16>("bf16");
}

template <class T> void expectSameAttention(const std::string &type) {
  for (bool packed : {false, true}) {
    AttentionShape shape = rowMajor({2, 4, 2, 70, 70, 24, 0.2f, true});
    std::size_t stride = 24;
    if (packed) { // (batch, positions, heads and groups, width)
      shape.q = shape.out = {70 * 4 * 24, 24, 4 * 24};
      shape.k = {70 * 2 * 24, 24, 2 * 24};
    }
    const std::size_t queries = 2 * 4 * 70 * stride, keys = 2 * 2 * 70 * stride;
    const auto q = numbers<T>(queries, 1), k = numbers<T>(keys, 2), v = numbers<T>(keys, 3),
               d = numbers<T>(queries, 4);
    const auto bias = numbers<float>(4 * 70 * 70, 5);
    for (std::size_t ofHead : {0, 70 * 70}) {
      AttentionShape biased = shape;
      biased.bias = ofHead;
      expectSameBits(type + " attention", [&] {
        Result<T> out(queries), dQ(queries), dK(keys), dV(keys), biasedOut(queries);
        Result<float> sums(2 * 4 * 70), biasedSums(2 * 4 * 70), dBias(4 * 70 * 70);
        kernels::attention<T>(shape, q.data(), k.data(), v.data(), nullptr, nullptr, out, sums);
        kernels::attentionGrad<T>(shape, q.data(), k.data(), v.data(), nullptr, nullptr, out, sums,
                                  d.data(), dQ, dK, dV);
        kernels::attention<T>(biased, q.data(), k.data(), v.data(), bias.data(), nullptr, biasedOut,
                              biasedSums);
        kernels::attentionBiasGrad<T>(biased, q.data(), k.data(), v.data(), bias.data(), nullptr,
                                      biasedOut, biasedSums, d.data(), dBias);
        return out.bytes() + sums.bytes() + dQ.bytes() + dK.bytes() + dV.bytes() +
               biasedOut.bytes() + biasedSums.bytes() + dBias.bytes();
      });
    }
  }
}

/// Of few heads queries are shared, too.
template <class T> void expectSameAttentionOfFewHeads(const std::string &type) {
  const AttentionShape shape = rowMajor({1, 2, 1, 300, 300, 16, 0.25f, true});
  const auto q = numbers<T>(2 * 300 * 16, 1), k = numbers<T>(300 * 16, 2),
             v = numbers<T>(300 * 16, 3);
  expectSameBits(type + " attention of few heads", [&] {
    Result<T> out(2 * 300 * 16);
    Result<float> sums(2 * 300);
    kernels::attention<T>(shape, q.data(), k.data(), v.data(), nullptr, nullptr, out, sums);
    return out.bytes() + sums.bytes();
  });
}

TEST(Threads, DoNotChangeAttention) {
  expectSameAttentionOfFewHeads<float>("f32");
  expectSameAttentionOfFewHeads<bf16>("bf16");
  expectSameAttention<float>("f32");
  expectSameAttention<bf16>("bf16");
}

/// One query, and a few, of a kept context.
template <class T> void expectSameCachedAttention(const std::string &type) {
  for (std::uint32_t queries : {1u, 3u}) {
    CachedAttentionShape shape{2, 6, 3, queries, 200, 40, 0.2f, 150, 0, {}};
    shape.q = {std::size_t(6) * queries * 40, std::size_t(queries) * 40, 40};
    const std::size_t count = 2 * shape.q.batch, kept = 2 * 3 * 200 * 40;
    const auto q = numbers<T>(count, 1), k = numbers<T>(kept, 2), v = numbers<T>(kept, 3);
    std::vector<std::int32_t> positions(2 * queries);
    for (std::uint32_t i = 0; i < 2 * queries; ++i)
      positions[i] = std::int32_t(170 + i % queries);
    expectSameBits(type + " attention to kept keys", [&] {
      Result<T> out(count);
      kernels::cachedAttention<T>(shape, q.data(), k.data(), v.data(), positions.data(), out);
      return out.bytes();
    });
  }
}

TEST(Threads, DoNotChangeCachedAttention) {
  expectSameCachedAttention<float>("f32");
  expectSameCachedAttention<bf16>("bf16");
}

template <class T> void expectSameDraws(const std::string &type) {
  const auto x = numbers<T>(400 * 131, 1);
  StepState state{};
  state.seed = 3;
  const DropoutExtent flat[] = {{400 * 131 - 3, 1}}, rows[] = {{8, 100000}, {50, 1001}, {131, 1}};
  expectSameBits(type + " dropout", [&] {
    Result<T> all(400 * 131), some(400 * 131);
    kernels::dropout<T>(0.3, 7, 5, flat, 1, state, x.data(), all);
    kernels::dropout<T>(0.3, 7, 6, rows, 3, state, x.data(), some);
    return all.bytes() + some.bytes();
  });
}

template <class T> void expectSameScans(const std::string &type) {
  const auto x = numbers<T>(3 * 70 * 601, 1);
  for (ScanShape shape : {ScanShape{3, 70, 601, false, false}, ScanShape{3, 70, 601, true, true},
                          ScanShape{601, 210, 1, false, true}, ScanShape{1, 210, 601, true, false}})
    expectSameBits(type + " cumulative sums", [&] {
      Result<T> y(3 * 70 * 601);
      kernels::scan_sum<T>(shape, x.data(), y);
      return y.bytes();
    });
}

TEST(Threads, DoNotChangeDropoutAndCumulativeSums) {
  expectSameDraws<float>("f32");
  expectSameDraws<bf16>("bf16");
  expectSameScans<float>("f32");
  expectSameScans<bf16>("bf16");
}

/// What a communicator does with the numbers of its ranks.
template <class T> void expectSameReductions(const std::string &type) {
  constexpr std::size_t count = (std::size_t(4) << 20) / sizeof(T) + 77;
  std::vector<std::vector<T>> ranks;
  std::vector<const void *> sources;
  for (std::uint32_t rank = 0; rank < 6; ++rank)
    sources.push_back(ranks.emplace_back(numbers<T>(count, rank)).data());
  for (int number : {1, 2, 6})
    for (std::size_t size : {std::size_t(50021), count}) // through the caches, and past them
      for (ReduceOp op : {ReduceOp::Sum, ReduceOp::Max})
        expectSameBits(type + " reduction of ranks", [&] {
          Result<T> apart(count);
          std::vector<T> inPlace = ranks[0];
          reduceInRankOrder(apart, sources.data(), number, size, dtypeOf<T>, op);
          std::vector<const void *> own = sources;
          own[0] = inPlace.data();
          reduceInRankOrder(inPlace.data(), own.data(), number, size, dtypeOf<T>, op);
          EXPECT_TRUE(std::memcmp(apart.values.data(), inPlace.data(), size * sizeof(T)) == 0);
          return apart.bytes();
        });
}

TEST(Threads, DoNotChangeCollectives) {
  expectSameReductions<float>("f32");
  expectSameReductions<bf16>("bf16");
  const auto from = numbers<float>(3000000, 1);
  expectSameBits("copies between ranks", [&] {
    Result<float> to(3000000);
    std::size_t at = 0;
    for (std::size_t bytes : {0, 1, 65535, 65536, 100003, 4194304, 6000001}) {
      char *target = reinterpret_cast<char *>(to.values.data()) + at;
      copyBytes(target, reinterpret_cast<const char *>(from.data()) + 3, bytes);
      EXPECT_TRUE(std::memcmp(target, reinterpret_cast<const char *>(from.data()) + 3, bytes) == 0);
      at += bytes + 5;
    }
    return to.bytes();
  });
}

template <class T> void expectSameRows(const std::string &type) {
  const std::size_t rows = 1301, width = 130, count = rows * width;
  const auto x = numbers<T>(count, 1), dY = numbers<T>(count, 2), scale = numbers<T>(width, 3),
             bias = numbers<T>(width, 4);
  const NormRows norm{rows, width, 1e-5};
  expectSameBits(type + " norms", [&] {
    Result<T> y(count), dX(count), z(count), dZ(count);
    Result<float> mean(rows), rstd(rows), dScale(width), dBias(width), other(rows), dOther(width);
    kernels::layerNorm<T>(norm, x.data(), scale.data(), bias.data(), y, mean, rstd);
    kernels::layerNormGrad<T>(norm, x.data(), scale.data(), mean, rstd, dY.data(), dX, dScale,
                              dBias);
    kernels::rmsNorm<T>(norm, x.data(), scale.data(), z, other);
    kernels::rmsNormGrad<T>(norm, x.data(), scale.data(), other, dY.data(), dZ, dOther);
    return y.bytes() + mean.bytes() + rstd.bytes() + dX.bytes() + dScale.bytes() + dBias.bytes() +
           z.bytes() + other.bytes() + dZ.bytes() + dOther.bytes();
  });
  const auto labels = ids(rows, width);
  const auto upstream = numbers<float>(rows, 5);
  const std::int64_t classes = 100;
  expectSameBits(type + " losses", [&] {
    Result<T> y(count), d(count), part(count);
    Result<float> losses(rows), sums(rows), tops(rows), partial(rows), picked(rows);
    kernels::softmax<T>({rows, width}, x.data(), y);
    kernels::crossEntropy<T>({rows, width}, x.data(), labels.data(), losses, sums);
    kernels::crossEntropyGrad<T>({rows, width}, x.data(), labels.data(), sums, upstream.data(), d);
    const auto inPart = ids(rows, 100);
    kernels::partialCrossEntropy<T>({rows, width}, x.data(), inPart.data(), &classes, tops, partial,
                                    picked);
    kernels::partialCrossEntropyGrad<T>({rows, width}, x.data(), inPart.data(), sums,
                                        upstream.data(), &classes, part);
    return y.bytes() + d.bytes() + losses.bytes() + sums.bytes() + tops.bytes() + partial.bytes() +
           picked.bytes() + part.bytes();
  });
  const EmbeddingShape table{rows, 700, width};
  const auto tokens = ids(rows, 700);
  expectSameBits(type + " tables", [&] {
    Result<T> out(count), dTable(700 * width), turned(count);
    kernels::embedding<T>(table, x.data(), tokens.data(), out);
    kernels::embeddingGrad<T, T>(table, tokens.data(), dY.data(), dTable);
    kernels::rope<T>({1, rows, 13, 10, 10000, false}, x.data(), turned);
    return out.bytes() + dTable.bytes() + turned.bytes();
  });
}

TEST(Threads, DoNotChangeRows) {
  expectSameRows<float>("f32");
  expectSameRows<bf16>("bf16");
}

TEST(Threads, DoNotChangeCopiesAndSums) {
  const auto values = numbers<float>(1000000, 1);
  expectSameBits("copies", [&] {
    Result<float> piece(1000 * 600), whole(1000 * 1000), joined(1000 * 1000);
    kernels::slice<float>({1000, 1000, 300, 600}, values.data(), piece);
    kernels::pad<float>({1000, 1000, 300, 600}, values.data(), whole);
    kernels::concat(Join<2>{1000, {600, 400}}, static_cast<const float *>(piece), values.data(),
                    static_cast<float *>(joined));
    return piece.bytes() + whole.bytes() + joined.bytes();
  });
  expectSameBits("sums of squares", [&] {
    std::string bytes;
    for (std::size_t count : {0, 15, 1000, 262144, 262145, 1000000}) {
      double sum = -1;
      kernels::squareSum(count, values.data(), &sum);
      bytes.append(reinterpret_cast<const char *>(&sum), sizeof sum);
    }
    return bytes;
  });
}

TEST(Threads, ReportTheFirstIdThatIsOutOfRange) {
  auto tokens = ids(3000, 700);
  tokens[900] = 700, tokens[2900] = 701;
  const auto table = numbers<float>(700 * 130, 1);
  for (int threads : {1, 2, 4})
    bytesOn(threads, [&] {
      Result<float> out(3000 * 130);
      try {
        kernels::embedding<float>({3000, 700, 130}, table.data(), tokens.data(), out);
        ADD_FAILURE() << "no error";
      } catch (const std::exception &error) {
        EXPECT_NE(std::string(error.what()).find("900"), std::string::npos) << error.what();
      }
      return std::string();
    });
}

/// Threads complete blocks in any order; an epilogue without a lock of its own sees the rows one
/// after the other, each once.
TEST(Threads, TellOfRowsInOrder) {
  constexpr std::int64_t kBlocks = 61, kBlockRows = 7, kRows = kBlocks * kBlockRows - 3;
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    std::int64_t next = 0;
    bool inOrder = true;
    std::vector<float> product(kRows, 0.0f);
    const auto epilogue = [&](std::int64_t begin, std::int64_t end) {
      inOrder &= begin == next && end == std::min(begin + kBlockRows, kRows);
      for (std::int64_t row = begin; row < end; ++row)
        inOrder &= product[std::size_t(row)] == float(row);
      next = end;
    };
    using Call = decltype(epilogue);
    EpilogueCallback done;
    done.self = const_cast<void *>(static_cast<const void *>(&epilogue));
    done.call = [](void *self, std::int64_t begin, std::int64_t end) {
      (*static_cast<const Call *>(self))(begin, end);
    };
    RowOrder order(done, kRows, kBlockRows);
    std::vector<std::size_t> blocks(kBlocks);
    std::iota(blocks.begin(), blocks.end(), 0);
    std::shuffle(blocks.begin(), blocks.end(), std::minstd_rand(seed));
    std::atomic<std::size_t> taken = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        for (std::size_t i; (i = taken++) < blocks.size();) {
          const auto begin = static_cast<std::int64_t>(blocks[i]) * kBlockRows;
          for (std::int64_t row = begin; row < std::min(begin + kBlockRows, kRows); ++row)
            product[std::size_t(row)] = float(row);
          order.complete(blocks[i]);
        }
      });
    for (std::thread &thread : threads)
      thread.join();
    EXPECT_TRUE(inOrder);
    EXPECT_EQ(next, kRows);
  }
  EXPECT_TRUE(RowOrder::repays(4, 256));
  EXPECT_FALSE(RowOrder::repays(5, 256));
  EXPECT_FALSE(RowOrder::repays(4, 257));
}

} // namespace
