//===- Normalizer.h - changes of a text before it is split ------*- C++ -*-===//

#ifndef TOKENIZER_NORMALIZER_H
#define TOKENIZER_NORMALIZER_H

#include "tokenizer/Entry.h"
#include "tokenizer/Regex.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tokenizer {

/// `text` with every match of `pattern` replaced.
std::string replaceMatches(std::string_view text, const Regex &pattern, std::string_view content);

/// The expression at `pattern` of a replacement or a split: `{"Regex": …}` or `{"String": …}`.
Regex readPattern(const Entry &entry);

/// Unicode's normalization forms (utf8proc), Prepend, Replace, and sequences of these.
class Normalizer {
public:
  /// One that changes nothing.
  Normalizer() = default;
  /// Error: a type that is not supported, or a wrong field.
  explicit Normalizer(const Entry &entry) { add(entry); }

  bool isEmpty() const { return steps.empty(); }
  /// `text` is valid UTF-8. `keepsBegin` becomes false if its beginning is deleted.
  std::string apply(std::string_view text, bool *keepsBegin = nullptr) const;

private:
  struct Step {
    enum Kind { Form, Prepend, Replace } kind;
    int form = 0; ///< options of utf8proc
    std::string content = {};
    std::optional<Regex> pattern = std::nullopt;
  };
  void add(const Entry &entry);

  std::vector<Step> steps;
};

} // namespace tokenizer

#endif // TOKENIZER_NORMALIZER_H
