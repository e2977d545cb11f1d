//===- SortStably.h - sorting that keeps the order of equals ----*- C++ -*-===//

#ifndef PASSES_SORTSTABLY_H
#define PASSES_SORTSTABLY_H

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace mlir::fsdp {

/// Sorts `items` by `isBefore`; equals keep their order. For at most some ten thousand items.
/// std::stable_sort of libstdc++ 12 calls what its own headers declare deprecated, which clang
/// reports.
template <class Item, class IsBefore>
void sortStably(std::vector<Item> &items, const IsBefore &isBefore) {
  auto isEarlier = [&](std::size_t a, std::size_t b) { return isBefore(items[a], items[b]); };
  std::vector<std::size_t> order;
  order.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i)
    order.insert(std::upper_bound(order.begin(), order.end(), i, isEarlier), i);
  std::vector<Item> sorted;
  sorted.reserve(items.size());
  for (std::size_t index : order)
    sorted.push_back(std::move(items[index]));
  items = std::move(sorted);
}

} // namespace mlir::fsdp

#endif // PASSES_SORTSTABLY_H
