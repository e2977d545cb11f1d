//===- JsonNesting.h - bounds a text before it is parsed --------*- C++ -*-===//

#ifndef BASE_JSONNESTING_H
#define BASE_JSONNESTING_H

#include <cstddef>

namespace base {

/// Headers and indices of weights are no longer (the limit of the reference reader) and no deeper;
/// a parser would take a hundred bytes of memory for each level of a text that is nothing but
/// brackets.
constexpr std::size_t kLongestHeader = 100'000'000;
constexpr std::size_t kDeepestHeader = 8;

/// How deep objects and arrays stand in one another in the JSON text [begin, end); takes no memory.
std::size_t nestingOf(const char *begin, const char *end);

} // namespace base

#endif // BASE_JSONNESTING_H
