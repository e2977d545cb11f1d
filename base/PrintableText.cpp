#include "base/PrintableText.h"

#include "base/Utf8.h"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace base {

namespace {

constexpr std::size_t kMaxOfHost = 63, kMaxMessage = 4000, kEndOfMessage = 1000;

/// `text` with control characters and bytes that are not UTF-8 replaced by `show(bytes)`.
template <typename Show> std::string replaceControls(std::string_view text, Show show) {
  std::string result;
  while (!text.empty()) {
    const Character next = characterAt(text, 0);
    const std::string_view bytes = text.substr(0, next.valid ? next.bytes : 1);
    const bool isControl = next.value < 0x20 || (next.value >= 0x7F && next.value < 0xA0);
    result += !next.valid || isControl ? show(bytes) : std::string(bytes);
    text.remove_prefix(bytes.size());
  }
  return result;
}

/// "\x1B"
std::string escaped(std::string_view bytes) {
  constexpr char digits[] = "0123456789ABCDEF";
  std::string escapes;
  for (unsigned char byte : bytes)
    escapes.append("\\x").append({digits[byte / 16], digits[byte % 16]});
  return escapes;
}

} // namespace

std::string printable(std::string_view text, std::size_t most) {
  return replaceControls(text.substr(0, std::min(most, text.find('\0'))),
                         [](std::string_view) { return std::string("?"); });
}

std::string printable(std::string_view text) {
  return replaceControls(text, [](std::string_view bytes) {
    if (bytes == "\n" || bytes == "\t" || bytes == "\r")
      return std::string(bytes == "\n" ? "\\n" : bytes == "\t" ? "\\t" : "\\r");
    return escaped(bytes);
  });
}

namespace {

/// `text` converted by `show`: all of it, or `kept` bytes of each end if it has more than `most`.
template <typename Show>
std::string shortened(std::string_view text, std::size_t most, std::size_t kept, Show show) {
  if (text.size() <= most)
    return show(text);
  const auto isInside = [&](std::size_t at) {
    return (text[at] & 0xC0) == 0x80;
  }; // of a character of UTF-8
  std::size_t end = kept, begin = text.size() - kept;
  while (end > 0 && isInside(end))
    --end;
  while (begin < text.size() && isInside(begin))
    ++begin;
  return show(text.substr(0, end)) + " ... (" + std::to_string(begin - end) +
         " bytes left out) ... " + show(text.substr(begin));
}

} // namespace

std::string inQuotes(std::string_view text) {
  return "'" + shortened(text, 200, 80, [](std::string_view part) { return printable(part); }) +
         "'";
}

std::string printableMessage(std::string_view message) {
  return shortened(message, kMaxMessage, kEndOfMessage,
                   [](std::string_view part) { return printable(part); });
}

std::string printableLines(std::string_view message) {
  return shortened(message, kMaxMessage, kEndOfMessage, [](std::string_view part) {
    return replaceControls(part, [](std::string_view bytes) {
      return bytes == "\n" || bytes == "\t" ? std::string(bytes) : escaped(bytes);
    });
  });
}

void NameList::add(std::string_view name) {
  if (++count <= 5)
    text.append(count > 1 ? ", " : "").append(inQuotes(name));
}

std::string printableHost(std::string_view text) {
  std::string result = printable(text, kMaxOfHost);
  for (char &c : result)
    if (!std::isalnum(static_cast<unsigned char>(c)) && !std::strchr("._-:", c))
      c = '?';
  return result;
}

} // namespace base
