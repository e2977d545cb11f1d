//===- AddedTokens.cpp ----------------------------------------------------===//

#include "tokenizer/AddedTokens.h"

#include "base/Utf8.h"
#include "tokenizer/Regex.h"

#include <algorithm>
#include <unordered_map>

namespace tokenizer {

namespace {

/// Whether a character is a word character by the definition of Unicode (UTS 18).
bool isWordCharacter(std::string_view character) {
  static const Regex word("[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}]");
  Regex::Match match;
  return word.search(character, 0, match);
}

std::size_t lastCharacterOf(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80)
    --at;
  return at;
}

bool endsWithWord(std::string_view text) {
  return !text.empty() && isWordCharacter(text.substr(lastCharacterOf(text)));
}

bool beginsWithWord(std::string_view text) {
  return !text.empty() && isWordCharacter(text.substr(0, base::characterAt(text, 0).bytes));
}

/// Where the white space at the end of a text begins.
std::size_t beginOfLastSpace(std::string_view text) {
  while (!text.empty()) {
    const std::size_t last = lastCharacterOf(text);
    if (!base::isWhiteSpace(base::characterAt(text, last).value))
      break;
    text.remove_suffix(text.size() - last);
  }
  return text.size();
}

/// Where the white space at the beginning of a text ends.
std::size_t endOfFirstSpace(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const base::Character next = base::characterAt(text, at);
    if (!base::isWhiteSpace(next.value))
      break;
    at += next.bytes;
  }
  return at;
}

} // namespace

void TokenFinder::add(const AddedToken &token) {
  const std::string &pattern = token.written;
  if (pattern.empty())
    return;
  isFirstByte[static_cast<unsigned char>(pattern[0])] = true;
  std::uint32_t node = 0;
  for (const char byte : pattern) {
    std::uint32_t &child = children[std::uint64_t(node) << 8 | static_cast<unsigned char>(byte)];
    if (child == 0) {
      child = static_cast<std::uint32_t>(nodes.size());
      nodes.push_back(nullptr);
    }
    node = child;
  }
  if (!nodes[node])
    nodes[node] = &token;
}

const AddedToken *TokenFinder::longestAt(std::string_view text, std::size_t at,
                                         std::size_t &end) const {
  const AddedToken *found = nullptr;
  std::uint32_t node = 0;
  while (at < text.size()) {
    const std::uint32_t *child =
        children.find(std::uint64_t(node) << 8 | static_cast<unsigned char>(text[at]));
    if (!child)
      break;
    node = *child;
    ++at;
    if (nodes[node]) {
      found = nodes[node];
      end = at;
    }
  }
  return found;
}

void TokenFinder::split(std::string_view text, const Visit &visit) const {
  if (text.empty())
    return;
  std::size_t done = 0, at = 0;
  while (nodes.size() > 1 && at < text.size()) {
    std::size_t begin = at, end = at;
    while (begin < text.size() && !isFirstByte[static_cast<unsigned char>(text[begin])])
      ++begin;
    if (begin == text.size())
      break;
    const AddedToken *token = longestAt(text, begin, end);
    if (!token) {
      at = begin + 1;
      continue;
    }
    at = end;
    if (token->singleWord &&
        (endsWithWord(text.substr(0, begin)) || beginsWithWord(text.substr(end))))
      continue;
    // White space that belongs to the previous token stays there.
    if (token->takesSpaceBefore)
      begin = std::max(beginOfLastSpace(text.substr(0, begin)), done);
    if (token->takesSpaceBehind)
      end += endOfFirstSpace(text.substr(end));
    if (done < begin)
      visit(text.substr(done, begin - done), nullptr);
    visit(text.substr(begin, end - begin), token);
    // The search continues in white space that the token has taken, as it does in `tokenizers`.
    done = end;
  }
  if (done < text.size())
    visit(text.substr(done), nullptr);
}

AddedTokens::AddedTokens(const Entry &entry, const Bpe &model, const Normalizer &normalizer) {
  std::unordered_map<TokenId, std::string> owners;
  for (const auto &[text, id] : model.vocabulary())
    owners.emplace(id, text);
  const std::vector<Entry> entries = entry.list();
  tokens.reserve(entries.size()); // the finders keep pointers
  for (const Entry &each : entries) {
    AddedToken token;
    token.content = each.at("content").text();
    token.id = each.at("id").integer(kMaxTokenId);
    token.singleWord = each.flag("single_word", false);
    token.takesSpaceBefore = each.flag("lstrip", false);
    token.takesSpaceBehind = each.flag("rstrip", false);
    token.special = each.flag("special", false);
    token.normalized = each.flag("normalized", !token.special);
    if (const std::optional<TokenId> id = model.find(token.content); id && *id != token.id)
      each.at("id").mismatch(std::to_string(*id) + ", the id of '" + token.content +
                             "' in the vocabulary");
    token.written = token.normalized ? normalizer.apply(token.content) : token.content;
    const auto [owner, isNew] = owners.emplace(token.id, token.content);
    if (!isNew && owner->second != token.content)
      each.at("id").mismatch("a free id for '" + token.content + "'",
                             std::to_string(token.id) + ", the id of '" + owner->second + "'");
    tokens.push_back(std::move(token));
  }
  for (const AddedToken &token : tokens)
    (token.normalized ? normalizedFinder : rawFinder).add(token);
}

} // namespace tokenizer
