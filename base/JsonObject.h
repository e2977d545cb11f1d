//===- JsonObject.h - JSON texts of files, within limits --------*- C++ -*-===//

#ifndef BASE_JSONOBJECT_H
#define BASE_JSONOBJECT_H

#include <nlohmann/json.hpp>

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

namespace base {

/// Limits of headers, indices and manifests: the length is that of the reference reader of
/// safetensors; a parser takes a hundred bytes of memory for each level of nesting.
constexpr std::size_t kMaxJsonBytes = 100'000'000;
constexpr int kMaxJsonDepth = 8;

/// Parses `text`, one JSON object in which no name appears twice, into `object`. Returns nothing,
/// or the fault as text that follows a subject: "is not a JSON object".
template <class Json> std::string parseJsonObject(std::string_view text, Json &object) {
  if (text.size() > kMaxJsonBytes)
    return "has " + std::to_string(text.size()) + " bytes, expected at most " +
           std::to_string(kMaxJsonBytes);
  std::string fault;
  std::set<std::string> names;
  using Event = typename Json::parse_event_t;
  const auto check = [&](int depth, Event event, Json &value) {
    if ((event == Event::object_start || event == Event::array_start) && depth >= kMaxJsonDepth) {
      fault = "is nested deeper than " + std::to_string(kMaxJsonDepth) + " levels";
      throw std::length_error(fault); // ends the parser before it takes more memory
    }
    if (depth == 1 && event == Event::key &&
        !names.insert(value.template get<std::string>()).second)
      fault = "names '" + value.template get<std::string>() + "' twice";
    return true;
  };
  try {
    object = Json::parse(text.begin(), text.end(), check, /*allow_exceptions=*/false);
  } catch (const std::length_error &) {
    return fault;
  }
  return object.is_object() ? fault : "is not a JSON object";
}

} // namespace base

#endif // BASE_JSONOBJECT_H
