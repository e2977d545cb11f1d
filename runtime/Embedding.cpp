//===- Embedding.cpp ------------------------------------------------------===//

#include "runtime/Embedding.h"

#include "runtime/Error.h"

#include <algorithm>

namespace fsdp::rt::kernels {

namespace {

template <typename Id> std::size_t checked(EmbeddingShape shape, const Id *ids, std::size_t i) {
  if (ids[i] < 0 || static_cast<std::uint64_t>(ids[i]) >= shape.vocabulary)
    throw Error(format("id %zu of an embedding is %lld, expected 0 to %zu; correct the data or the "
                       "model's vocabulary",
                       i, static_cast<long long>(ids[i]), shape.vocabulary - 1));
  return static_cast<std::size_t>(ids[i]);
}

} // namespace

template <typename Id>
void embedding(EmbeddingShape shape, const float *table, const Id *ids, float *out) {
  for (std::size_t i = 0; i < shape.ids; ++i)
    std::copy_n(table + checked(shape, ids, i) * shape.width, shape.width, out + i * shape.width);
}

template <typename Id>
void embeddingGrad(EmbeddingShape shape, const Id *ids, const float *dOut, float *dTable) {
  std::fill_n(dTable, shape.vocabulary * shape.width, 0.0f);
  for (std::size_t i = 0; i < shape.ids; ++i) {
    float *__restrict row = dTable + checked(shape, ids, i) * shape.width;
    const float *__restrict gradient = dOut + i * shape.width;
#pragma omp simd
    for (std::size_t j = 0; j < shape.width; ++j)
      row[j] += gradient[j];
  }
}

#define INSTANTIATE(Id)                                                                            \
  template void embedding(EmbeddingShape, const float *, const Id *, float *);                     \
  template void embeddingGrad(EmbeddingShape, const Id *, const float *, float *);
INSTANTIATE(std::int32_t)
INSTANTIATE(std::int64_t)
#undef INSTANTIATE

} // namespace fsdp::rt::kernels
