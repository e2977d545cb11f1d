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

std::string printableMessage(std::string_view message) {
  constexpr std::size_t kMax = 4000, kKept = 1000; // as the compiler
  if (message.size() <= kMax)
    return printable(message);
  const auto isInside = [&](std::size_t at) {
    return (message[at] & 0xC0) == 0x80;
  }; // of a character of UTF-8
  std::size_t end = kKept, begin = message.size() - kKept;
  while (end > 0 && isInside(end))
    --end;
  while (begin < message.size() && isInside(begin))
    ++begin;
  return printable(message.substr(0, end)) + " ... (" + std::to_string(begin - end) +
         " bytes left out) ... " + printable(message.substr(begin));
}

void NameList::add(std::string_view name) {
  if (++count <= 5)
    text.append(count > 1 ? ", '" : "'").append(name).append("'");
}

std::string printableHost(std::string_view text) {
  std::string result = printable(text, kMaxOfHost);
  for (char &c : result)
    if (!std::isalnum(static_cast<unsigned char>(c)) && !std::strchr("._-:", c))
      c = '?';
  return result;
}

} // namespace base
