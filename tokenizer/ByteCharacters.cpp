//===- ByteCharacters.cpp -------------------------------------------------===//

#include "tokenizer/ByteCharacters.h"

#include "base/Utf8.h"

#include <array>

namespace tokenizer {

namespace {

constexpr bool isPrintable(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xff && byte != 0xad);
}

struct Tables {
  std::array<char32_t, 256> character{};
  std::array<int, 0x200> byte{};

  constexpr Tables() {
    for (int &each : byte)
      each = -1;
    char32_t free = 0x100;
    for (unsigned i = 0; i < 256; ++i) {
      character[i] = isPrintable(i) ? i : free++;
      byte[character[i]] = static_cast<int>(i);
    }
  }
};
constexpr Tables kTables;

} // namespace

char32_t characterOfByte(unsigned char byte) { return kTables.character[byte]; }

std::string charactersOfBytes(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes)
    base::appendCharacter(text, characterOfByte(static_cast<unsigned char>(byte)));
  return text;
}

std::optional<std::string> bytesOfCharacters(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size();) {
    const base::Character next = base::characterAt(text, at);
    if (next.value >= kTables.byte.size() || kTables.byte[next.value] < 0)
      return std::nullopt;
    bytes += static_cast<char>(kTables.byte[next.value]);
    at += next.bytes;
  }
  return bytes;
}

} // namespace tokenizer
