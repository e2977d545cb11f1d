//===- AttentionVisibility.h - keys that queries see ------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_ATTENTIONVISIBILITY_H
#define FSDP_RUNTIME_KERNELS_ATTENTIONVISIBILITY_H

#include "runtime/numerics/Lanes.h"
#include "runtime/program/KernelArguments.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fsdp::rt {

/// The keys of a batch to which its queries attend.
struct Visibility {
  const AttentionShape &shape;
  const std::int32_t *ids; ///< of the documents of the batch's keys, or null

  Visibility(const AttentionShape &shape, const std::int32_t *documents, std::size_t batch)
      : shape(shape), ids(documents ? documents + batch * shape.keys : nullptr) {}

  /// The first key that a query may attend to, and the end of them.
  std::size_t firstSeen(std::size_t query) const {
    return shape.window ? keyAt(positionOf(query) + 1 - std::ptrdiff_t(shape.window)) : 0;
  }
  std::size_t endOfSeen(std::size_t query) const {
    return shape.causal ? std::min<std::size_t>(keyAt(positionOf(query) + 1), shape.keys)
                        : shape.keys;
  }
  /// The id of a query's document.
  std::int32_t idOf(std::size_t query) const {
    return ids[std::min<std::size_t>(keyAt(positionOf(query)), shape.keys - 1)];
  }

  struct Range {
    std::size_t begin, end;
  };
  /// Of [first, end) the part outside of which `idAt(i)` of no i lies between those of the range
  /// `others`, of `otherAt`.
  template <class IdAt, class OtherAt>
  static Range narrow(Range range, IdAt idAt, Range others, OtherAt otherAt) {
    std::int32_t least = otherAt(others.begin), most = least;
    for (std::size_t i = others.begin + 1; i < others.end; ++i) {
      const std::int32_t id = otherAt(i);
      least = std::min(least, id), most = std::max(most, id);
    }
    const auto may = [&](std::size_t i) { return idAt(i) >= least && idAt(i) <= most; };
    while (range.begin < range.end && !may(range.begin))
      ++range.begin;
    while (range.begin < range.end && !may(range.end - 1))
      --range.end;
    return range;
  }

  /// The number that is subtracted from a query's bias, `bias[key]`, before it is added to scores:
  /// the largest of those keys that the query sees, a NaN passed over; 0 where that is -infinity.
  /// The softmax does not change, and its scores, and the logarithm of its sum, have the size of
  /// products of queries and keys: next to a large bias, a float would lose them.
  float shiftOf(const float *bias, std::size_t query) const {
    using namespace lanes;
    using Ids = std::int32_t __attribute__((vector_size(sizeof(Vector))));
    constexpr float infinity = __builtin_inff();
    const std::size_t end = endOfSeen(query);
    const std::int32_t id = ids ? idOf(query) : 0;
    const Vector none = broadcast(-infinity);
    std::size_t key = firstSeen(query);
    Vector tops[2] = {none, none}; // so that one does not wait for the other
    const auto seen = [&](std::size_t from) {
      const Vector values = load(bias + from);
      if (!ids)
        return values;
      Ids of;
      std::memcpy(&of, ids + from, sizeof of);
      return of == id - Ids{} ? values : none;
    };
    for (; key + 2 * kLanes <= end; key += 2 * kLanes)
      for (std::size_t i = 0; i < 2; ++i)
        tops[i] = larger(seen(key + i * kLanes), tops[i]);
    float each[kLanes];
    store(each, larger(tops[0], tops[1]));
    float top = *std::max_element(each, each + kLanes);
    for (; key < end; ++key)
      if (bias[key] > top && (!ids || ids[key] == id))
        top = bias[key];
    return top == -infinity ? 0 : top;
  }

private:
  std::ptrdiff_t positionOf(std::size_t query) const {
    return shape.positionOf(static_cast<std::int64_t>(query));
  }
  static std::size_t keyAt(std::ptrdiff_t key) { return key < 0 ? 0 : std::size_t(key); }
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_ATTENTIONVISIBILITY_H
