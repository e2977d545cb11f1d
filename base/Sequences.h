//===- Sequences.h - texts and lists ----------------------------*- C++ -*-===//

#ifndef BASE_SEQUENCES_H
#define BASE_SEQUENCES_H

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace base {

/// Whether the last elements of `sequence` are those of `end`; true where that is empty.
template <class Sequence> bool endsWith(const Sequence &sequence, const Sequence &end) {
  return end.size() <= sequence.size() && std::equal(end.rbegin(), end.rend(), sequence.rbegin());
}

/// The elements of a list as options write it, "a,b". Empty elements are kept, a last one too: who
/// reads the list refuses them.
inline std::vector<std::string> listElements(std::string_view list) {
  std::vector<std::string> elements;
  for (;;) {
    const std::size_t comma = list.find(',');
    elements.emplace_back(list.substr(0, comma));
    if (comma == list.npos)
      return elements;
    list.remove_prefix(comma + 1);
  }
}

} // namespace base

#endif // BASE_SEQUENCES_H
