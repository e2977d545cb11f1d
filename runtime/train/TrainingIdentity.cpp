//===- TrainingIdentity.cpp -----------------------------------------------===//

#include "runtime/train/TrainingIdentity.h"

#include "base/Error.h"
#include "runtime/train/RunContents.h"

#include <charconv>

namespace fsdp::rt {

using namespace base;

namespace {

using Value = std::optional<std::string>;

/// The shortest text that reads as `value`: 0.1 as the user wrote it.
std::string shortest(float value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

Value flag(bool given) { return given ? Value("") : std::nullopt; }

Value describe(const std::optional<FileContent> &content) {
  if (!content)
    return std::nullopt;
  return (content->tensors ? format("of %zu tensors, ", content->tensors) : "of ") +
         format("%zu bytes, digest %s", content->bytes, digestText(content->digest).c_str());
}

} // namespace

RunIdentity identityOfTraining(const Program &program, const Options &options, std::int64_t steps,
                               const RunContents &contents, const std::string &resumed) {
  RunIdentity identity;
  const auto number = [](auto value) { return std::to_string(value); };
  identity.add("source digest", digestText(program.digest));
  identity.add("--communicator", options.communicator);
  identity.add("--steps", number(steps));
  identity.add("--seed", number(options.seed));
  const double rate = options.learningRate.value_or(program.defaultLearningRate);
  identity.add("--lr", shortest(static_cast<float>(rate))); // what training uses
  identity.add("--shuffle", flag(options.shuffle));
  identity.add("--data", describe(contents.data));
  identity.add("--val-data", describe(contents.valData));
  identity.add("--eval-every", options.evalEvery ? Value(number(options.evalEvery)) : std::nullopt);
  identity.add("--init", describe(contents.init));
  identity.add("--save", flag(!options.save.empty()));
  identity.add("--save-every", options.saveEvery ? Value(number(options.saveEvery)) : std::nullopt);
  identity.add("--save-async", flag(options.saveAsync));
  identity.add("--save-errors",
               options.saveErrors == "stop" ? std::nullopt : Value(options.saveErrors));
  identity.add("--resume", options.resume.empty() ? std::nullopt : Value(resumed));
  identity.add("--start-over", flag(options.startOver));
  identity.add("--allow-model-change", flag(options.allowModelChange));
  identity.add("--export", flag(!options.exportTo.empty()));
  identity.add("--trace", flag(!options.trace.empty()));
  return identity;
}

} // namespace fsdp::rt
