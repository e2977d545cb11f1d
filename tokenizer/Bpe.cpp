//===- Bpe.cpp ------------------------------------------------------------===//

#include "tokenizer/Bpe.h"

#include "base/JsonEntries.h"
#include "base/Utf8.h"
#include "tokenizer/ByteCharacters.h"

#include <algorithm>
#include <cstdio>
#include <functional>

namespace tokenizer {

namespace {

std::uint64_t pairOf(std::uint32_t left, std::uint32_t right) {
  return std::uint64_t(left) << 32 | right;
}

/// The last character of a text that is not empty.
char32_t lastCharacter(std::string_view text) {
  std::size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80)
    --at;
  return base::characterAt(text, at).value;
}

} // namespace

Bpe::Bpe(const Entry &model, bool isByteLevel) : isByteLevel(isByteLevel) {
  // The oldest files lack the type.
  if (model.find("type") ? model.type() != "BPE" : !model.find("merges"))
    model.mismatch("BPE, the only model that is supported (not Unigram, WordPiece or WordLevel)",
                   "type " + (model.find("type") ? "'" + model.type() + "'" : "nothing"));
  for (const char *name : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (const std::string text = model.optionalText(name); !text.empty())
      model.at(name).mismatch("none; marks of parts of words are not supported");
  if (const std::optional<Entry> dropout = model.find("dropout");
      dropout && !(dropout->json().is_number() && dropout->json().get<double>() == 0))
    dropout->mismatch("none or 0; tokens that are drawn at random are not supported");
  byteFallback = model.flag("byte_fallback", false);
  fuseUnknown = model.flag("fuse_unk", false);
  ignoreMerges = model.flag("ignore_merges", false);
  readVocabulary(model.at("vocab"));
  if (const std::string text = model.optionalText("unk_token"); !text.empty()) {
    unknown = find(text);
    if (!unknown)
      model.at("unk_token").mismatch("a token of the vocabulary");
  }
  readMerges(model.at("merges"));
  indexBytes();
}

void Bpe::readVocabulary(const Entry &vocabulary) {
  const Entry::Json &tokens = vocabulary.json();
  if (!tokens.is_object())
    vocabulary.mismatch("an object with the id of each token");
  ids.reserve(tokens.size());
  std::vector<const std::string *> owners;
  for (const auto &[text, id] : tokens.items()) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > kMaxTokenId)
      vocabulary.mismatch("an integer from 0 to " + std::to_string(kMaxTokenId),
                          "id " + id.dump() + " of token '" + text + "'");
    const auto number = id.get<TokenId>();
    if (owners.size() <= number)
      owners.resize(std::max<std::size_t>(number + 1, owners.size() * 2));
    texts.push_back(text);
    if (owners[number])
      vocabulary.refuse("tokens '" + *owners[number] + "' and '" + text + "' have the same id " +
                        std::to_string(number) + ", expected one token for each id");
    owners[number] = &texts.back();
    ids.emplace(texts.back(), number);
    if (!text.empty() && base::characterAt(text, 0).bytes == text.size())
      characters[base::characterAt(text, 0).value] = number;
  }
  if (ids.empty())
    vocabulary.refuse("has no tokens");
}

void Bpe::readMerges(const Entry &entry) {
  const Entry::Json &list = entry.json();
  if (!list.is_array())
    entry.mismatch("an array of pairs of tokens");
  merges = NumberTable<Merge>(list.size());
  std::size_t index = 0;
  for (const Entry::Json &each : list) {
    if (each.is_string()) {
      const auto &text = each.get_ref<const std::string &>();
      if (text.compare(0, 8, "#version") == 0)
        continue;
      const std::size_t blank = text.find(' ');
      if (blank == text.npos || text.find(' ', blank + 1) != text.npos)
        entry.mismatch("two tokens with a blank between them", "the merge '" + text + "'");
      const std::string_view view = text;
      addMerge(entry, index++, view.substr(0, blank), view.substr(blank + 1));
    } else {
      if (!each.is_array() || each.size() != 2 || !each[0].is_string() || !each[1].is_string())
        entry.mismatch("two tokens", "the merge " + base::shownEntry(each));
      addMerge(entry, index++, each[0].get_ref<const std::string &>(),
               each[1].get_ref<const std::string &>());
    }
  }
}

