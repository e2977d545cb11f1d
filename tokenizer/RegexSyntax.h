//===- RegexSyntax.h - expressions of Oniguruma in PCRE2 --------*- C++ -*-===//

#ifndef TOKENIZER_REGEXSYNTAX_H
#define TOKENIZER_REGEXSYNTAX_H

#include <string>

namespace tokenizer {

/// `pattern`, an Oniguruma expression in Ruby syntax, in the syntax of PCRE2 (with PCRE2_UTF,
/// without PCRE2_UCP). Throws an error for constructs that are not supported or have another
/// meaning in PCRE2: anchors, back references, `\b`, `\h`, sets within sets, options except `(?i:`,
/// and in that characters with foldings of several characters.
std::string translateRegex(const std::string &pattern);

} // namespace tokenizer

#endif // TOKENIZER_REGEXSYNTAX_H
