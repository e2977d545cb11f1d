//===- Embedding.h - rows of a table, by number -----------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_EMBEDDING_H
#define FSDP_RUNTIME_EMBEDDING_H

#include "runtime/KernelArguments.h"
#include "runtime/Launch.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

namespace kernels {
/// out[i, :] = table[ids[i], :]. Throws an Error that names place and value if an id is not in
/// [0, vocabulary).
template <typename Id>
void embedding(EmbeddingShape shape, const float *table, const Id *ids, float *out);
/// dTable[v, :] = sum over the i with ids[i] == v of dOut[i, :], added in the order of i.
template <typename Id>
void embeddingGrad(EmbeddingShape shape, const Id *ids, const float *dOut, float *dTable);
} // namespace kernels

/// The table's rows that `ids` name.
template <typename Id>
void embedding(Context &c, int stream, const char *name, EmbeddingShape shape, Slice<float> table,
               Slice<Id> ids, Slice<float> out) {
  launch(c, stream, name, reads(table, ids), writes(out),
         [shape](const float *table, const Id *ids, float *out) {
           kernels::embedding(shape, table, ids, out);
         });
}

/// The gradient of `embedding` for the whole table.
template <typename Id>
void embedding_grad(Context &c, int stream, const char *name, EmbeddingShape shape, Slice<Id> ids,
                    Slice<float> dOut, Slice<float> dTable) {
  launch(c, stream, name, reads(ids, dOut), writes(dTable),
         [shape](const Id *ids, const float *dOut, float *dTable) {
           kernels::embeddingGrad(shape, ids, dOut, dTable);
         });
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_EMBEDDING_H
