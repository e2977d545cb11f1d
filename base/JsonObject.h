//===- JsonObject.h - JSON texts of files, within limits --------*- C++ -*-===//

#ifndef BASE_JSONOBJECT_H
#define BASE_JSONOBJECT_H

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace base {

/// Limits of headers, indices and manifests: the length is that of the reference reader of
/// safetensors; a parser takes a hundred bytes of memory for each level of nesting.
constexpr std::size_t kMaxJsonBytes = 100'000'000;
constexpr int kMaxJsonDepth = 8;

/// Follows a text up to its first error, and notes its first fault: an object that has a name
/// twice, of which a parser keeps one, or nesting deeper than kMaxJsonDepth, for which a recursive
/// parser takes stack and any other memory.
class JsonStructure final : public nlohmann::json_sax<nlohmann::json> {
public:
  /// "field 'links[0].name': got it twice, expected each field once".
  std::string fault;
  /// Bytes before the error: an invalid character, or a number that is too large.
  std::size_t before = 0;

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t &) override { return value(); }
  bool string(string_t &) override { return value(); }
  bool binary(binary_t &) override { return value(); }
  bool start_object(std::size_t) override { return open(/*isObject=*/true); }
  bool start_array(std::size_t) override { return open(/*isObject=*/false); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t &name) override {
    Level &level = levels.back();
    level.name = name;
    if (!level.names.insert(name).second && fault.empty())
      fault = "field '" + place() + "': got it twice, expected each field once";
    return true;
  }
  bool parse_error(std::size_t read, const std::string &token,
                   const nlohmann::json::exception &error) override {
    const bool isNumber = dynamic_cast<const nlohmann::json::out_of_range *>(&error);
    before = read - std::min(read, isNumber ? token.size() : 1);
    return false;
  }

private:
  /// An object or an array that encloses the position.
  struct Level {
    bool isObject;
    std::set<std::string> names = {}; ///< of an object, so far
    std::string name = {};            ///< the latest
    std::size_t index = 0;            ///< of an array, of the next element
  };

  bool open(bool isObject) {
    if (levels.size() == static_cast<std::size_t>(kMaxJsonDepth)) {
      if (fault.empty())
        fault = "is nested deeper than " + std::to_string(kMaxJsonDepth) + " levels";
      return false;
    }
    levels.push_back({isObject});
    return true;
  }
  bool close() {
    levels.pop_back();
    return value();
  }
  bool value() {
    if (!levels.empty())
      ++levels.back().index;
    return true;
  }
  std::string place() const {
    std::string text;
    for (const Level &level : levels)
      text += !level.isObject ? "[" + std::to_string(level.index) + "]"
                              : (text.empty() ? "" : ".") + level.name;
    return text;
  }

  std::vector<Level> levels;
};

/// The fault of the structure of `text`, as a text that follows a subject; nothing without one, and
/// where `text` is not JSON.
inline std::string findStructureFault(std::string_view text) {
  JsonStructure structure;
  nlohmann::json::sax_parse(text.begin(), text.end(), &structure);
  return structure.fault;
}

/// Bytes of `text` before its first error.
inline std::size_t positionOfError(std::string_view text) {
  JsonStructure structure;
  nlohmann::json::sax_parse(text.begin(), text.end(), &structure);
  return std::min(structure.before, text.size());
}

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
