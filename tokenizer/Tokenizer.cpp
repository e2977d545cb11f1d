//===- Tokenizer.cpp ------------------------------------------------------===//

#include "tokenizer/Tokenizer.h"

#include "base/Error.h"
#include "base/JsonObject.h"
#include "base/MappedFile.h"
#include "base/Utf8.h"
#include "tokenizer/AddedTokens.h"
#include "tokenizer/Bpe.h"
#include "tokenizer/Decoder.h"
#include "tokenizer/Entry.h"
#include "tokenizer/Normalizer.h"
#include "tokenizer/PreTokenizer.h"

#include <algorithm>
#include <sys/stat.h>

namespace tokenizer {

using base::Error;

namespace {

constexpr std::size_t kMaxTextBytes = std::size_t(1) << 30;

template <typename Part> Part readPart(const Entry &root, const char *name) {
  const std::optional<Entry> entry = root.find(name);
  return entry ? Part(*entry) : Part();
}

} // namespace

/// The ids that the post-processor of a file adds before and after those of a text:
/// TemplateProcessing, ByteLevel (which changes offsets only), and sequences of these.
class SpecialTokens {
public:
  SpecialTokens() = default;
  /// Error: a type that is not supported, or a wrong template.
  explicit SpecialTokens(const Entry &entry) { add(entry); }

  std::vector<TokenId> before, behind;

private:
  void add(const Entry &entry);
  void addTemplate(const Entry &entry);
};

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

struct Tokenizer::Parts {
  Normalizer normalizer;
  PreTokenizer preTokenizer;
  Bpe model;
  AddedTokens added;
  SpecialTokens special;
  Decoder decoder;

  struct Token {
    std::string_view text;    ///< null: no token
    std::string_view written; ///< the decoded text
    bool special = false;
  };
  std::vector<Token> tokens; ///< by id

  explicit Parts(const Entry &root)
      : normalizer(readPart<Normalizer>(root, "normalizer")),
        preTokenizer(readPart<PreTokenizer>(root, "pre_tokenizer")),
        model(root.at("model"), preTokenizer.isByteLevel()),
        special(readPart<SpecialTokens>(root, "post_processor")),
        decoder(readPart<Decoder>(root, "decoder")) {
    if (const std::optional<Entry> entry = root.find("added_tokens"))
      added = AddedTokens(*entry, model, normalizer);
    for (const auto &[text, id] : model.vocabulary())
      tokenAt(id) = {text, text, false};
    for (const AddedToken &token : added.list())
      tokenAt(token.id) = {token.content, token.written, token.special};
    for (const std::vector<TokenId> *ids : {&special.before, &special.behind})
      for (const TokenId id : *ids)
        if (id >= tokens.size() || !tokens[id].text.data())
          root.at("post_processor")
              .mismatch("ids of tokens of the file", "id " + std::to_string(id));
  }

  Token &tokenAt(TokenId id) {
    if (tokens.size() <= id)
      tokens.resize(id + 1);
    return tokens[id];
  }

  void encode(std::string_view text, bool addSpecialTokens, Bpe::Workspace &workspace,
              std::vector<TokenId> &ids) const {
    if (text.size() > kMaxTextBytes)
      throw Error("got a text of " + std::to_string(text.size()) + " bytes, expected at most " +
                  std::to_string(kMaxTextBytes) + "; split it into shorter documents");
    if (base::findInvalid(text) != text.npos)
      return encodeValid(base::replaceInvalid(text), addSpecialTokens, workspace, ids);
    encodeValid(text, addSpecialTokens, workspace, ids);
  }

  void encodeValid(std::string_view text, bool addSpecialTokens, Bpe::Workspace &workspace,
                   std::vector<TokenId> &ids) const {
    if (addSpecialTokens)
      ids.insert(ids.end(), special.before.begin(), special.before.end());
    const PreTokenizer::Visit encodeWord = [&](std::string_view word) {
      model.encode(word, workspace, ids);
    };
    added.raw().split(text, [&](std::string_view part, const AddedToken *token) {
      if (token)
        return ids.push_back(token->id);
      bool isFirst = part.data() == text.data();
      const std::string changed =
          normalizer.isEmpty() ? std::string() : normalizer.apply(part, &isFirst);
      const std::string_view normalized = normalizer.isEmpty() ? part : changed;
      added.normalized().split(normalized, [&](std::string_view inner, const AddedToken *found) {
        if (found)
          return ids.push_back(found->id);
        preTokenizer.split(inner, isFirst && inner.data() == normalized.data(), encodeWord);
      });
    });
    if (addSpecialTokens)
      ids.insert(ids.end(), special.behind.begin(), special.behind.end());
  }

