//===- JsonObject.h - JSON texts of files, within limits --------*- C++ -*-===//

#ifndef BASE_JSONOBJECT_H
#define BASE_JSONOBJECT_H

#include "base/JsonStructure.h"

#include <stdexcept>

namespace base {

/// Where and why `text` is not JSON: "line 3, column 7: unexpected end of input; expected '}'".
/// Lines and columns, in bytes, begin with 1.
inline std::string describeParseError(const nlohmann::json::exception &error,
                                      std::string_view text) {
  const std::string what = error.what();
  const bool isSyntax = dynamic_cast<const nlohmann::json::parse_error *>(&error);
  const std::size_t reason = what.find(isSyntax ? " - " : "] ");
  const std::string why = reason == what.npos ? what : what.substr(reason + (isSyntax ? 3 : 2));
  const std::string_view before = text.substr(0, positionOfError(text));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t column = before.size() - (before.rfind('\n') + 1) + 1; // of npos 0
  return "line " + std::to_string(line) + ", column " + std::to_string(column) + ": " + why;
}

/// Parses `text`, one JSON object in which no name appears twice, into `object`. Returns nothing,
/// or the fault as text that follows a subject: "is not a JSON object (line 1, column 1: unexpected
/// end of input)".
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
    object = Json::parse(text.begin(), text.end(), check);
  } catch (const std::length_error &) {
    return fault;
  } catch (const nlohmann::json::exception &error) {
    return "is not a JSON object (" + describeParseError(error, text) + ")";
  }
  return object.is_object() ? fault : "is not a JSON object";
}

} // namespace base

#endif // BASE_JSONOBJECT_H
