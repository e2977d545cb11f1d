//===- NamePattern.h - patterns of names ------------------------*- C++ -*-===//

#ifndef BASE_NAMEPATTERN_H
#define BASE_NAMEPATTERN_H

#include <optional>
#include <string_view>

namespace base {

/// Whether `name` matches `pattern`, in which `*` matches any characters, or none.
bool matchesPattern(std::string_view pattern, std::string_view name);

/// The part of `name` that the only `*` of `pattern` matches; `name` itself if the pattern has
/// none. Nothing if the name does not match.
std::optional<std::string_view> partOfPattern(std::string_view pattern, std::string_view name);

} // namespace base

#endif // BASE_NAMEPATTERN_H
