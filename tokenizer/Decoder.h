//===- Decoder.h - text of tokens -------------------------------*- C++ -*-===//

#ifndef TOKENIZER_DECODER_H
#define TOKENIZER_DECODER_H

#include "tokenizer/Entry.h"
#include "tokenizer/Regex.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tokenizer {

/// Converts tokens to bytes, one after the other: ByteLevel, Replace, ByteFallback, Metaspace,
/// Strip (at the beginning), Fuse, and sequences of these.
class Decoder {
public:
  /// One that puts a blank between tokens, as for a file without decoder.
  Decoder() = default;
  /// Error: a type that is not supported, a wrong field, or an order that needs later tokens.
  explicit Decoder(const Entry &entry);

  /// The state that the previous tokens pass to the next one.
  struct State {
    bool isFirst = true;
    /// Characters that each Strip after Fuse may still remove.
    std::vector<std::size_t> stripped;
  };
  State begin() const;
  /// The bytes of the next token. They need not end with a character.
  std::string next(std::string_view token, State &state) const;

private:
  struct Step {
    enum Kind { ByteLevel, Replace, ByteFallback, Metaspace, Strip, StripAll } kind;
    std::optional<Regex> pattern = std::nullopt;
    std::string content = {}; ///< of Replace, Strip; of Metaspace the mark
    std::size_t count = 0;
    bool dropsFirst = false; ///< Metaspace: marks of the first token are dropped
  };
  void add(const Entry &entry);
  void addMetaspace(const Entry &entry);

  std::vector<Step> steps;
  bool blanks = true; ///< between tokens
  bool fused = false, hasBytes = false;
};

} // namespace tokenizer

#endif // TOKENIZER_DECODER_H
