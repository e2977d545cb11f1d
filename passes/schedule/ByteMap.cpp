//===- ByteMap.cpp --------------------------------------------------------===//

#include "passes/schedule/ByteMap.h"

#include <algorithm>

using namespace mlir::fsdp::schedule;

void mlir::fsdp::schedule::insertNumber(NumberSet &set, int number) {
  auto at = std::lower_bound(set.begin(), set.end(), number);
  if (at == set.end() || *at != number)
    set.insert(at, number);
}

ByteMap::ByteMap(int64_t size) : size(size) {
  Cell cell;
  cell.owners.push_back(Cell::unwritten);
  cells.emplace(0, std::move(cell));
}

std::map<int64_t, Cell>::iterator ByteMap::split(int64_t at) {
  auto next = cells.lower_bound(at);
  if (at >= size || (next != cells.end() && next->first == at))
    return next;
  return cells.emplace_hint(next, at, std::prev(next)->second);
}

void ByteMap::visit(int64_t begin, int64_t end,
                    llvm::function_ref<void(int64_t, int64_t, Cell &)> visit) {
  if (begin >= end)
    return;
  auto from = split(begin), to = split(end);
  for (; from != to; ++from) {
    auto next = std::next(from);
    visit(from->first, next == cells.end() ? size : next->first, from->second);
  }
}

void ByteMap::assign(int64_t begin, int64_t end, Cell cell) {
  if (begin >= end)
    return;
  auto from = split(begin), to = split(end);
  from->second = std::move(cell);
  cells.erase(std::next(from), to);
}

void ByteMap::transform(llvm::function_ref<void(Cell &)> change) {
  auto previous = cells.end();
  for (auto at = cells.begin(); at != cells.end();) {
    change(at->second);
    if (previous != cells.end() && previous->second == at->second) {
      at = cells.erase(at);
      continue;
    }
    previous = at++;
  }
}

bool ByteMap::merge(const ByteMap &other) {
  bool more = false;
  auto add = [&](NumberSet &to, const NumberSet &from) {
    size_t before = to.size();
    for (int number : from)
      insertNumber(to, number);
    more |= to.size() != before;
  };
  for (auto at = other.cells.begin(); at != other.cells.end(); ++at) {
    auto next = std::next(at);
    int64_t end = next == other.cells.end() ? size : next->first;
    visit(at->first, end, [&](int64_t, int64_t, Cell &cell) {
      if (cell == at->second)
        return;
      add(cell.owners, at->second.owners);
      add(cell.writers, at->second.writers);
      add(cell.readers, at->second.readers);
    });
  }
  transform([](Cell &) {});
  return more;
}
