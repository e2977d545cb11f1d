#include "base/PrintableText.h"

#include <cctype>
#include <cstring>

namespace base {

namespace {

constexpr std::size_t kMaxOfHost = 63;

} // namespace

std::string printable(std::string_view text, std::size_t most) {
  return printable(text.substr(0, std::min(most, text.find('\0'))));
}

std::string printable(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (c == 0xC2 && next >= 0x80 && next < 0xA0) { // a control character in UTF-8
      result += '?';
      ++i;
    } else {
      result += c < 0x20 || c == 0x7F ? '?' : text[i];
    }
  }
  return result;
}

namespace {

/// `text` as `show` has its parts: all of it, or `kept` bytes of each end where it has more than
/// `most`.
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

/// Control characters, those of UTF-8 too, as escapes of C.
std::string escaped(std::string_view text) {
  constexpr char digits[] = "0123456789ABCDEF";
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    const bool isOfTwo = c == 0xC2 && next >= 0x80 && next < 0xA0;
    if (c == '\n' || c == '\t' || c == '\r')
      result += c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r";
    else if (c < 0x20 || c == 0x7F || isOfTwo)
      for (unsigned char byte : text.substr(i, isOfTwo ? 2 : 1))
        result.append("\\x").append({digits[byte / 16], digits[byte % 16]});
    else
      result += text[i];
    i += isOfTwo;
  }
  return result;
}

} // namespace

std::string inQuotes(std::string_view text) {
  return "'" + shortened(text, 200, 80, escaped) + "'";
}

std::string printableMessage(std::string_view message) {
  return shortened(message, 4000, 1000, // as the compiler
                   [](std::string_view part) { return printable(part); });
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
