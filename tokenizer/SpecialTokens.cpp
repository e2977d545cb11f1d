//===- SpecialTokens.cpp --------------------------------------------------===//

#include "tokenizer/SpecialTokens.h"

namespace tokenizer {

std::vector<TokenId> SpecialTokens::all() const {
  std::vector<TokenId> ids = before;
  ids.insert(ids.end(), behind.begin(), behind.end());
  return ids;
}

void SpecialTokens::add(const Entry &entry) {
  const std::string type = entry.type();
  if (type == "Sequence") {
    for (const Entry &each : entry.at("processors").list())
      add(each);
  } else if (type == "TemplateProcessing") {
    addTemplate(entry);
  } else if (type != "ByteLevel") {
    entry.refuseType("TemplateProcessing, ByteLevel and Sequence");
  }
}

void SpecialTokens::addTemplate(const Entry &entry) {
  const Entry pieces = entry.at("single");
  std::vector<TokenId> first, last;
  std::size_t texts = 0;
  for (const Entry &piece : pieces.list()) {
    if (piece.find("Sequence")) {
      ++texts;
      continue;
    }
    const std::string name = piece.at("SpecialToken").at("id").text();
    for (const Entry &id : entry.at("special_tokens").at(name).at("ids").list())
      (texts == 0 ? first : last).push_back(id.integer(kMaxTokenId));
  }
  if (texts != 1)
    pieces.mismatch("the text once",
                    "a template with the text " + std::to_string(texts) + " times");
  // A later template encloses the result of an earlier one.
  before.insert(before.begin(), first.begin(), first.end());
  behind.insert(behind.end(), last.begin(), last.end());
}

} // namespace tokenizer
