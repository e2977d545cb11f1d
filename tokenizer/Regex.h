//===- Regex.h - regular expressions of tokenizer.json ----------*- C++ -*-===//

#ifndef TOKENIZER_REGEX_H
#define TOKENIZER_REGEX_H

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace tokenizer {

/// A regular expression, with the meaning that it has in the library `tokenizers`: that library
/// compiles with Oniguruma and its syntax of Ruby, this class with PCRE2. Constructs with the same
/// meaning in both are accepted, also if they have to be rewritten (`\s` is Unicode's White_Space);
/// an expression with any other construct is refused.
class Regex {
public:
  /// Throws an error if the expression is invalid or has an unsupported construct. The message
  /// names neither file nor entry.
  explicit Regex(const std::string &pattern);
  /// The expression for a text itself.
  static Regex literal(std::string_view text);
  ~Regex();
  Regex(Regex &&) noexcept;
  Regex &operator=(Regex &&) noexcept;

  struct Match {
    std::size_t begin = 0, end = 0; ///< bytes
  };

  /// Finds the first match that begins at byte `from` or later; false if there is none. `text` is
  /// valid UTF-8, `from` the beginning of a character or the end. Throws an error if the search
  /// takes more memory or steps than the library allows.
  bool search(std::string_view text, std::size_t from, Match &match) const;

  /// Calls `visit(begin, end)` for every match, from left to right. Matches do not overlap; an
  /// empty one directly after another is skipped.
  template <typename Visit> void forEachMatch(std::string_view text, Visit visit) const {
    bool any = false;
    Match last, match;
    for (std::size_t from = 0; from <= text.size() && search(text, from, match);) {
      if (match.begin == match.end && any && last.end == match.end) {
        from = nextCharacter(text, from);
        continue;
      }
      visit(match.begin, match.end);
      any = true;
      last = match;
      from = match.end;
    }
  }

private:
  struct Compiled;
  Regex(const std::string &pattern, std::string translated);
  static std::size_t nextCharacter(std::string_view text, std::size_t at);

  std::unique_ptr<Compiled> compiled;
};

} // namespace tokenizer

#endif // TOKENIZER_REGEX_H
