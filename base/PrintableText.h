//===- PrintableText.h - text of peers and files in messages --------------===//
#ifndef BASE_PRINTABLETEXT_H
#define BASE_PRINTABLETEXT_H

#include <cstddef>
#include <string>
#include <string_view>

namespace base {

/// At most `most` bytes of `text`, up to its first zero byte, with control characters and bytes
/// that are not UTF-8 replaced by `?`, so that text of a peer cannot send commands to a terminal.
std::string printable(std::string_view text, std::size_t most);

/// The whole of `text`, control characters and bytes that are not UTF-8 as escapes, "\\n" and
/// "\\x1B". Characters that are printable already do not change.
std::string printable(std::string_view text);

/// Text of a user in a message: printable and in quotes. The middle of a text of more than 200
/// bytes is omitted, so that the message is read.
std::string inQuotes(std::string_view text);

/// The same as `printable` for a message. The middle of a long message is omitted, as messages
/// quote files and command lines of any length.
std::string printableMessage(std::string_view message);

/// The same for a message of several lines: line ends and tabs do not change.
std::string printableLines(std::string_view message);

/// A list of names for a message; at most five are shown.
class NameList {
public:
  void add(std::string_view name);
  std::size_t size() const { return count; }
  std::string list() const { return count > 5 ? text + ", …" : text; }

private:
  std::size_t count = 0;
  std::string text;
};

/// As `printable`, for host names: every character except letters, digits and `._-:` becomes `?`.
std::string printableHost(std::string_view text);

} // namespace base

#endif // BASE_PRINTABLETEXT_H
