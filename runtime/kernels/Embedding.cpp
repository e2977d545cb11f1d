//===- Embedding.cpp ------------------------------------------------------===//

#include "runtime/kernels/Kernels.h"

#include "runtime/device/IndexRange.h"
#include "runtime/device/StreamingStores.h"
#include "runtime/device/Workers.h"
#include "runtime/device/Workspace.h"

#include <algorithm>
#include <cstring>

namespace fsdp::rt::kernels {

namespace {

template <typename Id> std::size_t checked(EmbeddingShape shape, const Id *ids, std::size_t i) {
  if (ids[i] < 0 || static_cast<std::uint64_t>(ids[i]) >= shape.vocabulary)
    throw idOutOfRange(i, ids[i], shape.vocabulary);
  return static_cast<std::size_t>(ids[i]);
}

/// True for the id of a row that another rank has.
template <typename Id> bool isElsewhere(EmbeddingShape shape, Id id) {
  return shape.partial && id == -1;
}

/// The positions of the ids of each row of the table: those of `v` are order[starts[v]] to
/// order[starts[v + 1] - 1], ascending.
struct Places {
  std::uint32_t *starts, *order;

  template <typename Id> Places(EmbeddingShape shape, const Id *ids, Workspace &workspace) {
    const std::size_t rows = shape.vocabulary + 2;
    starts =
        static_cast<std::uint32_t *>(workspace.reserve((rows + shape.ids) * sizeof(std::uint32_t)));
    order = starts + rows;
    // Counted two further on, summed, and moved on to its place by each id as it is put there.
    std::fill_n(starts, rows, 0u);
    for (std::size_t i = 0; i < shape.ids; ++i)
      if (!isElsewhere(shape, ids[i]))
        ++starts[checked(shape, ids, i) + 2];
    for (std::size_t v = 2; v < rows; ++v)
      starts[v] += starts[v - 1];
    for (std::size_t i = 0; i < shape.ids; ++i)
      if (!isElsewhere(shape, ids[i]))
        order[starts[static_cast<std::size_t>(ids[i]) + 1]++] = static_cast<std::uint32_t>(i);
  }
};

} // namespace

template <class T, typename Id>
void embedding(EmbeddingShape shape, const T *table, const Id *ids, T *out) {
  forEachPart(shape.ids, shape.width, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      if (isElsewhere(shape, ids[i]))
        std::fill_n(out + i * shape.width, shape.width, T(0.0f));
      else
        std::copy_n(table + checked(shape, ids, i) * shape.width, shape.width,
                    out + i * shape.width);
  });
}

// Row by row of the table, so that each is written once and no zeros are written first.
template <class T, class Sum, typename Id>
void embeddingGrad(EmbeddingShape shape, const Id *ids, const T *dOut, Sum *dTable) {
  constexpr std::size_t block = 256; // columns whose sums stay in the first-level cache
  const Places places(shape, ids, Workspace::ofThread());
  const bool streams = shape.vocabulary * shape.width * sizeof(Sum) >= kStreamingBytes;
  forEachPart(shape.vocabulary, shape.width, [&](std::size_t firstRow, std::size_t lastRow) {
    for (std::size_t v = firstRow; v < lastRow; ++v) {
      const std::size_t begin = places.starts[v], end = places.starts[v + 1];
      Sum *row = dTable + v * shape.width;
      if (begin == end) {
        std::size_t next = v + 1; // after the rows that nothing names
        while (next < lastRow && places.starts[next + 1] == end)
          ++next;
        const std::size_t bytes = (next - v) * shape.width * sizeof(Sum);
        if (streams)
          streamZeros(row, bytes);
        else
          std::memset(static_cast<void *>(row), 0, bytes);
        v = next - 1;
        continue;
      }
      for (std::size_t first = 0; first < shape.width; first += block) {
        const std::size_t size = std::min(block, shape.width - first);
        float sums[block];
        convert(dOut + places.order[begin] * shape.width + first, size, sums);
        for (std::size_t k = begin + 1; k < end; ++k) {
          const T *gradient = dOut + places.order[k] * shape.width + first;
#pragma omp simd
          for (std::size_t j = 0; j < size; ++j)
            sums[j] += float(gradient[j]);
        }
        convert(sums, size, row + first);
      }
    }
  });
}

#define INSTANTIATE(Id)                                                                            \
  template void embedding(EmbeddingShape, const float *, const Id *, float *);                     \
  template void embedding(EmbeddingShape, const bf16 *, const Id *, bf16 *);                       \
  template void embeddingGrad(EmbeddingShape, const Id *, const float *, float *);                 \
  template void embeddingGrad(EmbeddingShape, const Id *, const bf16 *, float *);                  \
  template void embeddingGrad(EmbeddingShape, const Id *, const bf16 *, bf16 *);
INSTANTIATE(std::int32_t)
INSTANTIATE(std::int64_t)
#undef INSTANTIATE

} // namespace fsdp::rt::kernels
