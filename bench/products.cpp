//===- products.cpp - how fast the products of a step are -----------------===//
//
// Every matrix product of a training step of the two models of bench/compare, on one rank of two,
// as in the step: in shared memory of 4 KiB pages and not in the caches. One thread, in processor
// time, the best of several calls after a warm-up call. usage: products [10m|124m] [f32|bf16]
//
//===----------------------------------------------------------------------===//

#include "runtime/execution/Context.h"
#include "runtime/launches/Gemm.h"
#include "runtime/launches/Optimizer.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <sys/mman.h>

using namespace base;
using namespace fsdp::rt;

namespace {

/// The addresses of operands: the next piece for each call, so that no operand is in a cache.
class Memory {
public:
  Memory() {
    void *mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
      std::abort();
    data = static_cast<char *>(mapped);
    auto *values = reinterpret_cast<bf16 *>(data);
    for (std::size_t i = 0; i < kBytes / 2; ++i)
      values[i] = bf16(float(int(i * 2654435761u >> 24) - 128) / 128.0f);
  }
  template <class T> T *take(std::int64_t count) {
    const std::size_t bytes = (static_cast<std::size_t>(count) * sizeof(T) + 4095) / 4096 * 4096;
    if (next + bytes > kBytes)
      next = 0;
    next += bytes;
    return reinterpret_cast<T *>(data + next - bytes);
  }

private:
  static constexpr std::size_t kBytes = std::size_t(768) << 20;
  char *data;
  std::size_t next = 0;
};

struct Sum {
  double flops = 0, seconds = 0;
};

/// `name`d product of rows x terms by terms x columns, `count` times a step.
template <class In, class Out>
void product(Memory &memory, const std::string &name, int count, const Gemm &g, Sum &all) {
  double best = 1e30;
  for (int call = 0; call < (flopsOf(g) > 1e10 ? 6 : 16); ++call) {
    const In *a = memory.take<In>(g.m * g.k), *b = memory.take<In>(g.k * g.n);
    Out *c = memory.take<Out>(g.m * g.n);
    const double start = processorSeconds();
    kernels::gemm(g, a, b, c);
    if (call > 0)
      best = std::min(best, processorSeconds() - start);
  }
  std::printf("%-24s %3d x %5ld x %5ld x %5ld %s %9.3f ms %8.1f GFLOP/s\n", name.c_str(), count,
              long(g.m), long(g.n), long(g.k), sizeof(Out) == 2 ? "to bf16" : "to f32 ", best * 1e3,
              flopsOf(g) / best * 1e-9);
  std::fflush(stdout);
  all.flops += count * flopsOf(g);
  all.seconds += count * best;
}

/// y = x w, dx = dy w^T and dw = x^T dy, of one weight in x out.
template <class T>
void weight(Memory &memory, const std::string &name, int count, std::int64_t rows, std::int64_t in,
            std::int64_t out, Sum &all) {
  product<T, T>(memory, name, count,
                {rows, out, in, {1, 1, 1}, {in, 1, {}}, {out, 1, {}}, {out, 1, {}}}, all);
  product<T, T>(memory, name + ", dx", count,
                {rows, in, out, {1, 1, 1}, {out, 1, {}}, {1, out, {}}, {in, 1, {}}}, all);
  product<T, float>(memory, name + ", dw", count,
                    {in, out, rows, {1, 1, 1}, {1, in, {}}, {out, 1, {}}, {out, 1, {}}}, all);
}

template <class T>
void step(const std::string &title, Memory &memory, std::int64_t rows, int layers,
          std::int64_t width, std::int64_t vocab) {
  std::printf("%s, %ld rows on a rank\n", title.c_str(), long(rows));
  Sum all;
  weight<T>(memory, "attention in", layers, rows, width, 3 * width, all);
  weight<T>(memory, "attention out", layers, rows, width, width, all);
  weight<T>(memory, "feed forward in", layers, rows, width, 4 * width, all);
  weight<T>(memory, "feed forward out", layers, rows, 4 * width, width, all);
  // The head's weight is the embedding's: tokens by width.
  product<T, T>(memory, "head", 1,
                {rows, vocab, width, {1, 1, 1}, {width, 1, {}}, {1, width, {}}, {vocab, 1, {}}},
                all);
  product<T, T>(memory, "head, dx", 1,
                {rows, width, vocab, {1, 1, 1}, {vocab, 1, {}}, {width, 1, {}}, {width, 1, {}}},
                all);
  product<T, float>(memory, "head, dw", 1,
                    {width, vocab, rows, {1, 1, 1}, {1, width, {}}, {vocab, 1, {}}, {1, width, {}}},
                    all);
  std::printf("%-60s %9.1f ms %8.1f GFLOP/s\n\n", "all of a step", all.seconds * 1e3,
              all.flops / all.seconds * 1e-9);
}

} // namespace

int main(int argc, char **argv) {
  const auto wanted = [&](const char *word, const char *other) {
    bool both = true;
    for (int i = 1; i < argc; ++i) {
      if (std::strcmp(argv[i], word) == 0)
        return true;
      both &= std::strcmp(argv[i], other) != 0;
    }
    return both;
  };
  Memory memory;
  if (wanted("10m", "124m") && wanted("f32", "bf16"))
    step<float>("10m, f32", memory, 2048, 6, 384, 256);
  if (wanted("10m", "124m") && wanted("bf16", "f32"))
    step<bf16>("10m, bf16", memory, 2048, 6, 384, 256);
  if (wanted("124m", "10m") && wanted("f32", "bf16"))
    step<float>("124m, f32", memory, 512, 12, 768, 50257);
  if (wanted("124m", "10m") && wanted("bf16", "f32"))
    step<bf16>("124m, bf16", memory, 512, 12, 768, 50257);
}
