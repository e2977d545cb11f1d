#include "runtime/train/ModelChange.h"

#include "base/Error.h"
#include "base/FileSystem.h"
#include "base/JsonEntries.h"
#include "base/JsonObject.h"
#include "base/MappedFile.h"

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <sys/stat.h>

namespace fsdp::rt {

using namespace base;

namespace {

using Json = nlohmann::json;

std::string versionOf(const std::string &digest) { return digest.substr(0, digest.find(':')); }

/// The parts of `text` between the characters `mark`.
std::vector<std::string> split(const std::string &text, char mark) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(mark, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// The option that reads entries without an option from a file such as the one in `folder`.
constexpr std::string_view kFromFolder = "--from";

/// "compile the model with --rope-theta=500000.0"
std::string adviceFor(const ConfigEntry &entry, const Json &got, const std::string &folder) {
  const std::string option = entry.option;
  if (option.empty())
    return "no option of the model changes it";
  if (option == kFromFolder)
    return "compile the model with " + option + "=" + folder;
  if (got.is_boolean())
    return (got.get<bool>() ? "compile the model with " : "compile the model without ") + option;
  return "compile the model with " + option + "=" + shownEntry(got);
}

} // namespace

nlohmann::json readConfig(const std::string &path) {
  const MappedFile bytes(path);
  Json config;
  if (const std::string fault = parseJsonObject({bytes.data(), bytes.size()}, config);
      !fault.empty())
    throw Error("'" + path + "' " + fault +
                ", expected a JSON object that describes the model of the weights "
                "beside it: fix it, or move the "
                "weights to a separate folder");
  return config;
}

ModelChange modelChange(const Program &program, const CheckpointManifest &manifest,
                        const std::string &folder) {
  const std::string &got = manifest.modelDigest, expected = program.modelDigest;
  if (got == expected)
    return {};
  const std::string unknown = ": whether they are of one model is not checked";
  if (got.empty())
    return {"'" + folder + "' has no digest of its model, and this program has '" + expected + "'" +
                unknown,
            false};
  if (expected.empty())
    return {"'" + folder + "' has the digest '" + got +
                "' of its model, and this program has none" + unknown,
            false};
  if (versionOf(got) != versionOf(expected))
    return {"'" + folder + "' has the digest '" + got + "' of its model, and this program has '" +
                expected + "', of another version" + unknown,
            false};
  return {"'" + folder + "' is of another model: got the digest '" + got + "', expected '" +
          expected +
          "' as this program has: its parameters have the same names and shapes, but what the "
          "model computes with them differs "
          "(heads, constants, activations)"};
}

std::string configChange(const Program &program, const std::string &path) {
  if (!*program.config.file)
    return "";
  const std::string file = folderOf(path) + "/" + program.config.file;
  struct stat status;
  if (stat(file.c_str(), &status) != 0 && errno == ENOENT)
    return "";
  const Json config = readConfig(file);
  std::string differences;
  const auto differs = [&](const std::string &what) {
    differences += (differences.empty() ? "" : "; ") + what;
  };
  for (const ConfigEntry &entry : program.config.entries) {
    const Json expected = Json::parse(entry.value), same = Json::parse(entry.same);
    const auto agrees = [&](const Json &got) {
      return isSameEntry(got, expected) ||
             std::any_of(same.begin(), same.end(),
                         [&](const Json &other) { return isSameEntry(got, other); });
    };
    const auto compare = [&](const std::string &name, const Json &got, const char *why) {
      if (!agrees(got))
        differs("got '" + name + "' " + shownEntry(got) + why + ", expected " +
                shownEntry(expected) + " (" + adviceFor(entry, got, folderOf(path)) + ")");
    };
    bool isThere = false;
    const std::vector<std::string> names = split(entry.names, '|');
    for (const std::string &name : names)
      if (const Json *got = findEntry(config, name)) {
        isThere = true;
        compare(name, *got, "");
      }
    if (!isThere && *entry.implied)
      compare(names.front(), Json::parse(entry.implied), ", as it means without the entry");
    else if (!isThere)
      differs("got no '" + names.front() + "', expected " + shownEntry(expected));
  }
  return differences.empty()
             ? ""
             : "'" + file + "' is of another model than this program: " + differences;
}

} // namespace fsdp::rt
