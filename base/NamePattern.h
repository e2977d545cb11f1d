//===- NamePattern.h - patterns of names ------------------------*- C++ -*-===//

#ifndef BASE_NAMEPATTERN_H
#define BASE_NAMEPATTERN_H

#include <optional>
#include <string_view>

namespace base {

/// Whether `name` is as `pattern` says, in which `*` stands for any characters, or none.
bool matchesPattern(std::string_view pattern, std::string_view name);

/// What the one `*` of `pattern` stands for in `name`; `name` itself where the pattern has none.
/// Nothing if the name is not as the pattern says.
std::optional<std::string_view> partOfPattern(std::string_view pattern, std::string_view name);

} // namespace base

#endif // BASE_NAMEPATTERN_H
