//===- Gemm.cpp - matrix products through oneDNN --------------------------===//
//
// Each stream thread keeps its own prepared products, so nothing is shared and
// nothing is locked. oneDNN computes on the calling
// thread alone: ranks are the parallelism here.
//
//===----------------------------------------------------------------------===//

#include "runtime/Gemm.h"

#include "runtime/Error.h"
#include "runtime/PooledNew.h"
#include "runtime/Workspace.h"

#include <dnnl.hpp>

#include <array>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace fsdp::rt {

namespace {

using dnnl::memory;

/// One operand as oneDNN sees it: [batch,] rows, columns.
struct Operand {
  std::int64_t rows, columns;
  GemmStrides strides;
};

/// Makes the strides of extents of 1 such that one of the two is 1: oneDNN then recognizes a plain
/// matrix, or its transpose, however the compiler came to write the strides.
Operand normalized(Operand x) {
  if (x.columns == 1)
    x.strides.column = 1;
  else if (x.rows == 1)
    x.strides.row = x.strides.column == 1 ? x.columns : 1;
  if (x.columns == 1 && x.rows == 1)
    x.strides.row = 1;
  return x;
}

memory::desc describe(const Operand &x, std::int64_t batch, std::int64_t batchStride) {
  if (batch == 1)
    return {{x.rows, x.columns}, memory::data_type::f32, {x.strides.row, x.strides.column}};
  return {{batch, x.rows, x.columns},
          memory::data_type::f32,
          {batchStride, x.strides.row, x.strides.column}};
}

dnnl::matmul::primitive_desc descriptor(const memory::desc &a, const memory::desc &b,
                                        const memory::desc &c, float beta,
                                        const dnnl::engine &engine) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (beta != 0) {
    dnnl::post_ops sum;
    sum.append_sum(beta);
    attributes.set_post_ops(sum);
  }
#if DNNL_VERSION_MAJOR >= 3
  return dnnl::matmul::primitive_desc(engine, a, b, c, attributes);
#else
  return dnnl::matmul::primitive_desc(dnnl::matmul::desc(a, b, c), attributes, engine);
#endif
}

bool isFast(const dnnl::matmul::primitive_desc &descriptor) {
  const std::string name = descriptor.impl_info_str();
  return name.find("brg") != std::string::npos;
}

/// What a thread needs to call oneDNN.
struct Library {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};

  Library() {
    // oneDNN parallelizes with OpenMP, whose thread count is a setting of the calling thread.
    if (auto *setThreads =
            reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads")))
      setThreads(1);
  }
};

/// A product that oneDNN has prepared: one primitive, called once for each index of the batch
/// dimensions that stand outside of it.
class Plan {
public:
  Plan(const Gemm &g, Library &library) {
    Operand a = normalized({g.m, g.k, g.a}), b = normalized({g.k, g.n, g.b});
    Operand c = normalized({g.m, g.n, g.c});
    if (c.strides.column != 1) { // c^T = b^T a^T has rows in memory
      const auto transposed = [](Operand x) {
        std::swap(x.rows, x.columns);
        std::swap(x.strides.row, x.strides.column);
        return x;
      };
      swapped = true;
      std::swap(a, b);
      a = transposed(a), b = transposed(b), c = transposed(c);
    }
    for (int d = 0; d < 3; ++d)
      loops[d] = {g.batch[d], a.strides.batch[d], b.strides.batch[d], c.strides.batch[d]};

    // The innermost batch dimension goes into the primitive where oneDNN is fast at that.
    int inner = 2;
    while (inner > 0 && loops[inner].extent == 1)
      --inner;
    const Loop batch = loops[inner];
    memory::desc da, db, dc;
    dnnl::matmul::primitive_desc chosen;
    const auto prepare = [&](std::int64_t extent) {
      da = describe(a, extent, batch.a), db = describe(b, extent, batch.b);
      dc = describe(c, extent, batch.c);
      chosen = descriptor(da, db, dc, g.beta, library.engine);
    };
    bool batched = batch.extent > 1 && batch.a > 0 && batch.b > 0 && batch.c > 0;
    if (batched) {
      prepare(batch.extent);
      batched = isFast(chosen);
    }
    if (batched)
      loops[inner].extent = 1;
    else
      prepare(1);

    primitive = dnnl::matmul(chosen);
    scratchBytes = chosen.scratchpad_desc().get_size();
    memoryA = memory(da, library.engine, nullptr);
    memoryB = memory(db, library.engine, nullptr);
    memoryC = memory(dc, library.engine, nullptr);
    scratch = memory(chosen.scratchpad_desc(), library.engine, nullptr);
    arguments = {{{DNNL_ARG_SRC, memoryA.get()},
                  {DNNL_ARG_WEIGHTS, memoryB.get()},
                  {DNNL_ARG_DST, memoryC.get()},
                  {DNNL_ARG_SCRATCHPAD, scratch.get()}}};
  }

