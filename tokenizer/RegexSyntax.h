//===- RegexSyntax.h - expressions of Oniguruma in PCRE2 --------*- C++ -*-===//

#ifndef TOKENIZER_REGEXSYNTAX_H
#define TOKENIZER_REGEXSYNTAX_H

#include <string>

namespace tokenizer {

/// `pattern`, an expression of Oniguruma's in its syntax of Ruby, as PCRE2 writes it (with
/// PCRE2_UTF, without PCRE2_UCP). Error: it has what is not supported, or means another thing in
/// PCRE2: anchors, back references, `\b`, `\h`, sets within sets, options but `(?i:`,
/// and in that what has foldings of several characters.
std::string translateRegex(const std::string &pattern);

} // namespace tokenizer

#endif // TOKENIZER_REGEXSYNTAX_H
