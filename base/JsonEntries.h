//===- JsonEntries.h - values of a JSON object by their paths ---*- C++ -*-===//

#ifndef BASE_JSONENTRIES_H
#define BASE_JSONENTRIES_H

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>

namespace base {

/// The value at `path`, such as "rope_parameters.rope_theta"; null if it is missing or null.
inline const nlohmann::json *findEntry(const nlohmann::json &object, const std::string &path) {
  const nlohmann::json *at = &object;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    if (!at->is_object() || !at->contains(name))
      return nullptr;
    at = &(*at)[name];
    begin = end + 1;
  }
  return at->is_null() ? nullptr : at;
}

/// Whether `path` exists with the value null.
inline bool isNullEntry(const nlohmann::json &object, const std::string &path) {
  const std::size_t dot = path.rfind('.');
  const nlohmann::json *parent =
      dot == path.npos ? &object : findEntry(object, path.substr(0, dot));
  const std::string name = dot == path.npos ? path : path.substr(dot + 1);
  return parent && parent->is_object() && parent->contains(name) && (*parent)[name].is_null();
}

/// Numbers are equal however they are written.
inline bool isSameEntry(const nlohmann::json &got, const nlohmann::json &expected) {
  if (got.is_number() && expected.is_number())
    return got.get<double>() == expected.get<double>();
  return got == expected;
}

/// The value for a message; long values of a file are cut.
inline std::string shownEntry(const nlohmann::json &value) {
  constexpr std::size_t kMax = 80;
  const std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true);
  return text.size() <= kMax ? text : text.substr(0, kMax) + "...";
}

} // namespace base

#endif // BASE_JSONENTRIES_H
