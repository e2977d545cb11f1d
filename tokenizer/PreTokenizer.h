//===- PreTokenizer.h - words of a text -------------------------*- C++ -*-===//

#ifndef TOKENIZER_PRETOKENIZER_H
#define TOKENIZER_PRETOKENIZER_H

#include "tokenizer/Entry.h"
#include "tokenizer/Regex.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tokenizer {

/// Splits a text into the words that are encoded separately: Split, ByteLevel, Metaspace, Digits,
/// Punctuation, and sequences of these.
class PreTokenizer {
public:
  /// A pre-tokenizer for which a text is one word.
  PreTokenizer() = default;
  /// Throws an error for an unsupported type, an invalid field, or a step after ByteLevel.
  explicit PreTokenizer(const Entry &entry) { add(entry); }

  /// Whether the vocabulary is of bytes: a word then represents its bytes, each as a character of
  /// ByteCharacters.h. `split` returns the bytes.
  bool isByteLevel() const { return byteLevel; }

  /// Called with each word, which is not empty and valid during the call.
  using Visit = std::function<void(std::string_view word)>;
  /// Cuts `text`, valid UTF-8. `isFirst`: the text begins where the document does.
  void split(std::string_view text, bool isFirst, const Visit &visit) const;

private:
  enum class Behavior { Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous };
  enum class PrependScheme { Always, First, Never };
  struct Step {
    enum Kind { Split, PrefixSpace, Metaspace } kind;
    std::optional<Regex> pattern = std::nullopt;
    Behavior behavior = Behavior::Isolated;
    bool invert = false;
    std::string replacement = {}; ///< of Metaspace
    PrependScheme prepend = PrependScheme::Never;
    bool splits = false;
  };

  void add(const Entry &entry);
  void addSplit(Regex pattern, Behavior behavior, bool invert = false);
  void addByteLevel(const Entry &entry);
  void addMetaspace(const Entry &entry);
  static Behavior readBehavior(const Entry &entry);
  void run(std::size_t step, std::string_view text, bool isFirst, const Visit &visit) const;
  void runSplit(std::size_t step, std::string_view text, bool isFirst, const Visit &visit) const;
  void runMetaspace(std::size_t step, std::string_view text, bool isFirst,
                    const Visit &visit) const;

  std::vector<Step> steps;
  bool byteLevel = false;
};

} // namespace tokenizer

#endif // TOKENIZER_PRETOKENIZER_H
