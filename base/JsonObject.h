//===- JsonObject.h - JSON texts of files, within limits --------*- C++ -*-===//

#ifndef BASE_JSONOBJECT_H
#define BASE_JSONOBJECT_H

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>

namespace base {

/// Limits of headers, indices and manifests: the length is that of the reference reader of
/// safetensors; a parser takes a hundred bytes of memory for each level of nesting.
constexpr std::size_t kMaxJsonBytes = 100'000'000;
constexpr int kMaxJsonDepth = 8;

/// Parses a text up to its first error and records only the position of that error.
class JsonFaultFinder final : public nlohmann::json_sax<nlohmann::json> {
public:
  /// Bytes before the error: an invalid character, or a number that is too large.
  static std::size_t find(std::string_view text) {
    JsonFaultFinder finder;
    nlohmann::json::sax_parse(text.begin(), text.end(), &finder);
    return std::min(finder.before, text.size());
  }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t &) override { return true; }
  bool string(string_t &) override { return true; }
  bool binary(binary_t &) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t &) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t read, const std::string &token,
                   const nlohmann::json::exception &error) override {
    const bool isNumber = dynamic_cast<const nlohmann::json::out_of_range *>(&error);
    before = read - std::min(read, isNumber ? token.size() : 1);
    return false;
  }

private:
  std::size_t before = 0;
};

/// Where and why `text` is not JSON: "line 3, column 7: unexpected end of input; expected '}'".
/// Lines and columns, in bytes, begin with 1.
inline std::string describeParseError(const nlohmann::json::exception &error,
                                      std::string_view text) {
  const std::string what = error.what();
  const bool isSyntax = dynamic_cast<const nlohmann::json::parse_error *>(&error);
  const std::size_t reason = what.find(isSyntax ? " - " : "] ");
  const std::string why = reason == what.npos ? what : what.substr(reason + (isSyntax ? 3 : 2));
  const std::string_view before = text.substr(0, JsonFaultFinder::find(text));
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
