//===- Embedding.h - rows of a table, by number -----------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_EMBEDDING_H
#define FSDP_RUNTIME_KERNELS_EMBEDDING_H

#include "runtime/numerics/BFloat16.h"
#include "runtime/program/KernelArguments.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

namespace kernels {
/// out[i, :] = table[ids[i], :], for float or bf16; zeros for an id of -1 of a partial table.
/// Throws an Error that names place and value if an id is not in [0, vocabulary).
template <class T, typename Id>
void embedding(EmbeddingShape shape, const T *table, const Id *ids, T *out);
/// dTable[v, :] = sum over the i with ids[i] == v of dOut[i, :], added in float in the order of i,
/// and rounded once where dTable is bf16. In a partial table ids of -1 are of no row.
template <class T, class Sum, typename Id>
void embeddingGrad(EmbeddingShape shape, const Id *ids, const T *dOut, Sum *dTable);
} // namespace kernels

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_EMBEDDING_H
