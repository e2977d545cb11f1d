//===- Tokenizer.h - texts and ids by a tokenizer.json ----------*- C++ -*-===//
//
// Reads the file `tokenizer.json` of the library `tokenizers` (Hugging Face) and returns the same
// ids and texts as that library. Byte-pair encoding of both families is supported: on bytes (gpt2,
// llama-3, qwen) and on characters with byte fallback (llama-2, mistral). Depends on base/, PCRE2
// (expressions that split words) and utf8proc (normalization forms).
//
//===----------------------------------------------------------------------===//

#ifndef TOKENIZER_TOKENIZER_H
#define TOKENIZER_TOKENIZER_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tokenizer {

using TokenId = std::uint32_t;

/// A tokenizer, which never changes: any number of threads may use it.
class Tokenizer {
public:
  /// Reads `path`, a file or a folder with a file `tokenizer.json`. Throws a base::Error that names
  /// the file, the entry, its value and the supported values. The entries `truncation` and
  /// `padding` are settings of a library and are ignored.
  static Tokenizer load(const std::string &path);
  /// The same for the text of such a file; messages call it `name`.
  static Tokenizer parse(std::string_view json, const std::string &name);

  Tokenizer(Tokenizer &&) noexcept;
  Tokenizer &operator=(Tokenizer &&) noexcept;
  ~Tokenizer();

  /// The ids of `text`. Tokens that the file adds to the vocabulary, special ones too, are found in
  /// the text. `addSpecialTokens`: with those that the file puts around every text, such as `<s>`.
  /// Bytes that are not UTF-8 are encoded as U+FFFD, as by Python's `errors="replace"`.
  /// Throws an error for a text of more than 1 GiB.
  std::vector<TokenId> encode(std::string_view text, bool addSpecialTokens) const;

  /// The bytes of `ids`, which are UTF-8 if they are ids of a text; `skipSpecial` leaves special
  /// tokens out. Ids without a token have no bytes.
  std::string decode(const std::vector<TokenId> &ids, bool skipSpecial) const;

  /// The largest id plus one: the minimum size of a model's vocabulary.
  std::size_t vocabularySize() const;
  /// The id of a token by its text in the file, such as "</s>".
  std::optional<TokenId> findToken(std::string_view text) const;
  /// The text in the file of a token; nothing if no token has the id.
  std::optional<std::string_view> textOf(TokenId id) const;
  bool isSpecial(TokenId id) const;

private:
  friend class Encoder;
  friend class StreamDecoder;
  struct Parts;
  explicit Tokenizer(std::unique_ptr<Parts> parts);

  std::unique_ptr<const Parts> parts;
};

/// Encodes many texts, each faster than Tokenizer::encode does, as it keeps the ids of words. One
/// thread uses it at a time. The tokenizer must live as long.
class Encoder {
public:
  explicit Encoder(const Tokenizer &tokenizer);
  ~Encoder();

  /// Appends the ids of `text`; see Tokenizer::encode.
  void encode(std::string_view text, bool addSpecialTokens, std::vector<TokenId> &ids);

private:
  struct Work;
  const Tokenizer &tokenizer;
  const std::unique_ptr<Work> work;
};

/// Decodes ids as they come, for a text that is shown while it is generated. Only whole characters
/// are returned; invalid bytes become U+FFFD. Together they are the text of all ids. A decoder may
/// treat the first token of a text in its own way (llama-2 drops its blank): for ids that continue
/// a prompt, add those of the prompt first and drop the characters returned. The tokenizer must
/// outlive the decoder.
class StreamDecoder {
public:
  StreamDecoder(const Tokenizer &tokenizer, bool skipSpecial);
  ~StreamDecoder();

  /// The characters that `id` completes, possibly none.
  std::string add(TokenId id);
  /// The rest of a character that was not completed. Then another text begins.
  std::string finish();

private:
  struct State;
  const Tokenizer &tokenizer;
  const bool skipSpecial;
  const std::unique_ptr<State> state;
  std::string pending; ///< the beginning of a character
};

} // namespace tokenizer

#endif // TOKENIZER_TOKENIZER_H
