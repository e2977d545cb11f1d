//===- Embedding.cu - rows of a table, by number --------------------------===//
//
// Floors: 2 s n bytes forward (s of an element, n elements of the output). The gradient reads dOut
// and writes the whole table: s n + 4 v w for v rows of w columns; 42 us for 32768 bf16 rows of 768
// into 50257 at 4.8 TB/s.
//
// The gradient adds up, for each row of the table, the places where it was used, in their order:
// without atomics on floats, and with the CPU's bits in f32. A first kernel lists the places of
// each row: a block owns kOwned rows of the table and walks over all ids twice, to count and to
// list. The ids stay in the second-level cache; that is (v / kOwned) * ids comparisons, 6.5 million
// for the sizes above. The second kernel takes a row and reads its places, several at a time.
// Slow case: one id in a large part of the places, as its row is one block's work.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/KernelLaunch.h"
#include "runtime/kernels/cuda/BlockReduce.h"
#include "runtime/kernels/cuda/Element.h"
#include "runtime/kernels/cuda/Kernels.h"
#include "runtime/kernels/cuda/ReportBoundsError.h"

namespace fsdp::rt {

namespace {

using namespace device;

constexpr unsigned kOwned = 256;   ///< rows of the table a block lists the places of
constexpr unsigned kThreads = 256; ///< of every kernel here; at least kOwned

template <class T, int N, class Id>
__global__ void __launch_bounds__(kThreads)
    lookUp(EmbeddingShape shape, const T *table, const Id *ids, T *out, BoundsError *fault) {
  const std::size_t packs = shape.width / N, all = shape.ids * packs;
  for (std::size_t p = blockIdx.x * std::size_t(kThreads) + threadIdx.x; p < all;
       p += std::size_t(gridDim.x) * kThreads) {
    const std::size_t i = p / packs, column = p % packs * N;
    const auto id = static_cast<std::uint64_t>(ids[i]);
    auto pack = Packed<T, N>{};
    if (id < shape.vocabulary) {
      pack = Packed<T, N>::load(table + id * shape.width + column);
    } else if (!shape.partial || ids[i] != -1) { // a row elsewhere gives zeros
      reportBoundsError(fault, BoundsError::Id, i, static_cast<std::int64_t>(ids[i]),
                        shape.vocabulary);
      for (std::uint32_t &word : pack.word)
        word = 0x7fc07fc0u; // a NaN as float, and as two bf16
    }
    pack.store(out + i * shape.width + column);
  }
}

/// places[starts[v]] to places[starts[v + 1]] are the i with ids[i] == v, ascending.
struct Places {
  std::uint32_t *starts; ///< vocabulary + 1
  std::uint32_t *places; ///< ids
};

/// Ids of a thread that are read together, kThreads apart.
constexpr int kAtOnce = 8;
template <class Id>
__device__ void readIds(EmbeddingShape shape, const Id *ids, std::size_t first,
                        std::uint64_t (&read)[kAtOnce]) {
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) {
    const std::size_t i = first + k * kThreads + threadIdx.x;
    read[k] = i < shape.ids ? static_cast<std::uint64_t>(ids[i]) : ~std::uint64_t(0);
  }
}

template <class Id>
__global__ void __launch_bounds__(kThreads)
    listPlaces(EmbeddingShape shape, const Id *ids, Places list) {
  __shared__ std::uint32_t next[kOwned + 1];
  __shared__ std::uint32_t listed[kThreads];
  __shared__ std::uint32_t warpCounts[kMaxWarps];
  __shared__ std::uint32_t below;
  const std::size_t firstRow = blockIdx.x * std::size_t(kOwned);
  const unsigned thread = threadIdx.x, lane = thread % kWarp, warp = thread / kWarp;
  for (unsigned v = thread; v <= kOwned; v += kThreads)
    next[v] = 0;
  if (thread == 0)
    below = 0;
  __syncthreads();
  // How many ids are of rows before the owned ones, and of each owned one.
  std::uint32_t before = 0;
  for (std::size_t first = 0; first < shape.ids; first += kAtOnce * kThreads) {
    std::uint64_t read[kAtOnce];
    readIds(shape, ids, first, read);
#pragma unroll
    for (const std::uint64_t id : read) {
      before += id < firstRow;
      if (id - firstRow < kOwned && id < shape.vocabulary)
        atomicAdd(&next[id - firstRow + 1], 1u);
    }
  }
  atomicAdd(&below, before);
  __syncthreads();
  if (thread == 0) {
    std::uint32_t start = below;
    for (unsigned v = 0; v <= kOwned; ++v)
      next[v] = start += next[v];
  }
  __syncthreads();
  // Now next[v] is where the places of the owned row v begin, and moves on as they are listed. The
  // start after the last of them is written by the next block, or belongs to no row.
  for (unsigned v = thread; v <= kOwned; v += kThreads)
    if (v < kOwned ? firstRow + v <= shape.vocabulary : firstRow + v == shape.vocabulary)
      list.starts[firstRow + v] = next[v];
  for (std::size_t first = 0; first < shape.ids; first += kAtOnce * kThreads) {
    std::uint64_t read[kAtOnce];
    readIds(shape, ids, first, read);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const std::uint64_t id = read[k];
      const bool owned = id - firstRow < kOwned && id < shape.vocabulary;
      const unsigned votes = __ballot_sync(kAllLanes, owned);
      if (lane == 0)
        warpCounts[warp] = __popc(votes);
      if (!__syncthreads_or(owned))
        continue;
      unsigned at = __popc(votes & ((1u << lane) - 1));
      for (unsigned w = 0; w < warp; ++w)
        at += warpCounts[w];
      if (owned)
        listed[at] = static_cast<std::uint32_t>(id - firstRow);
      __syncthreads();
      if (owned) {
        std::uint32_t place = next[id - firstRow];
        for (unsigned earlier = 0; earlier < at; ++earlier)
          place += listed[earlier] == id - firstRow;
        list.places[place] = static_cast<std::uint32_t>(first + k * kThreads + thread);
      }
      __syncthreads();
      if (owned)
        atomicAdd(&next[id - firstRow], 1u);
      // The barrier after the next counts comes before anyone reads `next` again.
    }
  }
}

