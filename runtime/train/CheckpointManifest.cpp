#include "runtime/train/CheckpointManifest.h"

#include "base/Error.h"
#include "base/JsonObject.h"
#include "base/MappedFile.h"
#include "runtime/job/RunIdentity.h"
#include "runtime/train/Log.h"
#include "runtime/train/Version.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <set>
#include <string_view>

namespace fsdp::rt {

using namespace base;

namespace {

using Json = nlohmann::ordered_json;

constexpr const char *kFormat = "fsdpc checkpoint";
constexpr const char *kChecksum = "checksum";

/// The fields of an object; errors name the file and the field.
class Fields {
public:
  /// `what` describes it, where it may be something else than an object: "a file".
  Fields(const Json &object, const std::string &path, const char *what = nullptr)
      : object(object), path(path) {
    if (what && !object.is_object())
      refuse(std::string("got ") + what + " that is not an object");
  }

  [[noreturn]] void refuse(const std::string &why) const {
    throw Error("'" + path + "' is not the manifest of a checkpoint: " + why);
  }
  const Json &at(const char *name) const {
    const auto found = object.find(name);
    if (found == object.end())
      refuse(std::string("it has no '") + name + "'");
    return *found;
  }
  [[noreturn]] void refuse(const char *name, const std::string &expected) const {
    refuse(std::string("got '") + name + "' " + at(name).dump() + ", expected " + expected);
  }
  std::string text(const char *name) const {
    const Json &value = at(name);
    if (!value.is_string())
      refuse(name, "a text");
    return value.get<std::string>();
  }
  /// A list, which may be missing unless it `isNeeded`.
  const Json &list(const char *name, bool isNeeded = false) const {
    static const Json none = Json::array();
    if (!isNeeded && !object.contains(name))
      return none;
    if (!at(name).is_array())
      refuse(std::string("got '") + name + "' that is not a list");
    return at(name);
  }
  /// A number from 0 to `most`.
  std::uint64_t natural(const char *name, std::uint64_t most) const {
    const Json &value = at(name);
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most)
      refuse(name, "a whole number from 0 to " + std::to_string(most));
    return value.get<std::uint64_t>();
  }
  void read(const char *name, std::string &value) const { value = text(name); }
  void read(const char *name, bool &value) const {
    if (!at(name).is_boolean())
      refuse(name, "true or false");
    value = at(name).get<bool>();
  }
  void read(const char *name, float &value) const {
    if (!at(name).is_number() || !std::isfinite(at(name).get<float>()))
      refuse(name, "a finite number");
    value = at(name).get<float>();
  }
  template <class Int> void read(const char *name, Int &value) const {
    value = static_cast<Int>(natural(name, std::numeric_limits<Int>::max()));
  }
  /// Sixteen hexadecimal digits.
  std::uint64_t digest(const char *name) const {
    const std::string digits = text(name);
    if (digits.size() != 16 || digits.find_first_not_of("0123456789abcdef") != digits.npos)
      refuse(std::string("got '") + name + "' \"" + digits + "\", expected 16 hexadecimal digits");
    return std::stoull(digits, nullptr, 16);
  }

private:
  const Json &object;
  const std::string &path;
};

std::string textOf(const Json &manifest) {
  return manifest.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string digestOf(const Json &fields) {
  return digestText(contentDigest(fields.dump(-1, ' ', false, Json::error_handler_t::replace)));
}

Json scheduleJson(const CheckpointManifest &manifest) {
  const ScheduleOptions &schedule = *manifest.schedule;
  return {{"kind", kScheduleNames[schedule.kind]},
          {"warmup", schedule.warmup},
          {"min_lr", schedule.minimum},
          {"decay_share", schedule.decayShare},
          {"steps", manifest.scheduleSteps}};
}

void readSchedule(const Json &json, const std::string &path, CheckpointManifest &manifest) {
  const Fields fields(json, path, "'schedule'");
  ScheduleOptions &schedule = manifest.schedule.emplace();
  const std::string kind = fields.text("kind");
  const std::optional<Schedule::Kind> known = scheduleNamed(kind);
  if (!known)
    fields.refuse("got the schedule '" + kind + "', which this version does not support");
  schedule.kind = *known;
  fields.read("warmup", schedule.warmup);
  fields.read("min_lr", schedule.minimum);
  fields.read("decay_share", schedule.decayShare);
  fields.read("steps", manifest.scheduleSteps);
  if (schedule.minimum < 0)
    fields.refuse("min_lr", "at least 0");
  if (!(schedule.decayShare >= 0 && schedule.decayShare < 1))
    fields.refuse("decay_share", "a number in [0, 1)");
}

Json optimizerJson(const CheckpointManifest &manifest) {
  Json json = {{"rule", manifest.updateRule}, {"constants", Json::object()}};
  for (const CheckpointManifest::Constant &constant : manifest.constants)
    json["constants"][constant.name] = constant.value;
  return json;
}

void readOptimizer(const Json &json, const std::string &path, CheckpointManifest &manifest) {
  const Fields fields(json, path);
  if (!json.is_object() || !json.contains("constants") || !json["constants"].is_object())
    fields.refuse("got 'optimizer' that is not an object with constants");
  fields.read("rule", manifest.updateRule);
  const Fields constants(json["constants"], path);
  for (const auto &[name, number] : json["constants"].items()) {
    CheckpointManifest::Constant &constant = manifest.constants.emplace_back();
    constant.name = name;
    constants.read(name.c_str(), constant.value);
    if (constant.value < 0)
      constants.refuse(name.c_str(), "at least 0");
  }
}

/// A list of texts that may be missing, in older manifests.
std::optional<std::vector<std::string>> readTexts(const Json &json, const char *name,
                                                  const Fields &fields) {
  if (!json.contains(name))
    return std::nullopt;
  std::vector<std::string> texts;
  for (const Json &text : json[name]) {
    if (!json[name].is_array() || !text.is_string())
      break;
    texts.push_back(text.get<std::string>());
  }
  if (texts.size() != json[name].size() || !json[name].is_array())
    fields.refuse(name, "a list of texts");
  return texts;
}

void readGroups(const Json &json, const Fields &fields, GroupOptions &groups) {
  groups.noDecay = readTexts(json, "no_decay", fields);
  const auto scales = readTexts(json, "lr_scale", fields);
  if (!scales)
    return;
  groups.rateScales.emplace();
  for (const std::string &text : *scales)
    if (const std::string fault = RateScale::parse(text, groups.rateScales->emplace_back());
        !fault.empty())
      fields.refuse("got 'lr_scale': " + fault);
}

/// The numbers of each field are on a line, as there are hundreds.
std::string historyText(const std::vector<float> &values) {
  std::string text;
  for (float value : values)
    text += (text.empty() ? "" : " ") + shortest(value);
  return text;
}

std::vector<float> readHistory(const Fields &fields, const char *name) {
  const std::string text = fields.text(name);
  std::vector<float> values;
  const char *at = text.data(), *const end = at + text.size();
  for (bool more = !text.empty(); more;) {
    const auto [next, fault] = std::from_chars(at, end, values.emplace_back());
    more = next != end && *next == ' ';
    if (fault != std::errc() || (next != end && !more) || !std::isfinite(values.back()))
      fields.refuse(std::string("got '") + name + "' \"" + text + "\", expected finite numbers");
    at = next + 1;
  }
  return values;
}

void readHistory(const Json &json, const std::string &path, CheckpointManifest &manifest) {
  const Fields fields(json, path, "'history'");
  manifest.losses = readHistory(fields, "loss");
  manifest.gradNorms = readHistory(fields, "grad_norm");
  if (manifest.losses.size() != manifest.gradNorms.size())
    fields.refuse("got " + std::to_string(manifest.losses.size()) + " losses and " +
                  std::to_string(manifest.gradNorms.size()) +
                  " norms in 'history', expected as many");
}

void readProducts(const Json &json, const std::string &path, ProductChoices &products) {
  const Fields fields(json, path);
  if (!json.is_object() || !json.contains("algorithms") || !json["algorithms"].is_object())
    fields.refuse("got 'products' that is not an object with algorithms");
  fields.read("machine", products.machine);
  const Fields algorithms(json["algorithms"], path);
  for (const auto &[product, number] : json["algorithms"].items())
    algorithms.read(product.c_str(), products.algorithms[product]);
}

CheckpointManifest::File readFile(const Json &json, const std::string &path) {
  const Fields fields(json, path, "a file");
  CheckpointManifest::File file;
  file.name = fields.text("name");
  if (file.name.empty() || file.name.find('/') != file.name.npos || file.name[0] == '.')
    fields.refuse("got a file '" + file.name + "', expected one beside it");
  file.bytes = fields.natural("bytes", INT64_MAX);
  file.header = fields.digest("header");
  const Json &tensors = fields.at("tensors");
  if (!tensors.is_object())
    fields.refuse("got 'tensors' of '" + file.name + "' that is not an object");
  const Fields checksums(tensors, path);
  for (const auto &[name, value] : tensors.items())
    file.tensors.push_back({name, checksums.digest(name.c_str())});
  return file;
}

CheckpointManifest::Extra readExtra(const Json &json, const std::string &path) {
  const Fields fields(json, path, "an extra file");
  return {fields.text("name"), fields.natural("bytes", INT64_MAX), fields.digest("digest")};
}

DataSource readSource(const Json &json, const std::string &path) {
  const Fields fields(json, path, "a source of data");
  DataSource source;
  fields.read("name", source.name);
  fields.read("samples", source.samples);
  const Json &weight = fields.at("weight");
  if (!weight.is_number() || !(weight.get<double>() > 0 && weight.get<double>() <= 1))
    fields.refuse("weight", "a number above 0, at most 1");
  source.weight = weight.get<double>();
  return source;
}

} // namespace

std::optional<Schedule::Kind> scheduleNamed(const std::string &name) {
  for (std::size_t i = 0; i < std::size(kScheduleNames); ++i)
    if (name == kScheduleNames[i])
      return static_cast<Schedule::Kind>(i);
  return std::nullopt;
}

std::vector<CheckpointManifest::Extra> CheckpointManifest::extrasOf(const BesideFiles &files) {
  std::vector<Extra> extras;
  for (const BesideFile &file : files)
    extras.push_back({file.name, file.text.size(), contentDigest(file.text)});
  return extras;
}

std::vector<std::string> alteredExtras(const std::string &folder,
                                       const CheckpointManifest &manifest) {
  std::vector<std::string> altered;
  for (const CheckpointManifest::Extra &extra : manifest.extraFiles) {
    const std::string path = folder + "/" + extra.name;
    try {
      const MappedFile file(path);
      const std::uint64_t digest = contentDigest({file.data(), file.size()});
      if (file.size() != extra.bytes || digest != extra.digest)
        altered.push_back("'" + path + "' has been altered since it was written: got " +
                          std::to_string(file.size()) + " bytes, digest " + digestText(digest) +
                          ", expected " + std::to_string(extra.bytes) + " bytes, digest " +
                          digestText(extra.digest));
    } catch (const Error &error) {
      altered.push_back(error.what());
    }
  }
  return altered;
}

std::vector<CheckpointManifest::File> CheckpointManifest::filesOf(const CheckpointLayout &layout) {
  std::vector<File> files;
  for (const CheckpointFile &file : layout.files()) {
    files.push_back({file.name, file.bytes, contentDigest(file.header), {}});
    for (const CheckpointTensor &tensor : file.tensors)
      files.back().tensors.push_back({tensor.name, 0});
  }
  return files;
}

std::string CheckpointManifest::text() const {
  Json json;
  json["format"] = kFormat;
  json["version"] = kVersion;
  json["written_by"] = std::string("fsdpc ") + runtimeVersion();
  visitFields(*this, [&](const char *name, const auto &value) { json[name] = value; });
  if (modelDigest.empty())
    json.erase("model_digest");
  if (schedule)
    json["schedule"] = scheduleJson(*this);
  if (!updateRule.empty())
    json["optimizer"] = optimizerJson(*this);
  if (groups.rateScales)
    json["lr_scale"] = groups.over({}).rateScaleTexts();
  if (groups.noDecay)
    json["no_decay"] = *groups.noDecay;
  if (!losses.empty())
    json["history"] = {{"loss", historyText(losses)}, {"grad_norm", historyText(gradNorms)}};
  if (!products.machine.empty())
    json["products"] = {{"machine", products.machine}, {"algorithms", products.algorithms}};
  for (const DataSource &source : sources)
    json["sources"].push_back(
        {{"name", source.name}, {"weight", source.weight}, {"samples", source.samples}});
  json["files"] = Json::array();
  for (const File &file : files) {
    Json tensors = Json::object();
    for (const Tensor &tensor : file.tensors)
      tensors[tensor.name] = digestText(tensor.checksum);
    json["files"].push_back({{"name", file.name},
                             {"bytes", file.bytes},
                             {"header", digestText(file.header)},
                             {"tensors", tensors}});
  }
  json["extra_files"] = Json::array();
  for (const Extra &extra : extraFiles)
    json["extra_files"].push_back(
        {{"name", extra.name}, {"bytes", extra.bytes}, {"digest", digestText(extra.digest)}});
  if (!runs.empty())
    json["runs"] = Json::array();
  for (const std::string &run : runs)
    json["runs"].push_back(Json::parse(run));
  json[kChecksum] = digestOf(json);
  return textOf(json);
}

CheckpointManifest CheckpointManifest::parse(const char *begin, const char *end,
                                             const std::string &path) {
  const auto refuse = [&](const std::string &why) { Fields(Json(), path).refuse(why); };
  const std::string_view text(begin, static_cast<std::size_t>(end - begin));
  Json json;
  if (const std::string fault = parseJsonObject(text, json); !fault.empty())
    refuse("it " + fault);
  const Fields fields(json, path);
  if (fields.text("format") != kFormat)
    refuse("got format '" + fields.text("format") + "', expected '" + kFormat + "'");
  if (const std::uint64_t version = fields.natural("version", UINT64_MAX); version != kVersion)
    throw Error("'" + path + "': got version " + std::to_string(version) + ", expected " +
                std::to_string(kVersion) + ": use the fsdpc that wrote it");
  const std::string expected = fields.text(kChecksum), spelled = textOf(json);
  json.erase(kChecksum);
  if (digestOf(json) != expected)
    throw Error("'" + path + "' has been altered since it was written: got checksum " +
                digestOf(json) + ", expected " + expected + "; use an earlier checkpoint");
  // White space is not in any field.
  if (spelled != text)
    throw Error("'" + path + "' has been altered since it was written: got " +
                std::to_string(text.size()) + " bytes, expected the " +
                std::to_string(spelled.size()) +
                " that its fields are written as; use an earlier checkpoint");
  CheckpointManifest manifest;
  if (!json.contains("model_digest")) // missing in older manifests
    json["model_digest"] = "";
  visitFields(manifest, [&](const char *name, auto &value) { fields.read(name, value); });
  if (json.contains("schedule")) // missing in older manifests
    readSchedule(json["schedule"], path, manifest);
  if (json.contains("optimizer")) // missing in older manifests
    readOptimizer(json["optimizer"], path, manifest);
  readGroups(json, fields, manifest.groups);
  if (json.contains("history")) // missing in older manifests, and at step 0
    readHistory(json["history"], path, manifest);
  if (json.contains("products")) // of runs that measured them
    readProducts(json["products"], path, manifest.products);
  for (const Json &source : fields.list("sources"))
    manifest.sources.push_back(readSource(source, path));
  std::set<std::string> names;
  for (const Json &file : fields.list("files", /*isNeeded=*/true)) {
    manifest.files.push_back(readFile(file, path));
    if (!names.insert(manifest.files.back().name).second)
      refuse("it names '" + manifest.files.back().name + "' twice");
  }
  for (const Json &run : fields.list("runs"))
    manifest.runs.push_back(run.dump());
  for (const Json &extra : fields.list("extra_files")) // missing in older manifests
    manifest.extraFiles.push_back(readExtra(extra, path));
  return manifest;
}

CheckpointManifest CheckpointManifest::read(const std::string &folder) {
  const MappedFile file(folder + "/" + kName);
  return parse(file.data(), file.data() + file.size(), file.path());
}

std::unique_ptr<SafetensorsFile> openCheckpointFile(const std::string &folder,
                                                    const CheckpointManifest::File &file) {
  const std::string path = folder + "/" + file.name;
  {
    const MappedFile bytes(path);
    if (bytes.size() != file.bytes)
      throw Error("'" + path + "': got " + std::to_string(bytes.size()) + " bytes, expected " +
                  std::to_string(file.bytes) +
                  " as in the manifest beside it; use an earlier checkpoint");
  }
  auto tensors = std::make_unique<SafetensorsFile>(path);
  const std::uint64_t header = contentDigest(tensors->header());
  if (header != file.header)
    throw Error("'" + path + "': its header has been altered since it was written: got digest " +
                digestText(header) + ", expected " + digestText(file.header) +
                "; use an earlier checkpoint");
  for (const CheckpointManifest::Tensor &tensor : file.tensors)
    if (const FileTensor *found = tensors->find(tensor.name); !found || found->dtype != "F32")
      throw Error("'" + path + "': got no F32 tensor '" + tensor.name +
                  "', expected one as in the manifest beside it; use an earlier checkpoint");
  return tensors;
}

void requireChecksum(const std::string &path, const std::string &tensor, std::uint64_t got,
                     std::uint64_t expected) {
  if (got != expected)
    throw Error("'" + path + "': the bytes of tensor '" + tensor +
                "' have been altered since they were written: got checksum " + digestText(got) +
                ", expected " + digestText(expected) + "; use an earlier checkpoint");
}

} // namespace fsdp::rt
