//===- OccupiedBytes.cpp - a segment tree of byte ranges ------------------===//

#include "passes/schedule/OccupiedBytes.h"

#include <algorithm>

using namespace mlir::fsdp::schedule;

/// Adds `bytes`, which begin no earlier than the last of `ranges`, to `ranges`.
static void append(std::vector<ByteRange> &ranges, ByteRange bytes) {
  if (!ranges.empty() && bytes.begin <= ranges.back().end)
    ranges.back().end = std::max(ranges.back().end, bytes.end);
  else
    ranges.push_back(bytes);
}

void ByteRangeUnion::clear() { count = 0; }

void ByteRangeUnion::add(const std::vector<ByteRange> &ranges) {
  if (ranges.empty())
    return;
  if (lists.size() == count)
    lists.emplace_back();
  lists[count++].assign(ranges.begin(), ranges.end());
  // Lists of like lengths are merged first, as in a natural merge sort.
  while (count >= 2 && lists[count - 2].size() <= 2 * lists[count - 1].size())
    mergeLast();
}

const std::vector<ByteRange> &ByteRangeUnion::take() {
  while (count >= 2)
    mergeLast();
  merged.clear();
  if (count == 1)
    for (const ByteRange &range : lists.front())
      append(merged, range);
  return merged;
}

void ByteRangeUnion::mergeLast() {
  const std::vector<ByteRange> &a = lists[count - 2], &b = lists[count - 1];
  merged.clear();
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    bool takesA = j == b.size() || (i < a.size() && a[i].begin <= b[j].begin);
    append(merged, takesA ? a[i++] : b[j++]);
  }
  std::swap(merged, lists[count - 2]);
  --count;
}

/// Adds `bytes` to `ranges`.
static void insert(std::vector<ByteRange> &ranges, ByteRange bytes) {
  auto first = std::partition_point(ranges.begin(), ranges.end(), [&](const ByteRange &range) {
    return range.end < bytes.begin;
  });
  if (first == ranges.end() || first->begin > bytes.end) {
    ranges.insert(first, bytes);
    return;
  }
  auto last = first + 1;
  while (last != ranges.end() && last->begin <= bytes.end)
    ++last;
  first->begin = std::min(first->begin, bytes.begin);
  first->end = std::max(std::prev(last)->end, bytes.end);
  ranges.erase(first + 1, last);
}

OccupiedBytes::OccupiedBytes(int times) {
  while (leaves < times)
    leaves *= 2;
  nodes.resize(2 * static_cast<size_t>(leaves));
}

void OccupiedBytes::occupy(int from, int until, ByteRange bytes) {
  occupy(1, 0, leaves, from, until, bytes);
}

void OccupiedBytes::occupy(int node, int begin, int end, int from, int until, ByteRange bytes) {
  if (from >= end || until <= begin)
    return;
  insert(nodes[node].sometimes, bytes);
  if (from <= begin && end <= until) {
    insert(nodes[node].always, bytes);
    return;
  }
  int middle = begin + (end - begin) / 2;
  occupy(2 * node, begin, middle, from, until, bytes);
  occupy(2 * node + 1, middle, end, from, until, bytes);
}

void OccupiedBytes::collect(int from, int until, ByteRangeUnion &ranges) const {
  collect(1, 0, leaves, from, until, ranges);
}

void OccupiedBytes::collect(int node, int begin, int end, int from, int until,
                            ByteRangeUnion &ranges) const {
  if (from >= end || until <= begin || nodes[node].sometimes.empty())
    return;
  bool isWithin = from <= begin && end <= until;
  ranges.add(isWithin ? nodes[node].sometimes : nodes[node].always);
  if (isWithin)
    return;
  int middle = begin + (end - begin) / 2;
  collect(2 * node, begin, middle, from, until, ranges);
  collect(2 * node + 1, middle, end, from, until, ranges);
}