void Bpe::addMerge(const Entry &entry, std::size_t index, std::string_view left,
                   std::string_view right) {
  const std::string whole = std::string(left).append(right);
  const auto idOf = [&](std::string_view token) {
    const std::optional<TokenId> id = find(token);
    if (!id || token.empty())
      entry.mismatch("tokens of the vocabulary, which lacks '" + std::string(token) + "'",
                     "the merge of '" + std::string(left) + "' and '" + std::string(right) + "'");
    return *id;
  };
  const TokenId first = idOf(left), second = idOf(right);
  merges[pairOf(first, second)] = {static_cast<std::uint32_t>(index), idOf(whole)};
  if (!isByteLevel)
    joinable[pairOf(lastCharacter(left), base::characterAt(right, 0).value)] = true;
}

void Bpe::indexBytes() {
  hasAllBytes = true;
  for (unsigned i = 0; i < 256; ++i) {
    std::string text;
    if (isByteLevel) {
      base::appendCharacter(text, characterOfByte(static_cast<unsigned char>(i)));
    } else {
      char name[8];
      std::snprintf(name, sizeof name, "<0x%02X>", i);
      text = name;
    }
    const std::optional<TokenId> id = find(text);
    bytes[i] = id.value_or(kNoToken);
    hasAllBytes &= id.has_value();
  }
}

std::optional<TokenId> Bpe::find(std::string_view token) const {
  const auto found = ids.find(token);
  return found == ids.end() ? std::nullopt : std::optional(found->second);
}

void Bpe::encode(std::string_view word, Workspace &workspace, std::vector<TokenId> &result) const {
  if (isByteLevel) {
    if (workspace.cache.take(word, result))
      return;
    workspace.starts.clear();
    const std::size_t before = result.size();
    const std::optional<TokenId> whole =
        ignoreMerges ? find(charactersOfBytes(word)) : std::nullopt;
    if (whole) {
      result.push_back(*whole);
    } else {
      startBytes(word, workspace.starts);
      merge(workspace, 0, workspace.starts.size(), result);
    }
    return workspace.cache.add(word, result.data() + before, result.size() - before);
  }
  if (const std::optional<TokenId> whole = ignoreMerges ? find(word) : std::nullopt)
    return result.push_back(*whole);
  if (workspace.cache.take(word, result))
    return;
  std::vector<Workspace::Start> &starts = workspace.starts;
  starts.clear();
  start(word, starts);
  // A word may be a whole document. It can be split between two characters that no merge joins: the
  // parts before and after the split never form one token.
  std::size_t first = 0;
  for (std::size_t i = 1; i <= starts.size(); ++i) {
    if (i < starts.size() && (!starts[i - 1].character || !starts[i].character ||
                              joinable.find(pairOf(starts[i - 1].character, starts[i].character))))
      continue;
    const std::size_t begin = first == 0 ? 0 : starts[first].begin;
    const std::size_t end = i == starts.size() ? word.size() : starts[i].begin;
    encodePart(word.substr(begin, end - begin), workspace, first, i, result);
    first = i;
  }
}

void Bpe::encodePart(std::string_view part, Workspace &workspace, std::size_t first,
                     std::size_t last, std::vector<TokenId> &result) const {
  if (workspace.cache.take(part, result))
    return;
  const std::size_t before = result.size();
  merge(workspace, first, last, result);
  workspace.cache.add(part, result.data() + before, result.size() - before);
}

void Bpe::startBytes(std::string_view word, std::vector<Workspace::Start> &starts) const {
  if (!hasAllBytes)
    return start(charactersOfBytes(word), starts);
  for (const char byte : word)
    starts.push_back({bytes[static_cast<unsigned char>(byte)], 0, 0});
}

void Bpe::start(std::string_view word, std::vector<Workspace::Start> &starts) const {
  // The order is that of `tokenizers`: an unknown character is added when the next known one is
  // found, so bytes of another one precede it.
  bool pending = false;
  const auto addUnknown = [&](std::size_t at) {
    if (pending)
      starts.push_back({*unknown, 0, at});
    pending = false;
  };
  for (std::size_t at = 0; at < word.size();) {
    const base::Character next = base::characterAt(word, at);
    const std::size_t begin = at;
    at += next.bytes;
    if (const TokenId *known = characters.find(next.value)) {
      addUnknown(begin);
      starts.push_back({*known, next.value, begin});
      continue;
    }
    const std::string_view all = word.substr(begin, next.bytes);
    if (byteFallback && !isByteLevel && std::all_of(all.begin(), all.end(), [&](char byte) {
          return bytes[static_cast<unsigned char>(byte)] != kNoToken;
        })) {
      for (const char byte : all)
        starts.push_back({bytes[static_cast<unsigned char>(byte)], 0, begin});
      continue;
    }
    if (!unknown)
      continue; // no token represents it
    if (!fuseUnknown)
      addUnknown(begin);
    pending = true;
  }
  addUnknown(word.size());
}

