#include "base/NamePattern.h"

namespace base {

bool matchesPattern(std::string_view pattern, std::string_view name) {
  // The latest `*`, and the part of `name` that it matches so far: earlier ones need not be tried
  // again.
  std::size_t at = 0, star = pattern.npos, taken = 0;
  for (std::size_t i = 0; i < name.size();) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      taken = i;
    } else if (at < pattern.size() && pattern[at] == name[i]) {
      ++at, ++i;
    } else if (star != pattern.npos) {
      at = star + 1;
      i = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == pattern.npos;
}

std::optional<std::string_view> partOfPattern(std::string_view pattern, std::string_view name) {
  if (!matchesPattern(pattern, name))
    return std::nullopt;
  const std::size_t star = pattern.find('*');
  if (star == pattern.npos)
    return name;
  return name.substr(star, name.size() - (pattern.size() - 1));
}

} // namespace base
