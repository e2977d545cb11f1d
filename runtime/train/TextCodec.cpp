#include "runtime/train/TextCodec.h"

#include "base/Error.h"
#include "base/JsonObject.h"
#include "base/Numbers.h"
#include "base/PrintableText.h"
#ifndef FSDP_WITHOUT_TOKENIZERS
#include "base/Utf8.h"
#include "tokenizer/Tokenizer.h"
#endif

#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>
#include <utility>

namespace fsdp::rt {

using namespace base;

namespace {

class Bytes final : public TextCodec {
public:
  std::vector<std::int32_t> encode(const std::string &text) const override {
    std::vector<std::int32_t> tokens;
    for (char c : text)
      tokens.push_back(static_cast<unsigned char>(c));
    return tokens;
  }
  std::string add(std::int32_t token) override {
    return std::string(1, static_cast<char>(static_cast<unsigned char>(token)));
  }
};

/// Decimal numbers with blanks between them.
class Ids final : public TextCodec {
public:
  explicit Ids(std::int64_t vocabulary) : vocabulary(vocabulary) {}

  std::vector<std::int32_t> encode(const std::string &text) const override {
    std::vector<std::int32_t> tokens;
    std::istringstream words(text);
    for (std::string word; words >> word;) {
      std::int64_t id = 0;
      const std::string fault = parseInteger(word, {0, vocabulary - 1}, id);
      if (!fault.empty())
        throw Error("--prompt: a token " + fault +
                        "; there is no tokenizer.json beside the weights, so that a prompt is a "
                        "list of ids such as '12 5 7' (--tokenizer DIR names one elsewhere)",
                    kExitBadCommandLine)
            .byAll();
      tokens.push_back(static_cast<std::int32_t>(id));
    }
    return tokens;
  }
  std::string add(std::int32_t token) override {
    return (std::exchange(isFirst, false) ? "" : " ") + std::to_string(token);
  }

private:
  std::int64_t vocabulary;
  bool isFirst = true;
};

const BesideFile *findFile(const BesideFiles &files, const char *name) {
  for (const BesideFile &file : files)
    if (file.name == name)
      return &file;
  return nullptr;
}

/// As messages name it.
std::string placeOf(const BesideFile &file) { return file.path.empty() ? file.name : file.path; }

#ifndef FSDP_WITHOUT_TOKENIZERS

class Tokens final : public TextCodec {
public:
  Tokens(tokenizer::Tokenizer opened, std::vector<std::int32_t> ends, std::int64_t vocabulary,
         std::string place)
      : tokenizer(std::move(opened)), stream(tokenizer, /*skipSpecial=*/true),
        ends(std::move(ends)), vocabulary(vocabulary), place(std::move(place)) {}

  std::vector<std::int32_t> encode(const std::string &text) const override {
    if (const std::size_t at = base::findInvalid(text); at != text.npos)
      throw Error("--prompt: got bytes that are not UTF-8 at byte " + std::to_string(at) +
                      ", expected a text, which the tokenizer " + base::inQuotes(place) +
                      " divides into tokens",
                  kExitBadCommandLine)
          .byAll();
    std::vector<std::int32_t> tokens;
    for (tokenizer::TokenId id : tokenizer.encode(text, /*addSpecialTokens=*/true)) {
      if (static_cast<std::int64_t>(id) >= vocabulary)
        throw Error("--prompt: the tokenizer '" + place +
                    format("' has a token %lld, and the model %lld tokens; put the tokenizer of "
                           "this model beside its weights",
                           static_cast<long long>(id), static_cast<long long>(vocabulary)))
            .byAll();
      tokens.push_back(static_cast<std::int32_t>(id));
    }
    return tokens;
  }
  // At the beginning of a text a word may have no blank before it.
  void follow(const std::vector<std::int32_t> &prompt) override {
    for (std::int32_t token : prompt)
      stream.add(static_cast<tokenizer::TokenId>(token));
  }
  std::string add(std::int32_t token) override {
    return stream.add(static_cast<tokenizer::TokenId>(token));
  }
  std::string finish() override { return stream.finish(); }
  bool isEnd(std::int32_t token) const override {
    return std::find(ends.begin(), ends.end(), token) != ends.end();
  }

private:
  tokenizer::Tokenizer tokenizer;
  tokenizer::StreamDecoder stream;
  std::vector<std::int32_t> ends;
  std::int64_t vocabulary;
  std::string place; ///< of the tokenizer, for messages
};

using Settings = nlohmann::json;

/// The object of a file; empty if there is no file. Throws an error if it is not a JSON object.
Settings objectOf(const BesideFiles &files, const char *name) {
  Settings object = Settings::object();
  if (const BesideFile *file = findFile(files, name))
    if (const std::string fault = parseJsonObject(file->text, object); !fault.empty())
      throw Error("'" + placeOf(*file) + "', beside the weights, " + fault +
                  ": fix it, or remove it")
          .byAll();
  return object;
}

/// The tokens that end a text.
std::vector<std::int32_t> endsOf(const tokenizer::Tokenizer &tokenizer, const BesideFiles &files) {
  std::vector<std::int32_t> ends;
  const Settings generation = objectOf(files, "generation_config.json");
  const Settings found = generation.value("eos_token_id", Settings());
  for (const Settings &id : found.is_array()  ? found
                            : found.is_null() ? Settings::array()
                                              : Settings::array({found})) {
    if (!id.is_number_integer() || id < 0 || id > INT32_MAX)
      throw Error("'" + placeOf(*findFile(files, "generation_config.json")) +
                  "', beside the weights: 'eos_token_id': " +
                  mismatch(id.dump(-1, ' ', true, Settings::error_handler_t::replace),
                           "the id of a token, or a list of them") +
                  ": fix it, or remove it")
          .byAll();
    ends.push_back(id.get<std::int32_t>());
  }
  if (!ends.empty())
    return ends;
  const Settings config = objectOf(files, "tokenizer_config.json");
  Settings token = config.value("eos_token", Settings());
  if (token.is_object())
    token = token.value("content", Settings());
  if (token.is_string())
    if (const auto id = tokenizer.findToken(token.get<std::string>()))
      ends.push_back(static_cast<std::int32_t>(*id));
  return ends;
}

std::unique_ptr<TextCodec> openTokens(const BesideFile &file, const BesideFiles &beside,
                                      std::int64_t vocabulary) {
  auto tokenizer = tokenizer::Tokenizer::parse(file.text, placeOf(file));
  std::vector<std::int32_t> ends = endsOf(tokenizer, beside);
  return std::make_unique<Tokens>(std::move(tokenizer), std::move(ends), vocabulary, placeOf(file));
}

#else

std::unique_ptr<TextCodec> openTokens(const BesideFile &file, const BesideFiles &, std::int64_t) {
  throw Error("there is a tokenizer beside the weights, '" + placeOf(file) +
              "', and this program was compiled without tokenizers: install libpcre2-dev and "
              "libutf8proc-dev, and compile it again")
      .byAll();
}

#endif

} // namespace

std::unique_ptr<TextCodec> TextCodec::open(const Program &program, const BesideFiles &beside) {
  const std::int64_t vocabulary = program.generation.vocabulary;
  if (const BesideFile *file = findFile(beside, "tokenizer.json"))
    return openTokens(*file, beside, vocabulary);
  if (vocabulary == 256)
    return std::make_unique<Bytes>();
  return std::make_unique<Ids>(vocabulary);
}

} // namespace fsdp::rt