  /// The bytes of an id, for callers that decode one after the other.
  std::string decode(TokenId id, bool skipSpecial, Decoder::State &state) const {
    if (id >= tokens.size() || !tokens[id].text.data() || (skipSpecial && tokens[id].special))
      return "";
    return decoder.next(tokens[id].written, state);
  }
};

Tokenizer::Tokenizer(std::unique_ptr<Parts> parts) : parts(std::move(parts)) {}
Tokenizer::Tokenizer(Tokenizer &&) noexcept = default;
Tokenizer &Tokenizer::operator=(Tokenizer &&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer Tokenizer::load(const std::string &path) {
  struct stat found;
  const bool isFolder = stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
  const std::string name = isFolder ? path + "/tokenizer.json" : path;
  if (isFolder && stat(name.c_str(), &found) != 0)
    throw Error("'" + path +
                "' has no file 'tokenizer.json'; download it with the weights, or save "
                "the tokenizer by transformers' save_pretrained");
  const base::MappedFile file(name);
  Tokenizer tokenizer = parse(std::string_view(file.data(), file.size()), name);
  file.requireWhole();
  return tokenizer;
}

Tokenizer Tokenizer::parse(std::string_view json, const std::string &name) {
  Entry::Json root;
  if (const std::string fault = base::parseJsonObject(json, root); !fault.empty())
    throw Error("'" + name + "' " + fault +
                ", expected a tokenizer.json of the library `tokenizers`");
  return Tokenizer(std::make_unique<Parts>(Entry(name, root)));
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, bool addSpecialTokens) const {
  std::vector<TokenId> ids;
  Encoder(*this).encode(text, addSpecialTokens, ids);
  return ids;
}

std::string Tokenizer::decode(const std::vector<TokenId> &ids, bool skipSpecial) const {
  std::string text;
  Decoder::State state = parts->decoder.begin();
  for (const TokenId id : ids)
    text += parts->decode(id, skipSpecial, state);
  return text;
}

std::size_t Tokenizer::vocabularySize() const { return parts->tokens.size(); }

std::optional<TokenId> Tokenizer::findToken(std::string_view text) const {
  for (const AddedToken &token : parts->added.list())
    if (token.content == text)
      return token.id;
  return parts->model.find(text);
}

std::optional<std::string_view> Tokenizer::textOf(TokenId id) const {
  if (id >= parts->tokens.size() || !parts->tokens[id].text.data())
    return std::nullopt;
  return parts->tokens[id].text;
}

bool Tokenizer::isSpecial(TokenId id) const {
  return id < parts->tokens.size() && parts->tokens[id].special;
}

struct Encoder::Work {
  Bpe::Workspace workspace;
};

Encoder::Encoder(const Tokenizer &tokenizer)
    : tokenizer(tokenizer), work(std::make_unique<Work>()) {}
Encoder::~Encoder() = default;

void Encoder::encode(std::string_view text, bool addSpecialTokens, std::vector<TokenId> &ids) {
  tokenizer.parts->encode(text, addSpecialTokens, work->workspace, ids);
}

struct StreamDecoder::State {
  Decoder::State decoder;
};

StreamDecoder::StreamDecoder(const Tokenizer &tokenizer, bool skipSpecial)
    : tokenizer(tokenizer), skipSpecial(skipSpecial), state(std::make_unique<State>()) {
  state->decoder = tokenizer.parts->decoder.begin();
}
StreamDecoder::~StreamDecoder() = default;

std::string StreamDecoder::add(TokenId id) {
  pending += tokenizer.parts->decode(id, skipSpecial, state->decoder);
  std::string done;
  std::size_t at = 0;
  while (at < pending.size()) {
    const base::Character next = base::characterAt(pending, at);
    if (next.truncated)
      break;
    done +=
        next.valid ? std::string_view(pending).substr(at, next.bytes) : base::kReplacementCharacter;
    at += next.bytes;
  }
  pending.erase(0, at);
  return done;
}

std::string StreamDecoder::finish() {
  const std::string left = base::replaceInvalid(pending);
  pending.clear();
  state->decoder = tokenizer.parts->decoder.begin();
  return left;
}

} // namespace tokenizer
