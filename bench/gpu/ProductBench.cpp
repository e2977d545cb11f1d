//===- ProductBench.cpp - times products and kernels at the shapes of models ===//
//
//   device-bench kernels|products gpt2-124m|gpt2-124m-f32|llama-8b [--list] [--tiny]
//
// Exit status: 0 all were measured, 1 some failed, 2 a bad command line.
//
//===----------------------------------------------------------------------===//

#include "DeviceBench.h"
#include "runtime/device/Work.h"

#include <cstring>

using namespace fsdp::rt;

namespace {

template <class In, class Out>
void product(DeviceBench &bench, const std::string &name, const Gemm &g) {
  const In *a = bench.take<In>(static_cast<std::size_t>(g.m * g.k)),
           *b = bench.take<In>(static_cast<std::size_t>(g.k * g.n));
  Out *c = bench.take<Out>(static_cast<std::size_t>(g.m * g.n));
  const double bytes = double(sizeof(In)) * (double(g.m * g.k) + double(g.k * g.n)) +
                       double(sizeof(Out)) * double(g.m * g.n);
  bench.measure(name, typeName<In>,
                by(std::size_t(g.m), g.n, g.k) +
                    (sizeof(In) == sizeof(Out) ? "" : std::string(" to ") + typeName<Out>),
                bytes, flopsOf(g),
                [&] { return matmul(bench.blas(), g, a, b, c, bench.stream()); });
  bench.release();
}

/// y = x w, dx = dy w^T and dw = x^T dy of a weight that is stored (in, out).
template <class T>
void weight(DeviceBench &bench, const std::string &name, std::int64_t rows, std::int64_t in,
            std::int64_t out) {
  product<T, T>(bench, name, {rows, out, in, {1, 1, 1}, {in, 1, {}}, {out, 1, {}}, {out, 1, {}}});
  product<T, T>(bench, name + ", dx",
                {rows, in, out, {1, 1, 1}, {out, 1, {}}, {1, out, {}}, {in, 1, {}}});
  product<T, float>(bench, name + ", dw",
                    {in, out, rows, {1, 1, 1}, {1, in, {}}, {out, 1, {}}, {out, 1, {}}});
}

/// Likewise of one that is stored (out, in).
template <class T>
void stored(DeviceBench &bench, const std::string &name, std::int64_t rows, std::int64_t in,
            std::int64_t out) {
  product<T, T>(bench, name, {rows, out, in, {1, 1, 1}, {in, 1, {}}, {1, in, {}}, {out, 1, {}}});
  product<T, T>(bench, name + ", dx",
                {rows, in, out, {1, 1, 1}, {out, 1, {}}, {in, 1, {}}, {in, 1, {}}});
  product<T, float>(bench, name + ", dw",
                    {out, in, rows, {1, 1, 1}, {1, out, {}}, {in, 1, {}}, {in, 1, {}}});
}

template <class T> void products(DeviceBench &bench, const Sizes &s) {
  const auto rows = static_cast<std::int64_t>(s.rows());
  const std::int64_t width = s.width, kv = width / s.heads * s.groups;
  if (s.model.rfind("gpt2", 0) == 0) {
    weight<T>(bench, "attention in", rows, width, 3 * width);
    weight<T>(bench, "attention out", rows, width, width);
    weight<T>(bench, "feed forward in", rows, width, s.ffn);
    weight<T>(bench, "feed forward out", rows, s.ffn, width);
  } else {
    stored<T>(bench, "queries", rows, width, width);
    stored<T>(bench, "keys, values", rows, width, kv);
    stored<T>(bench, "attention out", rows, width, width);
    stored<T>(bench, "gate, up", rows, width, s.ffn);
    stored<T>(bench, "down", rows, s.ffn, width);
  }
  stored<T>(bench, "head", rows, width, s.classes);
}

} // namespace

void fsdp::rt::benchProducts(DeviceBench &bench, const Sizes &sizes) {
  bench.section(sizes.model, "products");
  if (sizes.model == "gpt2-124m-f32")
    products<float>(bench, sizes);
  else
    products<bf16>(bench, sizes);
}

int main(int argc, char **argv) {
  // A vocabulary is padded to a multiple of 64 (fsdp-pad-vocabulary).
  const Sizes models[] = {
      {"gpt2-124m", 32, 1024, 768, 12, 12, 3072, 50304, 7087872},
      {"gpt2-124m-f32", 8, 1024, 768, 12, 12, 3072, 50304, 7087872},
      {"llama-8b", 1, 8192, 4096, 32, 8, 14336, 128256, 218112000},
  };
  Sizes tiny = {"", 2, 16, 64, 4, 4, 96, 256, 1000};
  bool list = false, small = false;
  for (int i = 3; i < argc; ++i) {
    list |= std::strcmp(argv[i], "--list") == 0;
    small |= std::strcmp(argv[i], "--tiny") == 0;
  }
  for (const Sizes &model : models)
    if (argc >= 3 && model.model == argv[2]) {
      tiny.model = model.model;
      tiny.groups = model.groups < model.heads ? 2 : 4;
      DeviceBench bench(list, small ? 0 : 20);
      if (std::strcmp(argv[1], "kernels") == 0)
        benchKernels(bench, small ? tiny : model);
      else if (std::strcmp(argv[1], "products") == 0)
        benchProducts(bench, small ? tiny : model);
      else
        break;
      return bench.failed() ? 1 : 0;
    }
  std::fprintf(stderr,
               "device-bench: got '%s', expected kernels or products, a model of gpt2-124m, "
               "gpt2-124m-f32 and llama-8b, and no more than --list and --tiny\n",
               argc >= 3 ? (std::string(argv[1]) + " " + argv[2]).c_str() : "no model");
  return 2;
}
