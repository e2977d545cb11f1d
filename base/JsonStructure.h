//===- JsonStructure.h - what a JSON parser lets pass -----------*- C++ -*-===//

#ifndef BASE_JSONSTRUCTURE_H
#define BASE_JSONSTRUCTURE_H

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <set>
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

} // namespace base

#endif // BASE_JSONSTRUCTURE_H
