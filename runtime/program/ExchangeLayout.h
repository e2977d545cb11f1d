//===- ExchangeLayout.h - what ranks exchange in an all_to_all ------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_PROGRAM_EXCHANGELAYOUT_H
#define FSDP_RUNTIME_PROGRAM_EXCHANGELAYOUT_H

#include "runtime/program/ShardLayout.h"

namespace fsdp::rt {

/// A value whose split moves from one dimension to another. Each rank holds `concatLocal` of
/// `concatTotal` indices of one dimension and all `splitTotal` of the other; it gets all of the one
/// and `splitLocal` of the other. Which elements a rank's part has, and what is padding, is as in
/// ShardLayout for both. In memory, what is held is
///   outer x splitTotal x middle x concatLocal x inner   where `splitFirst`, else
///   outer x concatLocal x middle x splitTotal x inner
/// and what is got has splitLocal and concatTotal in the same places.
struct AllToAllLayout {
  std::size_t outer = 1, middle = 1, inner = 1;
  std::size_t splitLocal = 0, splitTotal = 0, concatLocal = 0, concatTotal = 0;
  bool splitFirst = true;

  constexpr std::size_t sourceCount() const {
    return outer * splitTotal * middle * concatLocal * inner;
  }
  constexpr std::size_t targetCount() const {
    return outer * splitLocal * middle * concatTotal * inner;
  }
  /// What one rank sends to another one.
  constexpr std::size_t pairCount() const {
    return outer * splitLocal * middle * concatLocal * inner;
  }
  /// How a rank cuts what it holds for the ranks that it sends to.
  constexpr ShardLayout split() const {
    return splitFirst ? ShardLayout{outer, splitLocal, middle * concatLocal * inner, splitTotal}
                      : ShardLayout{outer * concatLocal * middle, splitLocal, inner, splitTotal};
  }
  /// How it joins what it receives from them.
  constexpr ShardLayout concat() const {
    return splitFirst ? ShardLayout{outer * splitLocal * middle, concatLocal, inner, concatTotal}
                      : ShardLayout{outer, concatLocal, middle * splitLocal * inner, concatTotal};
  }
};

/// A dimension whose parts change their size: rank r holds indices [r*given, (r+1)*given) and gets
/// [r*received, (r+1)*received), zeros where no rank holds any. Both are `outer x part x inner` in
/// memory.
struct RecutLayout {
  std::size_t outer = 1, given = 0, inner = 1, received = 0;
};

/// From which rank of the group each rank receives, -1 from none: a table in the type, so that
/// launches keep plain values.
template <int... From> struct SourceRanks {
  static constexpr int table[sizeof...(From)] = {From...};
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_PROGRAM_EXCHANGELAYOUT_H
