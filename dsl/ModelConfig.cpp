//===- ModelConfig.cpp ----------------------------------------------------===//

#include "dsl/ModelConfig.h"

#include "base/JsonEntries.h"
#include "base/JsonObject.h"
#include "base/MappedFile.h"
#include "base/PrintableText.h"
#include "dialect/nn/TensorSize.h"
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <unistd.h>

namespace fsdp::dsl {

using Json = nlohmann::json;

bool isTensorSize(const std::vector<int64_t> &sizes) {
  const std::optional<int64_t> elements = mlir::nn::countElements(sizes);
  return elements && *elements <= mlir::nn::kMaxTensorBytes / int64_t(sizeof(float));
}

static std::string spell(const Json &value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

ConfigValue::ConfigValue(double value) {
  char digits[32];
  json.assign(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  if (json.find_first_of(".e") == json.npos)
    json += ".0";
}

ConfigValue::ConfigValue(const std::string &text) : json(spell(text)) {}

ConfigValue::ConfigValue(const std::vector<std::string> &list) : json(spell(list)) {}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

std::string ModelConfig::text() const {
  std::string text, object; // the object that is being written, or none
  for (const ConfigEntry &entry : entries) {
    if (!entry.written)
      continue;
    std::string name = entry.names.front();
    const size_t dot = name.find('.');
    const std::string within = dot == name.npos ? "" : name.substr(0, dot);
    if (within != object && !object.empty())
      text += "\n  }";
    text += text.empty() ? "{\n" : ",\n";
    if (within != object && !within.empty())
      text += "  " + ConfigValue(within).text() + ": {\n";
    object = within;
    if (dot != name.npos)
      name = name.substr(dot + 1);
    text += (object.empty() ? "  " : "    ") + ConfigValue(name).text() + ": " + entry.value.text();
  }
  if (!object.empty())
    text += "\n  }";
  return text.empty() ? "{}\n" : text + "\n}\n";
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

struct ModelConfig::Source {
  std::string path;
  Json json;
  std::function<bool(const std::string &)> isGiven;
  std::vector<std::string> problems, remarks;
};

void ModelConfig::read(const std::string &folder,
                       std::function<bool(const std::string &)> isGiven) {
  auto reading = std::make_shared<Source>();
  reading->path = folder + "/" + file;
  if (::access(reading->path.c_str(), R_OK) != 0)
    throw std::runtime_error("cannot read " + base::inQuotes(reading->path) + ": " +
                             std::strerror(errno) +
                             "; expected the local folder of a model, which has that file");
  const base::MappedFile bytes(reading->path);
  const std::string fault =
      base::parseJsonObject(std::string_view(bytes.data(), bytes.size()), reading->json);
  if (!fault.empty())
    throw std::runtime_error(base::inQuotes(reading->path) + " " + fault +
                             ", expected a JSON object that describes a model");
  reading->isGiven = std::move(isGiven);
  source = std::move(reading);
}

/// "an, b or c" of texts in quotes.
static std::string listed(const std::vector<std::string> &choices) {
  std::string text;
  for (size_t i = 0; i < choices.size(); ++i)
    text += (i == 0                    ? ""
             : i + 1 == choices.size() ? " or "
                                       : ", ") +
            ConfigValue(choices[i]).text();
  return text;
}

void ModelConfig::refuse(const std::string &name, const std::string &expected) {
  if (!source)
    return;
  const Json *got = base::findEntry(source->json, name);
  source->problems.push_back("got " +
                             (got              ? base::inQuotes(name) + " " + base::shownEntry(*got)
                              : isNullAt(name) ? base::inQuotes(name) + " null"
                                               : "no " + base::inQuotes(name)) +
                             ", expected " + expected);
}

std::string ModelConfig::valueAt(const std::string &name) const {
  const Json *got = source ? base::findEntry(source->json, name) : nullptr;
  return got ? got->dump() : "";
}

bool ModelConfig::isNullAt(const std::string &name) const {
  return source && base::isNullEntry(source->json, name);
}

void ModelConfig::remark(const std::string &name, const std::string &text) {
  if (const Json *got = source ? base::findEntry(source->json, name) : nullptr)
    source->remarks.push_back(base::inQuotes(name) + " " + base::shownEntry(*got) + " of " +
                              base::inQuotes(source->path) + " " + text);
}

/// `convert(json)` is the value as an optional T, empty if `json` has another type.
template <class T, class Convert>
ConfigEntry &ModelConfig::takeAs(const ConfigEntry &entry, T &value, const std::string &expected,
                                 Convert convert) {
  auto textOf = [](const T &value) {
    if constexpr (std::is_same_v<T, std::optional<int64_t>> ||
                  std::is_same_v<T, std::optional<double>>)
      return value ? ConfigValue(*value) : ConfigValue(nullptr);
    else
      return ConfigValue(value);
  };
  if (source) {
    const Json *found = nullptr;
    std::string name = entry.names.front();
    for (const std::string &place : entry.names)
      if (const Json *here = base::findEntry(source->json, place)) {
        if (found && !base::isSameEntry(*here, *found))
          refuse(place, "that of " + base::inQuotes(name) + ", " + base::shownEntry(*found));
        if (!found)
          found = here, name = place;
      }
    // null is a distinct value for optional entries.
    const Json null;
    const bool isNull =
        !found && source->json.contains(name) && std::is_constructible_v<T, std::nullopt_t>;
    const Json implied = entry.otherwise ? Json::parse(entry.otherwise->text()) : null;
    const Json &taken = found ? *found : isNull ? null : implied;
    std::optional<T> converted;
    const bool isFalse = std::is_same_v<T, bool> && !found &&
                         std::any_of(entry.names.begin(), entry.names.end(),
                                     [&](const std::string &place) { return isNullAt(place); });
    if (found || isNull || (entry.otherwise && !(isFalse && implied == true)))
      converted = convert(taken);
    if (!converted) {
      refuse(name, expected);
    } else if (!entry.setBy.empty() && source->isGiven(entry.setBy) &&
               textOf(value).text() != textOf(*converted).text()) {
      const std::string given =
          std::is_same_v<T, bool> ? "" : "=" + base::shownEntry(Json::parse(textOf(value).text()));
      source->problems.push_back("got " + entry.setBy + given + ", but " + base::inQuotes(name) +
                                 " " + (found ? "is " : "means ") + base::shownEntry(taken) +
                                 " (leave out " + entry.setBy + ")");
    } else {
      value = *converted;
    }
  }
  ConfigEntry &added = entries.emplace_back(entry);
  added.value = textOf(value);
  if (added.setBy.empty()) // the driver's option that reads a file (Driver::from)
    added.setBy = "--from";
  return added;
}

/// The whole number of `json`, from `least` to `most`.
static std::optional<int64_t> wholeNumber(const Json &json, int64_t least, int64_t most) {
  if (!json.is_number_integer() || json.get<double>() >= 0x1p63 || json.get<int64_t>() < least ||
      json.get<int64_t>() > most)
    return std::nullopt;
  return json.get<int64_t>();
}

static std::string describeRange(int64_t least, int64_t most) {
  return "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
}

ConfigEntry &ModelConfig::take(const ConfigEntry &entry, int64_t &value, int64_t least,
                               int64_t most) {
  return takeAs(entry, value, describeRange(least, most),
                [&](const Json &json) { return wholeNumber(json, least, most); });
}

ConfigEntry &ModelConfig::take(const ConfigEntry &entry, std::optional<int64_t> &value) {
  ConfigEntry &added = takeAs(entry, value, describeRange(0, kMaxSize) + ", or null",
                              [](const Json &json) -> std::optional<std::optional<int64_t>> {
                                if (json.is_null())
                                  return std::optional<int64_t>();
                                if (std::optional<int64_t> number = wholeNumber(json, 0, kMaxSize))
                                  return number;
                                return std::nullopt;
                              });
  // Programs that read weights do not distinguish null from a missing entry.
  added.otherwise = added.value;
  return added;
}

static std::optional<double> positive(const Json &json) {
  if (!json.is_number() || !(json.get<double>() > 0) || !std::isfinite(json.get<double>()))
    return std::nullopt;
  return json.get<double>();
}

ConfigEntry &ModelConfig::take(const ConfigEntry &entry, double &value) {
  return takeAs(entry, value, "a number above 0", positive);
}

ConfigEntry &ModelConfig::take(const ConfigEntry &entry, std::optional<double> &value) {
  return takeAs(entry, value, "a number above 0, or null",
                [](const Json &json) -> std::optional<std::optional<double>> {
                  if (json.is_null())
                    return std::optional<double>();
                  if (std::optional<double> number = positive(json))
                    return number;
                  return std::nullopt;
                });
}

ConfigEntry &ModelConfig::take(const ConfigEntry &entry, bool &value) {
  return takeAs(entry, value, "true or false", [](const Json &json) -> std::optional<bool> {
    if (!json.is_boolean())
      return std::nullopt;
    return json.get<bool>();
  });
}

static std::optional<std::string> choiceOf(const Json &json,
                                           const std::vector<std::string> &choices) {
  if (!json.is_string() ||
      std::find(choices.begin(), choices.end(), json.get<std::string>()) == choices.end())
    return std::nullopt;
  return json.get<std::string>();
}

ConfigEntry &ModelConfig::take(const ConfigEntry &entry, std::string &value,
                               const std::vector<std::string> &choices) {
  return takeAs(entry, value, listed(choices),
                [&](const Json &json) { return choiceOf(json, choices); });
}

ConfigEntry &ModelConfig::take(const ConfigEntry &entry, std::vector<std::string> &value,
                               const std::vector<std::string> &choices) {
  return takeAs(entry, value, "a list of " + listed(choices),
                [&](const Json &json) -> std::optional<std::vector<std::string>> {
                  std::vector<std::string> list;
                  if (json.is_null())
                    return list;
                  if (!json.is_array())
                    return std::nullopt;
                  for (const Json &item : json) {
                    std::optional<std::string> choice = choiceOf(item, choices);
                    if (!choice)
                      return std::nullopt;
                    list.push_back(*choice);
                  }
                  return list;
                });
}

void ModelConfig::carry(const std::string &name, std::optional<ConfigValue> &value,
                        ConfigValue otherwise) {
  if (source) {
    value = otherwise;
    if (source->json.contains(name))
      value->json = source->json[name].dump();
  }
  note(name, value.value_or(otherwise));
}

void ModelConfig::leaveToTraining(const std::string &name) {
  const Json *got = source ? base::findEntry(source->json, name) : nullptr;
  if (got && !base::isSameEntry(*got, 0))
    remark(name, "is a setting of training, which is not taken");
}

ConfigEntry &ModelConfig::demand(const ConfigEntry &entry) {
  ConfigEntry &added = entries.emplace_back(entry);
  added.otherwise = added.otherwise ? added.otherwise : added.value;
  added.written = false;
  if (!source)
    return added;
  std::vector<ConfigValue> fit = {added.value};
  fit.insert(fit.end(), added.equal.begin(), added.equal.end());
  for (const std::string &name : added.names) {
    const Json *got = base::findEntry(source->json, name);
    if (got && std::none_of(fit.begin(), fit.end(), [&](const ConfigValue &value) {
          return base::isSameEntry(*got, Json::parse(value.text()));
        }))
      refuse(name, added.value.text());
    else if (isNullAt(name) && added.value.text() == "true") // null is false in transformers
      refuse(name, added.value.text());
  }
  return added;
}

bool ModelConfig::sets(const std::string &option) const {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const ConfigEntry &entry) { return entry.setBy == option; });
}

std::vector<std::string> ModelConfig::finish() {
  if (!source)
    return {};
  const std::shared_ptr<Source> read = std::move(source);
  source = nullptr;
  std::string message;
  for (const std::string &problem : read->problems)
    message += (message.empty() ? "" : "; ") + problem;
  if (!message.empty())
    throw std::runtime_error("cannot compile the model of " + base::inQuotes(read->path) + ": " +
                             message);
  return read->remarks;
}

} // namespace fsdp::dsl
