//===- Extent.h - how many cases tests run ----------------------*- C++ -*-===//
//
// `./check --all` sets FSDP_TEST_ALL: every case of a matrix, every random one. Each check runs the
// share of them that keeps it short, always the same one.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_EXTENT_H
#define TEST_EXTENT_H

#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <vector>

namespace fsdp::test {

inline bool isWhole() {
  static const bool whole = std::getenv("FSDP_TEST_ALL") != nullptr;
  return whole;
}

/// A number of random cases: `each` in each check.
inline std::int64_t casesOf(std::int64_t each, std::int64_t all) { return isWhole() ? all : each; }

/// Parameters of a suite: those of each check, and `more` behind them.
template <class T> std::vector<T> casesOf(std::vector<T> each, std::initializer_list<T> more) {
  if (isWhole())
    each.insert(each.end(), more);
  return each;
}

} // namespace fsdp::test

#endif // TEST_EXTENT_H
