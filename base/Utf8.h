//===- Utf8.h - characters of a text ----------------------------*- C++ -*-===//

#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <cstddef>
#include <string>
#include <string_view>

namespace base {

/// U+FFFD, the replacement for bytes that are not a character.
constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";

/// The character, or the invalid bytes, at one position of a text.
struct Character {
  char32_t value = 0;
  /// Bytes of the character; if invalid, the bytes that one U+FFFD replaces (at least one).
  std::size_t bytes = 0;
  bool valid = false;
  /// The text ends inside a sequence that further bytes may complete.
  bool truncated = false;
};

/// The character at byte `at` of `text`, which is less than its size. Invalid are surrogates,
/// overlong forms and values over U+10FFFF, too; their bytes are counted as Unicode recommends it
/// (maximal subparts), as Python and Rust do.
Character characterAt(std::string_view text, std::size_t at);

void appendCharacter(std::string &text, char32_t value);

/// The position of the first byte that is not part of a character; npos in valid UTF-8.
std::size_t findInvalid(std::string_view text);

/// `text` with invalid bytes replaced by U+FFFD.
std::string replaceInvalid(std::string_view text);

/// Unicode's property White_Space.
bool isWhiteSpace(char32_t value);

} // namespace base

#endif // BASE_UTF8_H
