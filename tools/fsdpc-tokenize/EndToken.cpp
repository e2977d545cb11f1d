//===- EndToken.cpp -------------------------------------------------------===//

#include "tools/fsdpc-tokenize/EndToken.h"

#include "base/Error.h"
#include "base/FileSystem.h"
#include "base/JsonEntries.h"
#include "base/JsonObject.h"
#include "base/MappedFile.h"

#include <sys/stat.h>

namespace fsdpc {

using base::Error;

namespace {

/// The tokens with which base models end documents.
constexpr const char *kKnown[] = {"<|endoftext|>", "<|end_of_text|>", "</s>"};

/// The text of `eos_token` in the configuration next to the tokenizer; "" if there is none.
std::string configuredToken(const std::string &path, std::string &config) {
  struct stat found;
  const bool isFolder = stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
  config = (isFolder ? path : base::folderOf(path)) + "/tokenizer_config.json";
  if (stat(config.c_str(), &found) != 0)
    return "";
  const base::MappedFile file(config);
  nlohmann::json json;
  if (const std::string fault =
          base::parseJsonObject(std::string_view(file.data(), file.size()), json);
      !fault.empty())
    throw Error("'" + config + "' " + fault + "; repair it, or name the token by --append-end");
  file.requireWhole();
  const nlohmann::json *token = base::findEntry(json, "eos_token");
  if (token && token->is_object())
    token = base::findEntry(*token, "content");
  return token && token->is_string() ? token->get<std::string>() : "";
}

} // namespace

std::optional<EndToken> chooseEndToken(const tokenizer::Tokenizer &tokenizer,
                                       const std::string &path, const std::string &asked) {
  if (asked == "none")
    return std::nullopt;
  std::string config;
  const std::string wanted = asked.empty() ? configuredToken(path, config) : asked;
  if (!wanted.empty()) {
    if (const auto id = tokenizer.findToken(wanted))
      return EndToken{*id, wanted};
    throw Error((asked.empty() ? "'" + config + "': 'eos_token'" : "--append-end") + ": got '" +
                wanted + "', which is not a token of '" + path +
                "', expected one, or none; --append-end names it");
  }
  for (const char *name : kKnown)
    if (const auto id = tokenizer.findToken(name))
      return EndToken{*id, name};
  throw Error("'" + path +
              "' does not say which token ends a document: there is no tokenizer_config.json with "
              "an 'eos_token' beside it; give --append-end=TOKEN, or none");
}

} // namespace fsdpc
