//===- Embedding.h - launches of kernels/Embedding.h ---------*- C++ -*-===//

#ifndef FSDP_RUNTIME_LAUNCHES_EMBEDDING_H
#define FSDP_RUNTIME_LAUNCHES_EMBEDDING_H

#include "runtime/execution/Launch.h"
#include "runtime/kernels/Embedding.h"

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

/// The table's rows that `ids` name.
template <class T, typename Id>
void embedding(Context &c, int stream, const char *name, EmbeddingShape shape, ArenaSpan<T> table,
               ArenaSpan<Id> ids, ArenaSpan<T> out) {
  launch(
      c, stream, name, reads(table, ids), writes(out),
      [shape](const T *table, const Id *ids, T *out) {
        kernels::embedding(shape, table, ids, out);
      },
      Work{"embedding"});
}

/// The gradient of `embedding` for the whole table.
template <class T, class Sum, typename Id>
void embedding_grad(Context &c, int stream, const char *name, EmbeddingShape shape,
                    ArenaSpan<Id> ids, ArenaSpan<T> dOut, ArenaSpan<Sum> dTable) {
  launch(
      c, stream, name, reads(ids, dOut), writes(dTable),
      [shape](const Id *ids, const T *dOut, Sum *dTable) {
        kernels::embeddingGrad(shape, ids, dOut, dTable);
      },
      Work{"embedding_grad"});
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCHES_EMBEDDING_H
