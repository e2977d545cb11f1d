//===- JsonNesting.cpp ----------------------------------------------------===//

#include "base/JsonNesting.h"

#include <algorithm>

namespace base {

std::size_t nestingOf(const char *begin, const char *end) {
  std::size_t depth = 0, deepest = 0;
  bool quoted = false;
  for (const char *c = begin; c != end; ++c) {
    if (quoted && *c == '\\') {
      if (++c == end)
        break;
    } else if (*c == '"') {
      quoted = !quoted;
    } else if (!quoted && (*c == '[' || *c == '{')) {
      deepest = std::max(deepest, ++depth);
    } else if (!quoted && (*c == ']' || *c == '}') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

} // namespace base
