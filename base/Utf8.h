//===- Utf8.h - characters of a text ----------------------------*- C++ -*-===//

#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <cstddef>
#include <string>
#include <string_view>

namespace base {

/// U+FFFD, which stands for bytes that are no character.
constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";

/// What begins at one byte of a text.
struct Character {
  char32_t value = 0;
  /// Bytes of the character; of what is none, the bytes that one U+FFFD stands for (at least one).
  std::size_t bytes = 0;
  bool valid = false;
  /// The text ends inside of what may become a character with more bytes.
  bool truncated = false;
};

/// The character at byte `at` of `text`, which is less than its size. Invalid are surrogates,
/// overlong forms and values over U+10FFFF, too; their bytes are counted as Unicode recommends it
/// (maximal subparts), as Python and Rust do.
Character characterAt(std::string_view text, std::size_t at);

void appendCharacter(std::string &text, char32_t value);

/// The position of the first byte that is no part of a character; npos in valid UTF-8.
std::size_t findInvalid(std::string_view text);

/// `text` with U+FFFD in the place of what is no character.
std::string replaceInvalid(std::string_view text);

/// Unicode's property White_Space.
bool isWhiteSpace(char32_t value);

} // namespace base

#endif // BASE_UTF8_H