void Bpe::enqueue(Workspace &workspace, std::int32_t at) const {
  const auto &symbols = workspace.symbols;
  const std::int32_t next = at < 0 ? -1 : symbols[static_cast<std::size_t>(at)].next;
  if (next < 0)
    return;
  const Merge *found = merges.find(
      pairOf(symbols[static_cast<std::size_t>(at)].id, symbols[static_cast<std::size_t>(next)].id));
  if (!found)
    return;
  workspace.queue.push_back(pairOf(found->rank, static_cast<std::uint32_t>(at)));
  std::push_heap(workspace.queue.begin(), workspace.queue.end(), std::greater<>());
}

/// Looks at all pairs for each merge, which is faster for few than a queue of them.
void Bpe::mergeShort(const Workspace &workspace, std::size_t first, std::size_t last,
                     std::vector<TokenId> &result) const {
  std::array<TokenId, kShort> symbols;
  std::array<Merge, kShort> pairs; // with the next symbol
  std::size_t count = last - first;
  const auto look = [&](std::size_t at) {
    const Merge *found =
        at + 1 < count ? merges.find(pairOf(symbols[at], symbols[at + 1])) : nullptr;
    pairs[at] = found ? *found : Merge{kNoRank, 0};
  };
  for (std::size_t i = 0; i < count; ++i)
    symbols[i] = workspace.starts[first + i].id;
  for (std::size_t i = 0; i < count; ++i)
    look(i);
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < count; ++i)
      if (pairs[i].rank < pairs[best].rank)
        best = i;
    if (pairs[best].rank == kNoRank)
      break;
    symbols[best] = pairs[best].result;
    --count;
    for (std::size_t i = best + 1; i < count; ++i) {
      symbols[i] = symbols[i + 1];
      pairs[i] = pairs[i + 1];
    }
    look(best);
    if (best > 0)
      look(best - 1);
  }
  result.insert(result.end(), symbols.begin(),
                symbols.begin() + static_cast<std::ptrdiff_t>(count));
}

void Bpe::merge(Workspace &workspace, std::size_t first, std::size_t last,
                std::vector<TokenId> &result) const {
  if (last - first <= kShort)
    return mergeShort(workspace, first, last, result);
  auto &symbols = workspace.symbols;
  auto &queue = workspace.queue;
  symbols.clear();
  queue.clear();
  const auto count = static_cast<std::int32_t>(last - first);
  for (std::int32_t i = 0; i < count; ++i)
    symbols.push_back({workspace.starts[first + static_cast<std::size_t>(i)].id, i - 1,
                       i + 1 < count ? i + 1 : -1, true});
  for (std::int32_t i = 0; i < count; ++i)
    enqueue(workspace, i);
  while (!queue.empty()) {
    const std::uint64_t top = queue.front();
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    queue.pop_back();
    const auto at = static_cast<std::int32_t>(top & 0xffffffffu);
    auto &symbol = symbols[static_cast<std::size_t>(at)];
    if (!symbol.alive || symbol.next < 0)
      continue;
    auto &next = symbols[static_cast<std::size_t>(symbol.next)];
    const Merge *found = merges.find(pairOf(symbol.id, next.id));
    if (!found || found->rank != top >> 32)
      continue; // another pair than the one that was enqueued
    symbol.id = found->result;
    next.alive = false;
    symbol.next = next.next;
    if (symbol.next >= 0)
      symbols[static_cast<std::size_t>(symbol.next)].before = at;
    enqueue(workspace, symbol.before);
    enqueue(workspace, at);
  }
  for (std::int32_t at = count > 0 ? 0 : -1; at >= 0;
       at = symbols[static_cast<std::size_t>(at)].next)
    result.push_back(symbols[static_cast<std::size_t>(at)].id);
}

} // namespace tokenizer
