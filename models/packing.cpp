//===- packing.cpp - documents and loss masks in rows of tokens -----------===//

#include "models/packing.h"

#include "base/Numbers.h"
#include "base/PrintableText.h"
#include "base/Sequences.h"
#include <algorithm>

using namespace fsdp::dsl;

namespace fsdp::models {

namespace {

/// Tokens after which answers begin, and those with which they end, if any do.
struct Answers {
  std::vector<int64_t> begin, end;
};

} // namespace

[[noreturn]] static void refuse(const std::string &got, const std::string &expected) {
  throw ModelError(Where::here(), "got " + got + ", expected " + expected);
}

static std::vector<int64_t> tokensIn(const std::string &text, const std::string &option) {
  std::vector<int64_t> tokens;
  for (const std::string &word : base::listElements(text)) {
    int64_t token = 0;
    if (!base::parseInteger<int64_t>(word, {0, INT64_MAX}, token).empty())
      refuse("--mask-prompt=" + base::printable(option),
             "ANSWER or ANSWER:END, each one or more token ids separated by commas");
    tokens.push_back(token);
  }
  constexpr size_t kMaxQuoted = 16;
  if (tokens.size() > kMaxQuoted)
    refuse("--mask-prompt with " + std::to_string(tokens.size()) + " tokens in a row",
           "at most " + std::to_string(kMaxQuoted));
  return tokens;
}

static Answers answersIn(const std::string &option) {
  const size_t colon = option.find(':');
  Answers answers;
  answers.begin = tokensIn(option.substr(0, colon), option);
  if (colon != std::string::npos)
    answers.end = tokensIn(option.substr(colon + 1), option);
  return answers;
}

void PackingConfig::check(int64_t vocab) const {
  const std::string below = "below --vocab=" + std::to_string(vocab);
  if (documentEnd >= vocab)
    refuse("--document-end=" + std::to_string(documentEnd), "a token " + below);
  if (maskPrompt.empty())
    return;
  const Answers answers = answersIn(maskPrompt);
  if (documentEnd >= 0 && std::count(answers.begin.begin(), answers.begin.end(), documentEnd))
    refuse("--mask-prompt=" + base::printable(maskPrompt) +
               ", whose ANSWER has the token of --document-end=" + std::to_string(documentEnd),
           "an ANSWER within one document");
  if (!answers.end.empty() &&
      (base::endsWith(answers.begin, answers.end) || base::endsWith(answers.end, answers.begin)))
    refuse("--mask-prompt=" + base::printable(maskPrompt),
           "ANSWER and END of which neither ends with the other: an answer would begin and end at "
           "one token");
  for (const std::vector<int64_t> &tokens : {answers.begin, answers.end})
    for (int64_t token : tokens)
      if (token >= vocab)
        refuse("the token " + std::to_string(token) + " in --mask-prompt", "tokens " + below);
}

std::optional<Tensor> PackingConfig::ids(Located tokens) const {
  if (documentEnd < 0)
    return std::nullopt;
  return documentIds(tokens, documentEnd);
}

std::optional<Tensor> PackingConfig::positions(Located tokens) const {
  if (documentEnd < 0)
    return std::nullopt;
  return documentPositions(tokens, documentEnd);
}

// A target after the end of a document is in no span.
std::optional<Tensor> PackingConfig::mask(Located tokens) const {
  const auto end = documentEnd < 0 ? std::nullopt : std::optional(documentEnd);
  if (!maskPrompt.empty()) {
    const Answers answers = answersIn(maskPrompt);
    return spanMask(tokens, answers.begin, answers.end, end);
  }
  if (end)
    return documentMask(tokens, *end);
  return std::nullopt;
}

void PackingConfig::addLoss(Model &model, Located losses, Located tokens) const {
  const std::optional<Tensor> counted = mask(tokens);
  model.loss(counted ? weightedMean(losses, *counted) : mean(losses));
  if (!maskPrompt.empty())
    model.metric("counted", mean(*counted));
}

} // namespace fsdp::models
