//===- Sequences.h - texts and lists of tokens ------------------*- C++ -*-===//

#ifndef BASE_SEQUENCES_H
#define BASE_SEQUENCES_H

#include <algorithm>

namespace base {

/// Whether the last elements of `sequence` are those of `end`; true where that is empty.
template <class Sequence> bool endsWith(const Sequence &sequence, const Sequence &end) {
  return end.size() <= sequence.size() && std::equal(end.rbegin(), end.rend(), sequence.rbegin());
}

} // namespace base

#endif // BASE_SEQUENCES_H
