//===- Numbers.h - parsing of numbers in options ----------------*- C++ -*-===//
//
// The compiler and generated programs parse numbers with these functions, so that both accept the
// same texts: decimal, without blanks or leading zeros (C would read 010 as 8), in the range of the
// option; integers without '+'. Plain C++, as a generated program has a copy of this folder.
//
//===----------------------------------------------------------------------===//

#ifndef BASE_NUMBERS_H
#define BASE_NUMBERS_H

#include "base/PrintableText.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

namespace base {

/// "got 'many', expected an integer from 1 to 9"
inline std::string mismatch(std::string_view got, const std::string &expected) {
  return "got " + inQuotes(got) + ", expected " + expected;
}

/// The fewest digits that read back as the same f32: `0.1` as the user wrote it.
inline std::string shortest(float value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

/// The integers that an option accepts.
template <typename Int = std::int64_t> struct IntegerRange {
  Int least = std::numeric_limits<Int>::min();
  Int most = std::numeric_limits<Int>::max();

  std::string describe() const {
    return "an integer from " + std::to_string(least) + " to " + std::to_string(most);
  }
};

/// The numbers that an option accepts: finite, from `least` (or above it) to below `limit`.
struct NumberRange {
  double least = 0;
  bool aboveLeast = false;
  double limit = std::numeric_limits<double>::infinity();
  /// The number is used in f32: its rounded value must be in the range, and not 0 unless it is.
  bool isF32 = true;

  std::string describe() const {
    std::ostringstream text;
    text << (std::isfinite(limit) ? (isF32 ? "an f32 number " : "a number ")
                                  : (isF32 ? "a finite f32 number " : "a finite number "))
         << (aboveLeast ? "> " : ">= ") << least;
    if (std::isfinite(limit))
      text << " and < " << limit;
    return text.str();
  }

  bool contains(double value) const {
    const double used = isF32 ? static_cast<double>(static_cast<float>(value)) : value;
    return std::isfinite(used) && (aboveLeast ? used > least : used >= least) && used < limit &&
           (used != 0) == (value != 0);
  }
};

namespace detail {

/// Whether `text` begins like a decimal number: with a digit, and with a zero only directly before
/// the point or the end; or with a point before a digit, which no integer has.
inline bool beginsAsDecimal(std::string_view text) {
  if (!text.empty() && text.front() == '-')
    text.remove_prefix(1);
  const auto isDigit = [&](std::size_t i) {
    return i < text.size() && text[i] >= '0' && text[i] <= '9';
  };
  if (!text.empty() && text[0] == '.')
    return isDigit(1);
  return isDigit(0) && !(text[0] == '0' && isDigit(1));
}

template <typename Number> bool parseAll(std::string_view text, Number &value) {
  if (!beginsAsDecimal(text))
    return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

} // namespace detail

/// Parses `text` into `value`. Returns an empty text, or the fault; then `value` does not change.
template <typename Int>
std::string parseInteger(std::string_view text, IntegerRange<Int> range, Int &value) {
  Int parsed{};
  if (!detail::parseAll(text, parsed) || text == "-0" || parsed < range.least ||
      parsed > range.most)
    return mismatch(text, range.describe());
  value = parsed;
  return "";
}

/// Parses `text`, such as `1e-3`, `.001` or `+0.5`, into `value`. Returns an empty text, or the
/// fault; then `value` does not change.
inline std::string parseNumber(std::string_view text, NumberRange range, double &value) {
  double parsed = 0;
  const bool hasPlus = !text.empty() && text.front() == '+';
  if (!detail::parseAll(text.substr(hasPlus), parsed) || std::signbit(parsed) ||
      !range.contains(parsed))
    return mismatch(text, range.describe());
  value = parsed;
  return "";
}

} // namespace base

#endif // BASE_NUMBERS_H
