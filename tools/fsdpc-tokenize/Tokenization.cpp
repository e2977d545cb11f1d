//===- Tokenization.cpp ---------------------------------------------------===//

#include "tools/fsdpc-tokenize/Tokenization.h"

#include "base/AtomicFile.h"
#include "base/Error.h"
#include "base/FileSystem.h"
#include "base/JsonEntries.h"
#include "base/JsonObject.h"
#include "base/OutputPath.h"
#include "base/Thread.h"

#include <chrono>
#include <cmath>
#include <exception>
#include <memory>
#include <sys/stat.h>
#include <thread>

namespace fsdpc {

using base::Error;

namespace {

/// Bytes of documents in one batch, per thread.
constexpr std::size_t kBatchBytes = 4 << 20;
constexpr std::size_t kPrintBytes = 1 << 20;

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

/// A document with its tokens, from one thread.
struct Encoded {
  std::vector<std::uint32_t> tokens;
  std::size_t textBytes = 0;
  std::exception_ptr failure;
};

/// Threads that encode a batch of documents, each with a separate cache.
class Encoders {
public:
  Encoders(const tokenizer::Tokenizer &tokenizer, const TokenizeOptions &options)
      : options(options) {
    for (std::int64_t i = 0; i < options.threads; ++i)
      encoders.push_back(std::make_unique<tokenizer::Encoder>(tokenizer));
  }

  std::vector<Encoded> encode(const std::vector<Document> &documents) {
    std::vector<Encoded> results(documents.size());
    std::atomic<std::size_t> next{0};
    const auto work = [&](tokenizer::Encoder &encoder) {
      std::string storage;
      for (std::size_t i; (i = next++) < documents.size();)
        encodeOne(documents[i], encoder, storage, results[i]);
    };
    std::vector<std::thread> threads;
    const auto join = [&] {
      for (std::thread &thread : threads)
        thread.join();
    };
    try {
      for (std::size_t i = 1; i < std::min(encoders.size(), documents.size()); ++i)
        threads.push_back(base::startThread("an encoder", [&, i] { work(*encoders[i]); }));
    } catch (...) {
      next = documents.size();
      join();
      throw;
    }
    work(*encoders[0]);
    join();
    return results;
  }

private:
  void encodeOne(const Document &document, tokenizer::Encoder &encoder, std::string &storage,
                 Encoded &result) const {
    try {
      const std::string_view text = document.read(options.documents, storage);
      result.textBytes = text.size();
      if (text.empty())
        return;
      try {
        encoder.encode(text, options.addSpecialTokens, result.tokens);
      } catch (const Error &error) { // a text that is too long, or takes too long
        document.refuse(error.what());
      }
      if (options.end)
        result.tokens.push_back(options.end->id);
    } catch (...) {
      result.failure = std::current_exception();
    }
  }

  const TokenizeOptions &options;
  std::vector<std::unique_ptr<tokenizer::Encoder>> encoders;
};

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

bool isOfValidation(std::uint64_t index, double share) {
  // The finalizer of splitmix64: all bits of the result depend on all of the index.
  std::uint64_t bits = (index + 1) * 0x9e3779b97f4a7c15u;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
  bits ^= bits >> 31;
  return std::ldexp(static_cast<double>(bits >> 11), -53) < share;
}

TokenizeResult tokenizeFiles(const tokenizer::Tokenizer &tokenizer, const TokenizeOptions &options,
                             const std::atomic<bool> &stopped) {
  const auto begin = std::chrono::steady_clock::now();
  DocumentSource source(options.inputs, options.documents.separator);
  const bool isWide = tokenizer.vocabularySize() > std::size_t(UINT16_MAX) + 1;
  const PrefixFolder folder(options.out);
  TokenFiles training(options.out, "train", options.shardTokens, isWide);
  std::optional<TokenFiles> validation;
  if (options.validationShare > 0)
    validation.emplace(options.out, "val", options.shardTokens, isWide);

  TokenizeResult result;
  Encoders encoders(tokenizer, options);
  std::vector<Document> documents;
  std::uint64_t index = 0;
  while (source.next(kBatchBytes * static_cast<std::size_t>(options.threads), documents)) {
    for (const Encoded &each : encoders.encode(documents)) {
      if (each.failure)
        std::rethrow_exception(each.failure);
      const bool isValidation = isOfValidation(index++, options.validationShare);
      ++result.documents;
      if (each.textBytes == 0) {
        ++result.emptyDocuments;
        continue;
      }
      result.validationDocuments += isValidation;
      result.textBytes += static_cast<std::int64_t>(each.textBytes);
      (isValidation ? *validation : training).add(each.tokens);
    }
    for (const Document &document : documents)
      document.file->requireWhole();
    documents.clear();
    if (stopped)
      throw Error("ended by a signal; nothing was written");
  }
  const auto requireTokens = [&](const TokenFiles &files, const std::string &split) {
    if (files.tokens() == 0)
      throw Error("the inputs have " + std::to_string(result.documents - result.emptyDocuments) +
                  " documents with text, of which none is of the " + split +
                  " split; give more documents" + (validation ? " or another --val-share" : ""));
  };
  requireTokens(training, "train");
  if (validation)
    requireTokens(*validation, "val");
  training.commit();
  result.files = training.written();
  result.tokens = training.tokens();
  if (validation) {
    validation->commit();
    for (TokenFiles::Written &each : validation->written())
      result.files.push_back(std::move(each));
    result.tokens += validation->tokens();
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

void printTokens(const tokenizer::Tokenizer &tokenizer, const std::string &path,
                 const std::optional<EndToken> &end) {
  const TokenReader tokens(path);
  base::AtomicFile output(base::OutputPath::standardOutput());
  tokenizer::StreamDecoder decoder(tokenizer, /*skipSpecial=*/false);
  std::string text;
  for (std::int64_t i = 0; i < tokens.size(); ++i) {
    const std::uint32_t token = tokens[i];
    if (!tokenizer.textOf(token))
      throw Error("'" + path + "': got token " + std::to_string(token) + " at position " +
                  std::to_string(i) + ", which the tokenizer does not have, expected less than " +
                  std::to_string(tokenizer.vocabularySize()) +
                  "; give the tokenizer that the file was written with");
    if (end && token == end->id) {
      // The next document is decoded as a separate text.
      text += decoder.finish() + end->text;
    } else {
      text += decoder.add(token);
    }
    if (text.size() >= kPrintBytes) {
      output.write(text.data(), text.size());
      text.clear();
    }
  }
  tokens.requireWhole();
  text += decoder.finish();
  output.write(text.data(), text.size());
  output.commit();
}

} // namespace fsdpc
