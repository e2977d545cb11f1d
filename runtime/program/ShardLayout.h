//===- ShardLayout.h - how a dimension is split over ranks ----------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_PROGRAM_SHARDLAYOUT_H
#define FSDP_RUNTIME_PROGRAM_SHARDLAYOUT_H

#include <cstddef>
#include <cstdint>

namespace fsdp::rt {

/// How a dimension is split: each rank holds `outer x local x inner` elements, the whole is
/// `outer x total x inner`, and rank r's part starts at index r*local of the middle dimension.
/// local*ranks >= total: indices from `total` on are padding. It is part of the operation's
/// meaning: it never reaches the whole buffer, and reduce_scatter writes zeros there. Ranks at the
/// end may hold nothing but padding. A piece's buffer always has room for all outer*local*inner
/// elements.
struct ShardLayout {
  std::size_t outer = 1, local = 0, inner = 1, total = 0;

  /// Indices of the middle dimension that rank `r` really holds.
  constexpr std::size_t held(std::size_t r) const {
    return r * local >= total ? 0 : (total - r * local < local ? total - r * local : local);
  }
  constexpr std::size_t pieceCount() const { return outer * local * inner; }
  constexpr std::size_t wholeCount() const { return outer * total * inner; }
};

enum class ReduceOp : std::uint8_t { Sum, Max };

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_PROGRAM_SHARDLAYOUT_H