  void run(Library &library, const float *a, const float *b, float *c) {
    if (swapped)
      std::swap(a, b);
    scratch.set_data_handle(Workspace::ofThread().reserve(scratchBytes));
    // What the library makes in the first call may live as long as the library: it comes from the
    // heap. Later calls only make what they free again.
    std::optional<PooledNew> pooled;
    if (std::exchange(prepared, true))
      pooled.emplace();
    for (std::int64_t i = 0; i < loops[0].extent; ++i)
      for (std::int64_t j = 0; j < loops[1].extent; ++j)
        for (std::int64_t k = 0; k < loops[2].extent; ++k) {
          memoryA.set_data_handle(const_cast<float *>(a) + i * loops[0].a + j * loops[1].a +
                                  k * loops[2].a);
          memoryB.set_data_handle(const_cast<float *>(b) + i * loops[0].b + j * loops[1].b +
                                  k * loops[2].b);
          memoryC.set_data_handle(c + i * loops[0].c + j * loops[1].c + k * loops[2].c);
          const dnnl_status_t status =
              dnnl_primitive_execute(primitive.get(), library.stream.get(),
                                     static_cast<int>(arguments.size()), arguments.data());
          if (status != dnnl_success)
            throw dnnl::error(status, "could not execute a primitive");
        }
  }

private:
  struct Loop {
    std::int64_t extent, a, b, c;
  };

  bool swapped = false, prepared = false;
  Loop loops[3];
  dnnl::matmul primitive;
  std::size_t scratchBytes = 0;
  memory memoryA, memoryB, memoryC, scratch;
  std::array<dnnl_exec_arg_t, 4> arguments{};
};

/// Everything of a product but its addresses, as numbers to hash and compare.
using Key = std::array<std::int64_t, 22>;

Key keyOf(const Gemm &g) {
  Key key{g.m, g.n, g.k, g.batch[0], g.batch[1], g.batch[2], g.beta != 0};
  std::size_t next = 7;
  for (const GemmStrides *x : {&g.a, &g.b, &g.c})
    for (std::int64_t stride : {x->row, x->column, x->batch[0], x->batch[1], x->batch[2]})
      key[next++] = stride;
  return key;
}

struct KeyHash {
  std::size_t operator()(const Key &key) const {
    std::size_t hash = 0;
    for (std::int64_t number : key)
      hash = (hash ^ static_cast<std::size_t>(number)) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 32);
  }
};

/// A product without terms: zero, or nothing to add.
void fillZero(const Gemm &g, float *c) {
  for (std::int64_t b0 = 0; b0 < g.batch[0]; ++b0)
    for (std::int64_t b1 = 0; b1 < g.batch[1]; ++b1)
      for (std::int64_t b2 = 0; b2 < g.batch[2]; ++b2)
        for (std::int64_t i = 0; i < g.m; ++i)
          for (std::int64_t j = 0; j < g.n; ++j)
            c[b0 * g.c.batch[0] + b1 * g.c.batch[1] + b2 * g.c.batch[2] + i * g.c.row +
              j * g.c.column] = 0;
}

} // namespace

void kernels::gemm(const Gemm &gemm, const float *a, const float *b, float *c) {
  if (gemm.m == 0 || gemm.n == 0 || gemm.batch[0] * gemm.batch[1] * gemm.batch[2] == 0)
    return;
  if (gemm.k == 0) {
    if (gemm.beta == 0)
      fillZero(gemm, c);
    return;
  }
  thread_local Library library;
  thread_local std::unordered_map<Key, std::unique_ptr<Plan>, KeyHash> plans;
  const Key key = keyOf(gemm);
  try {
    auto found = plans.find(key);
    if (found == plans.end())
      found = plans.emplace(key, std::make_unique<Plan>(gemm, library)).first;
    found->second->run(library, a, b, c);
  } catch (const dnnl::error &error) {
    throw Error(format("oneDNN refused the matrix product m=%lld n=%lld k=%lld: %s",
                       static_cast<long long>(gemm.m), static_cast<long long>(gemm.n),
                       static_cast<long long>(gemm.k), error.what()));
  }
}

} // namespace fsdp::rt
