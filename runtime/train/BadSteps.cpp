#include "runtime/train/BadSteps.h"

#include "base/AtomicFile.h"
#include "base/PrintableText.h"
#include "base/Safetensors.h"
#include "runtime/train/Log.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>

namespace fsdp::rt {

using namespace base;

namespace {

using Json = nlohmann::ordered_json;

/// The end of messages about bad steps.
constexpr const char *kRemedy =
    "; lower the learning rate, clip the gradients, or look at the data";

/// JSON has no numbers that are not finite.
Json numberOf(double value) {
  if (std::isfinite(value))
    return value;
  return format("%g", shownNumber(value));
}

/// Paths and names need not be UTF-8.
std::string dump(const Json &json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string spelledInFiles(DType type) {
  std::string name = nameOf(type);
  std::transform(name.begin(), name.end(), name.begin(), [](char c) { return std::toupper(c); });
  return name;
}

} // namespace

std::string describeBad(const std::optional<FailedCheck> &failed, double loss, double gradNorm) {
  std::string text = "got ";
  if (failed)
    text += format("%.9g value%s not finite in '", failed->values,
                   failed->values == 1 ? " that is" : "s that are") +
            failed->name + "', with ";
  return text + format("loss %g and gradient norm %g", shownNumber(loss), shownNumber(gradNorm));
}

std::string BadStep::describe(const std::string &what) const {
  if (spike)
    return spike->describe(loss, gradNorm) +
           format(" in step %lld, ", static_cast<long long>(step)) + what;
  return describeBad(failed, loss, gradNorm) +
         format(" in step %lld, ", static_cast<long long>(step)) + what +
         (parameter.empty()
              ? "; every gradient is finite"
              : "; the first gradient that is not finite is that of '" + parameter + "'");
}

std::string BadStep::record(const std::vector<std::string> &data, const std::string &inputs) const {
  Json json;
  json["step"] = step;
  json["loss"] = numberOf(loss);
  json["grad_norm"] = numberOf(gradNorm);
  json["lr"] = numberOf(rate);
  json["parameter"] = parameter.empty() ? Json() : Json(parameter);
  if (failed) {
    json["check"] = failed->name;
    json["values"] = failed->values;
  }
  if (spike) {
    json["loss_limit"] = spike->limits.loss;
    json["grad_norm_limit"] = spike->limits.gradNorm;
  }
  json["data"] = data;
  json["position"] = position;
  json["samples"] = samples;
  json["inputs"] = inputs.empty() ? Json() : Json(inputs);
  return dump(json);
}

void endRun(const BadStep &bad, const std::string &what) {
  throw Error(bad.describe(what) + kRemedy).byAll().asRefusal();
}

Error tooManyBadSteps(const BadStep &bad, int count) {
  return Error(bad.describe(format("the last of %d in a row that are not finite and whose updates "
                                   "were skipped",
                                   count)) +
               kRemedy);
}

std::int64_t Rollbacks::add(const BadStep &bad, std::int64_t target) {
  toTarget = target == latestTarget ? toTarget + 1 : 1;
  latestTarget = target;
  if (toTarget > kMaxRollbacks)
    endRun(bad, bad.kind() + format(", after %lld rollbacks to step %lld",
                                    static_cast<long long>(kMaxRollbacks),
                                    static_cast<long long>(target)));
  return ++count;
}

std::string describeRollback(std::int64_t number, const BadStep &bad, std::int64_t target,
                             std::int64_t samples) {
  return printable(bad.describe(bad.kind())) +
         format(": rollback %lld to step %lld, past %lld samples", static_cast<long long>(number),
                static_cast<long long>(target), static_cast<long long>(samples));
}

void warnOfLastStep(const char *program, const BadStep &bad) {
  std::fprintf(stderr,
               "%s: warning: %s in the last step, a step that is not finite: its update was "
               "skipped, and the weights are those before it%s\n",
               program, printable(describeBad(bad.failed, bad.loss, bad.gradNorm)).c_str(),
               kRemedy);
}

bool writeBadInputs(const std::string &path, Table<Input> inputs, const Dataset &data,
                    const std::vector<std::int64_t> &samples) {
  const auto bytesOf = [](const Input &input) {
    return static_cast<std::size_t>(elements(input.sample)) * sizeInBytes(input.slice.dtype);
  };
  std::vector<TensorDeclaration> tensors;
  std::size_t widest = 0;
  for (const Input &input : inputs) {
    TensorDeclaration &tensor = tensors.emplace_back();
    tensor.name = input.name;
    tensor.shape = {static_cast<std::int64_t>(samples.size())};
    tensor.shape.insert(tensor.shape.end(), input.sample.begin(), input.sample.end());
    tensor.dtype = spelledInFiles(input.slice.dtype);
    widest = std::max(widest, bytesOf(input));
  }
  try {
    AtomicFile file{OutputPath(path)};
    const std::string header = safetensorsHeader(tensors);
    file.write(header.data(), header.size());
    std::vector<char> row(widest);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      for (std::int64_t sample : samples) {
        data.read(i, sample, row.data());
        file.write(row.data(), bytesOf(inputs[i]));
      }
    data.requireWhole();
    file.commit();
    return true;
  } catch (const Error &error) {
    std::fprintf(stderr, "note: the inputs of the bad step were not written: %s\n",
                 printableMessage(error.what()).c_str());
    return false;
  }
}

void writeBadStep(const std::string &path, const std::string &record) {
  try {
    AtomicFile file{OutputPath(path)};
    file.write(record.data(), record.size());
    file.commit();
    std::fprintf(stderr, "note: wrote the bad step to '%s'\n", printable(path).c_str());
  } catch (const Error &error) {
    std::fprintf(stderr, "note: the bad step was not written: %s\n",
                 printableMessage(error.what()).c_str());
  }
}

void writeBadStep(const BadStep &bad, const Options &options, Table<Input> inputs,
                  const Dataset *data) {
  std::string file = options.badInputsFile();
  if (!data || !writeBadInputs(file, inputs, *data, bad.samples))
    file.clear();
  writeBadStep(options.badStepFile(), bad.record(options.data, file));
}

std::string rollbackLine(std::int64_t number, const BadStep &bad, std::int64_t toStep,
                         std::int64_t skippedFrom, std::int64_t skippedTo) {
  Json line;
  line["rollback"] = {{"number", number},
                      {"from_step", bad.step},
                      {"to_step", toStep},
                      {"skipped", {skippedFrom, skippedTo}},
                      {"cause", bad.describe(bad.kind())}};
  return dump(line);
}

} // namespace fsdp::rt
