//===- ModelConfig.h - the configuration file of a model --------*- C++ -*-===//
//
//   ModelConfig config("config.json");
//   config.add("rope_theta",
//   theta).option("--rope-theta").implied(10000.0).alias("rope_parameters.rope_theta");
//   config.note("torch_dtype", "float32");
//   model.config(config);
// One description has two uses: checkpoints contain a file of its entries, and a program refuses
// weights whose file of this name differs.
//
//===----------------------------------------------------------------------===//

#ifndef DSL_MODELCONFIG_H
#define DSL_MODELCONFIG_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fsdp::dsl {

/// A JSON value: null, a whole number, a number, a boolean, a text or a list of texts.
class ConfigValue {
public:
  ConfigValue(std::nullptr_t) : json("null") {}
  ConfigValue(int value) : json(std::to_string(value)) {}
  ConfigValue(int64_t value) : json(std::to_string(value)) {}
  ConfigValue(bool value) : json(value ? "true" : "false") {}
  /// Finite; has a '.' or an exponent.
  ConfigValue(double value);
  ConfigValue(const char *text) : ConfigValue(std::string(text)) {}
  ConfigValue(const std::string &text);
  ConfigValue(const std::vector<std::string> &list);

  const std::string &text() const { return json; }

private:
  std::string json;
};

/// One entry of the file.
class ConfigEntry {
public:
  ConfigEntry(std::string name, ConfigValue value)
      : names{std::move(name)}, value(std::move(value)) {}

  /// The option of the model's program that sets the value, for messages; of a boolean the one that
  /// makes it true.
  ConfigEntry &option(std::string name) {
    setBy = std::move(name);
    return *this;
  }
  /// The value of a file without the entry, or with null; without it, a file must have the entry.
  ConfigEntry &implied(ConfigValue value) {
    otherwise = std::move(value);
    return *this;
  }
  /// An alternative place of the entry in files; '.' leads into an object.
  ConfigEntry &alias(std::string name) {
    names.push_back(std::move(name));
    return *this;
  }
  /// An equivalent value.
  ConfigEntry &same(ConfigValue value) {
    equal.push_back(std::move(value));
    return *this;
  }

private:
  friend class ModelConfig;
  friend class Model;
  std::vector<std::string> names;
  ConfigValue value;
  std::optional<ConfigValue> otherwise;
  std::vector<ConfigValue> equal;
  std::string setBy;
  bool written = true, compared = true;
};

/// The file of a model.
class ModelConfig {
public:
  explicit ModelConfig(std::string file) : file(std::move(file)) {}

  /// An entry that affects what the model computes: written, and compared with the file of weights.
  /// References are valid until the next entry.
  ConfigEntry &add(const std::string &name, ConfigValue value) {
    return entries.emplace_back(name, std::move(value));
  }
  /// The same, but not written: features of files that this model does not have.
  ConfigEntry &require(const std::string &name, ConfigValue value) {
    ConfigEntry &entry = add(name, value).implied(value);
    entry.written = false;
    return entry;
  }
  /// Written only.
  void note(const std::string &name, ConfigValue value) {
    add(name, std::move(value)).compared = false;
  }

  /// The text of the file.
  std::string text() const;

private:
  friend class Model;
  std::string file;
  std::vector<ConfigEntry> entries;
};

} // namespace fsdp::dsl

#endif // DSL_MODELCONFIG_H
