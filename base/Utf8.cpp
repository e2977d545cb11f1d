//===- Utf8.cpp -----------------------------------------------------------===//

#include "base/Utf8.h"

#include <cstdint>
#include <cstring>

namespace base {

namespace {

/// Bytes of a character that begins with `lead`, and the range of its second byte (Unicode,
/// table 3-7); 0 bytes if none begins so.
struct Lead {
  std::size_t bytes;
  unsigned char least = 0x80, most = 0xbf;
};

Lead leadOf(unsigned char byte) {
  if (byte < 0x80)
    return {1};
  if (byte < 0xc2)
    return {0};
  if (byte < 0xe0)
    return {2};
  if (byte < 0xf0)
    return {3, static_cast<unsigned char>(byte == 0xe0 ? 0xa0 : 0x80),
            static_cast<unsigned char>(byte == 0xed ? 0x9f : 0xbf)};
  if (byte < 0xf5)
    return {4, static_cast<unsigned char>(byte == 0xf0 ? 0x90 : 0x80),
            static_cast<unsigned char>(byte == 0xf4 ? 0x8f : 0xbf)};
  return {0};
}

} // namespace

Character characterAt(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80)
    return {first, 1, true, false};
  const Lead lead = leadOf(first);
  if (lead.bytes == 0)
    return {0, 1, false, false};
  char32_t value = first & (0x7fu >> lead.bytes);
  for (std::size_t i = 1; i < lead.bytes; ++i) {
    if (at + i >= text.size())
      return {0, i, false, true};
    const auto byte = static_cast<unsigned char>(text[at + i]);
    if (byte < (i == 1 ? lead.least : 0x80) || byte > (i == 1 ? lead.most : 0xbf))
      return {0, i, false, false};
    value = value << 6 | (byte & 0x3fu);
  }
  return {value, lead.bytes, true, false};
}

void appendCharacter(std::string &text, char32_t value) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (value < 0x80)
    return put(value);
  if (value < 0x800) {
    put(0xc0 | value >> 6);
  } else {
    if (value < 0x10000) {
      put(0xe0 | value >> 12);
    } else {
      put(0xf0 | value >> 18);
      put(0x80 | (value >> 12 & 0x3f));
    }
    put(0x80 | (value >> 6 & 0x3f));
  }
  put(0x80 | (value & 0x3f));
}

std::size_t findInvalid(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    // Eight bytes of ASCII at once.
    std::uint64_t word;
    if (at + sizeof word <= text.size()) {
      std::memcpy(&word, text.data() + at, sizeof word);
      if ((word & 0x8080808080808080u) == 0) {
        at += sizeof word;
        continue;
      }
    }
    const Character next = characterAt(text, at);
    if (!next.valid)
      return at;
    at += next.bytes;
  }
  return std::string_view::npos;
}

std::string replaceInvalid(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const std::size_t end = findInvalid(text);
    valid += text.substr(0, end);
    if (end == text.npos)
      break;
    valid += kReplacementCharacter;
    text.remove_prefix(end + characterAt(text, end).bytes);
  }
  return valid;
}

bool isWhiteSpace(char32_t value) {
  return (value >= 0x9 && value <= 0xd) || value == 0x20 || value == 0x85 || value == 0xa0 ||
         value == 0x1680 || (value >= 0x2000 && value <= 0x200a) || value == 0x2028 ||
         value == 0x2029 || value == 0x202f || value == 0x205f || value == 0x3000;
}

} // namespace base
