//===- ByteCharacters.h - bytes as printable characters ---------*- C++ -*-===//

#ifndef TOKENIZER_BYTECHARACTERS_H
#define TOKENIZER_BYTECHARACTERS_H

#include <optional>
#include <string>
#include <string_view>

namespace tokenizer {

/// Byte-level vocabularies write each byte as a printable character, as GPT-2's does: printable
/// bytes of Latin-1 as themselves, the others, in order, as U+0100 and the following.
char32_t characterOfByte(unsigned char byte);

/// `bytes`, each as its character, in UTF-8.
std::string charactersOfBytes(std::string_view bytes);

/// The reverse; nothing if a character of `text` represents no byte. `text` is valid UTF-8.
std::optional<std::string> bytesOfCharacters(std::string_view text);

} // namespace tokenizer

#endif // TOKENIZER_BYTECHARACTERS_H
