//===- SpecialTokens.h - tokens around every text ---------------*- C++ -*-===//

#ifndef TOKENIZER_SPECIALTOKENS_H
#define TOKENIZER_SPECIALTOKENS_H

#include "tokenizer/Bpe.h"
#include "tokenizer/Entry.h"

#include <vector>

namespace tokenizer {

/// The ids that the post-processor of a file adds before and after those of a text:
/// TemplateProcessing, ByteLevel (which changes offsets only), and sequences of these.
class SpecialTokens {
public:
  SpecialTokens() = default;
  /// Error: a type that is not supported, or a wrong template.
  explicit SpecialTokens(const Entry &entry) { add(entry); }

  std::vector<TokenId> before, behind;

  std::vector<TokenId> all() const;

private:
  void add(const Entry &entry);
  void addTemplate(const Entry &entry);
};

} // namespace tokenizer

#endif // TOKENIZER_SPECIALTOKENS_H