/// Block (v, part): columns [part * kThreads * N, ...) of row v.
template <class T, int N, class Sum>
__global__ void __launch_bounds__(kThreads)
    sumPlaces(EmbeddingShape shape, Places list, const T *dOut, Sum *dTable) {
  const std::size_t column = (blockIdx.y * std::size_t(blockDim.x) + threadIdx.x) * N;
  if (column >= shape.width)
    return;
  const std::uint32_t last = list.starts[blockIdx.x + 1];
  float sums[N] = {};
  constexpr std::uint32_t kAtOnce = 8;
  std::uint32_t place = list.starts[blockIdx.x];
  for (; place + kAtOnce <= last; place += kAtOnce) {
    Packed<T, N> packs[kAtOnce];
#pragma unroll
    for (std::uint32_t k = 0; k < kAtOnce; ++k)
      packs[k] = Packed<T, N>::load(dOut + list.places[place + k] * shape.width + column);
#pragma unroll
    for (std::uint32_t k = 0; k < kAtOnce; ++k)
#pragma unroll
      for (int i = 0; i < N; ++i)
        sums[i] += packs[k].get(i);
  }
  for (; place < last; ++place) {
    const auto pack = Packed<T, N>::load(dOut + list.places[place] * shape.width + column);
#pragma unroll
    for (int i = 0; i < N; ++i)
      sums[i] += pack.get(i);
  }
  Sum *row = dTable + blockIdx.x * shape.width + column;
  constexpr int kStore = N < kPack<Sum> ? N : kPack<Sum>;
#pragma unroll
  for (int i = 0; i < N; i += kStore) {
    float values[kStore];
#pragma unroll
    for (int k = 0; k < kStore; ++k)
      values[k] = sums[i + k];
    storeFloats(values, row + i);
  }
}

template <class T, class Id>
cudaError_t look(EmbeddingShape shape, const T *table, const Id *ids, T *out, WorkStream stream) {
  constexpr int N = kPack<T>;
  const bool vectors = shape.width % N == 0 && aligned16(table, out);
  noteVectors(vectors);
  return launchKernel(vectors ? lookUp<T, N, Id> : lookUp<T, 1, Id>,
                      dim3(stridingBlocks(shape.ids * shape.width, kThreads * (vectors ? N : 1))),
                      kThreads, 0, stream, shape, table, ids, out, stream.fault());
}

template <class T, class Sum, class Id>
cudaError_t sum(EmbeddingShape shape, const Id *ids, const T *dOut, Sum *dTable,
                WorkStream stream) {
  if (shape.ids >= (std::uint64_t(1) << 32))
    return cudaErrorInvalidValue; // places are numbered in 32 bits
  Places list;
  if (cudaError_t status = stream.workspace->reserve(
          (shape.vocabulary + 1 + shape.ids) * sizeof(std::uint32_t), list.starts))
    return status;
  list.places = list.starts + shape.vocabulary + 1;
  if (cudaError_t status =
          launchKernel(listPlaces<Id>, dim3(ceilDiv<std::size_t>(shape.vocabulary, kOwned)),
                       kThreads, 0, stream, shape, ids, list))
    return status;
  constexpr int N = kPack<T>;
  const bool vectors = shape.width % N == 0 && aligned16(dOut, dTable);
  noteVectors(vectors);
  const std::size_t packs = vectors ? shape.width / N : shape.width;
  const unsigned threads = packs < kThreads ? ceilDiv<unsigned>(packs, kWarp) * kWarp : kThreads;
  return launchKernel(vectors ? sumPlaces<T, N, Sum> : sumPlaces<T, 1, Sum>,
                      dim3(shape.vocabulary, packs ? ceilDiv<unsigned>(packs, threads) : 0),
                      threads, 0, stream, shape, list, dOut, dTable);
}

} // namespace

#define INSTANTIATE(T, Id)                                                                         \
  cudaError_t embedding(EmbeddingShape shape, const T *table, const Id *ids, T *out,               \
                        WorkStream stream) {                                                       \
    return look(shape, table, ids, out, stream);                                                   \
  }
#define INSTANTIATE_SUM(T, Sum, Id)                                                                \
  cudaError_t embedding_grad(EmbeddingShape shape, const Id *ids, const T *dOut, Sum *dTable,      \
                             WorkStream stream) {                                                  \
    return sum(shape, ids, dOut, dTable, stream);                                                  \
  }
INSTANTIATE(float, std::int32_t)
INSTANTIATE(float, std::int64_t)
INSTANTIATE(bf16, std::int32_t)
INSTANTIATE(bf16, std::int64_t)
INSTANTIATE_SUM(float, float, std::int32_t)
INSTANTIATE_SUM(float, float, std::int64_t)
INSTANTIATE_SUM(bf16, float, std::int32_t)
INSTANTIATE_SUM(bf16, float, std::int64_t)
INSTANTIATE_SUM(bf16, bf16, std::int32_t)
INSTANTIATE_SUM(bf16, bf16, std::int64_t)
#undef INSTANTIATE
#undef INSTANTIATE_SUM

} // namespace fsdp::rt
