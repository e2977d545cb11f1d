//===- PositionsSince.cpp - where a sequence of tokens ended last ---------===//

#include "runtime/kernels/Kernels.h"

namespace fsdp::rt::kernels {

template <typename Id>
void positionsSince(SequenceShape shape, const Id *tokens, std::int32_t *since) {
  for (std::size_t row = 0; row < shape.rows; ++row) {
    std::int32_t ago = 0; // of an end before the first token
    for (std::size_t t = 0; t < shape.positions; ++t, ++tokens, ++since) {
      bool ends = t + 1 >= shape.length;
      for (std::size_t k = 0; ends && k < shape.length; ++k)
        ends = std::int64_t(*(tokens - k)) == shape.sequence[shape.length - 1 - k];
      const std::int32_t next = ends ? 0 : ago + 1;
      *since = shape.documents ? ago : next;
      ago = next;
    }
  }
}

template void positionsSince(SequenceShape, const std::int32_t *, std::int32_t *);
template void positionsSince(SequenceShape, const std::int64_t *, std::int32_t *);

} // namespace fsdp::rt::kernels
