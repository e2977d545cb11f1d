//===- JsonStructure.h - what a JSON parser lets pass -----------*- C++ -*-===//

#ifndef BASE_JSONSTRUCTURE_H
#define BASE_JSONSTRUCTURE_H

#include "base/JsonObject.h"

#include <vector>

namespace base {

/// Follows a text up to its first fault: an object that has a name twice, of which a parser keeps
/// one, or nesting deeper than kMaxJsonDepth, for which a recursive parser takes stack.
class JsonStructure final : public nlohmann::json_sax<nlohmann::json> {
public:
  /// "field 'links[0].name': got it twice, expected each field once".
  std::string fault;

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
    if (level.names.insert(name).second)
      return true;
    fault = "field '" + place() + "': got it twice, expected each field once";
    return false;
  }
  /// What is not JSON is left to the parser of the text.
  bool parse_error(std::size_t, const std::string &, const nlohmann::json::exception &) override {
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

} // namespace base

#endif // BASE_JSONSTRUCTURE_H
