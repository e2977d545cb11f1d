#include "runtime/train/RunContents.h"

#include "base/Error.h"
#include "base/MappedFile.h"
#include "runtime/program/Roles.h"
#include "runtime/train/Hyperparameters.h"
#include "runtime/train/Log.h"

#include <vector>

namespace fsdp::rt {

using namespace base;

FileContent contentOf(const std::string &path) {
  const MappedFile file(path);
  return {path, file.size(), sampledDigest({file.data(), file.size()})};
}

FileContent contentOf(const WeightFiles &weights) {
  const std::vector<const FileTensor *> tensors = weights.tensors();
  FileContent content{weights.path(), 0, 0, tensors.size()};
  for (const FileTensor *tensor : tensors) {
    std::string text = tensor->name + " " + tensor->dtype;
    for (std::int64_t extent : tensor->shape)
      text += " " + std::to_string(extent);
    content.digest =
        sampledDigest({tensor->data, tensor->bytes}, contentDigest(text, content.digest));
    content.bytes += tensor->bytes;
  }
  return content;
}

FileContent sumOf(const std::vector<FileContent> &contents) {
  FileContent sum;
  for (const FileContent &content : contents) {
    sum.bytes += content.bytes;
    sum.digest = contentDigest(digestText(content.digest), sum.digest);
  }
  return sum;
}

RunData RunData::of(const Options &options) {
  return {sourcesOf("--data", options.data, /*takesWeights=*/true),
          sourcesOf("--val-data", options.valData, /*takesWeights=*/false)};
}

RunContents RunContents::of(const RunData &data, const InitialWeights *weights) {
  RunContents contents;
  for (const std::string &file : filesOf(data.training))
    contents.data.push_back(contentOf(file));
  for (const std::string &file : filesOf(data.validation))
    contents.valData.push_back(contentOf(file));
  if (!weights)
    return contents;
  for (const InitialWeights::Source &source : weights->sources()) {
    contents.init.push_back(contentOf(source.files));
    contents.init.back().pattern = source.from.pattern;
  }
  return contents;
}

namespace {

using Value = std::optional<std::string>;

Value flag(bool given) { return given ? Value("") : std::nullopt; }

std::string describe(const FileContent &content) {
  return (content.tensors ? format("of %zu tensors, ", content.tensors) : "of ") +
         format("%zu bytes, digest %s", content.bytes, digestText(content.digest).c_str());
}

Value describe(const std::vector<FileContent> &contents) {
  std::string text;
  for (const FileContent &content : contents)
    text += (text.empty() ? "" : "; ") +
            (content.pattern.empty() ? "" : "'" + content.pattern + "' ") + describe(content);
  return contents.empty() ? std::nullopt : Value(text);
}

/// Of many files one digest, as there may be thousands.
Value describeFiles(const std::vector<FileContent> &contents) {
  if (contents.size() < 2)
    return describe(contents);
  return format("of %zu files, ", contents.size()) + describe(sumOf(contents)).substr(3);
}

/// The number of files, samples and the weight of each source.
Value describe(const std::vector<DataSource> &sources) {
  std::string text;
  for (const DataSource &source : sources)
    text += format("%s%.12g (%zu file%s, %lld samples)", text.empty() ? "" : ", ", source.weight,
                   source.files.size(), source.files.size() == 1 ? "" : "s",
                   static_cast<long long>(source.samples));
  return sources.size() < 2 ? std::nullopt : Value(text);
}

Value joinedOrNone(const std::vector<std::string> &texts) {
  std::string text;
  for (const std::string &each : texts)
    text += (text.empty() ? "" : " ") + each;
  return texts.empty() ? std::nullopt : Value(text);
}

} // namespace

RunIdentity identityOfTraining(const Program &program, const Options &options, std::int64_t steps,
                               const RunData &data, const RunContents &contents,
                               const std::string &resumed) {
  RunIdentity identity;
  const auto number = [](auto value) { return std::to_string(value); };
  identity.add("source digest", digestText(digestOf(program)));
  identity.add("--communicator", options.communicator);
  identity.add("--steps", number(steps));
  identity.add("--seed", number(options.generation ? options.generation->seed : options.seed));
  if (options.generation) {
    identity.add("--prompt", options.generation->prompt);
    identity.add("--tokens", number(options.generation->tokens));
    identity.add("--temperature", shortest(static_cast<float>(options.generation->temperature)));
    identity.add("--top-k", number(options.generation->topK));
  }
  const double rate = options.learningRate.value_or(program.defaultLearningRate);
  identity.add("--lr", shortest(static_cast<float>(rate))); // rounded as in training
  const auto given = [&](const auto &value) {
    return value ? Value(number(*value)) : std::nullopt;
  };
  const auto f32 = [](const std::optional<double> &value) {
    return value ? Value(shortest(static_cast<float>(*value))) : std::nullopt;
  };
  identity.add("--schedule", options.schedule);
  identity.add("--warmup", given(options.warmup));
  identity.add("--min-lr", f32(options.minRate));
  identity.add("--decay-share", f32(options.decayShare));
  identity.add("--schedule-steps", given(options.scheduleSteps));
  for (const auto &[name, value] : options.constants)
    identity.add(constantOption(name), shortest(static_cast<float>(value)));
  const ParameterGroups groups = options.groups.over({});
  if (options.groups.rateScales)
    identity.add("--lr-scale", joinedOrNone(groups.rateScaleTexts()).value_or(kNoGroups));
  if (options.groups.noDecay)
    identity.add("--no-decay", joinedOrNone(groups.noDecay).value_or(kNoGroups));
  identity.add("--shuffle", flag(options.shuffle));
  identity.add("--data", describeFiles(contents.data));
  identity.add("the weights of --data", describe(data.training));
  identity.add("--val-data", describeFiles(contents.valData));
  identity.add("--eval-every", options.evalEvery ? Value(number(options.evalEvery)) : std::nullopt);
  identity.add("--init", describe(contents.init));
  identity.add("--init-missing",
               options.initMissing == "error" ? std::nullopt : Value(options.initMissing));
  identity.add("--save", flag(!options.save.empty()));
  identity.add("--save-every", options.saveEvery ? Value(number(options.saveEvery)) : std::nullopt);
  identity.add("--save-async", flag(options.saveAsync));
  identity.add("--save-errors",
               options.saveErrors == "stop" ? std::nullopt : Value(options.saveErrors));
  identity.add("--on-nan", options.onNan.empty() ? std::nullopt : Value(options.onNan));
  identity.add("--on-spike", options.onSpike.empty() ? std::nullopt : Value(options.onSpike));
  identity.add("--spike-deviations", f32(options.spikes.deviations));
  identity.add("--spike-window", number(options.spikes.window));
  identity.add("--resume", options.resume.empty() ? std::nullopt : Value(resumed));
  identity.add("--start-over", flag(options.startOver));
  identity.add("--allow-model-change", flag(options.allowModelChange));
  identity.add("--export", flag(!options.exportTo.empty()));
  identity.add("--export-merged", flag(!options.exportMerged.empty()));
  identity.add("--export-only", joinedOrNone(options.exportOnly));
  identity.add("--trace", flag(!options.trace.empty()));
  identity.add("--log-data", flag(options.logData));
  return identity;
}

} // namespace fsdp::rt
