//===- ModelConfig.h - the configuration file of a model --------*- C++ -*-===//
//
//   ModelConfig config("config.json");
//   config.add("rope_theta",
//   theta).option("--rope-theta").implied(10000.0).alias("rope_parameters.rope_theta");
//   config.note("torch_dtype", "float32");
//   model.config(config);
// One description has two uses: checkpoints contain a file of its entries, and a program refuses
// weights whose file of this name differs. With `take` it has a third: a model reads its sizes and
// constants from a file,
//   config.read(folder, isGiven);
//   config.take(ConfigEntry("rope_theta").option("--rope-theta").implied(10000.0), theta);
//   config.finish();
//
//===----------------------------------------------------------------------===//

#ifndef DSL_MODELCONFIG_H
#define DSL_MODELCONFIG_H

#include "frontend/ModelValue.h"
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fsdp::dsl {

/// The largest size that options of models and their files have: the product of two is an int64_t.
constexpr int64_t kMaxSize = INT32_MAX;
/// The largest number of equal blocks. Each is compiled separately, in some milliseconds.
constexpr int64_t kMaxBlocks = 10000;
/// Whether a model may have a tensor of these sizes in f32 (nn::kMaxTensorBytes).
bool isTensorSize(const std::vector<int64_t> &sizes);

/// Invalid options of a model's program: "--lora-on: got 'a', expected ...". For a model of the
/// library, the program reports it as an error of its command line.
class OptionError : public frontend::ModelError {
public:
  using frontend::ModelError::ModelError;
};

/// A JSON value: null, a whole number, a number, a boolean, a text, a list of texts, or any value
/// of a file.
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
  friend class ModelConfig;
  std::string json;
};

/// One entry of the file.
class ConfigEntry {
public:
  explicit ConfigEntry(std::string name, ConfigValue value = nullptr)
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
  /// Not written where `holds`, as a file without the entry means the same.
  ConfigEntry &unwritten(bool holds = true) {
    written = !holds;
    return *this;
  }
  /// Written, and not compared with the file of weights.
  ConfigEntry &uncompared(bool holds = true) {
    compared = !holds;
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

  /// An entry that affects the results of the model: written, and compared with the file of
  /// weights. References are valid until the next entry.
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

  /// Begins to read the file in `folder`: `take` takes values from it. `isGiven` says whether an
  /// option was given on the command line, which must then have the value of the file. Throws
  /// std::exception if the file cannot be read or is not a JSON object.
  void read(const std::string &folder, std::function<bool(const std::string &)> isGiven);
  bool isReading() const { return source != nullptr; }

  /// Adds an entry with the value of the model. While reading, `value` is first set to that of the
  /// file: the value under the first of its names, or the implied value if the file has none of
  /// them, or null (for booleans, transformers reads null as false, so null is refused if the
  /// implied value differs). A value that is missing, has another type or is not from `least` to
  /// `most`, or differs from one name to another, is refused by `finish`. Messages about an entry
  /// without an option refer to --from (Driver::from), which sets it.
  ConfigEntry &take(const ConfigEntry &entry, int64_t &value, int64_t least = 1,
                    int64_t most = kMaxSize);
  /// From 0 to kMaxSize, or null for none. A file without the entry has the implied value.
  ConfigEntry &take(const ConfigEntry &entry, std::optional<int64_t> &value);
  /// A positive number.
  ConfigEntry &take(const ConfigEntry &entry, double &value);
  ConfigEntry &take(const ConfigEntry &entry, std::optional<double> &value);
  ConfigEntry &take(const ConfigEntry &entry, bool &value);
  /// One of `choices`.
  ConfigEntry &take(const ConfigEntry &entry, std::string &value,
                    const std::vector<std::string> &choices);
  /// A list of them, or null for none.
  ConfigEntry &take(const ConfigEntry &entry, std::vector<std::string> &value,
                    const std::vector<std::string> &choices);
  /// Any value, which is written and not compared: `otherwise` if a file that is read has none.
  void carry(const std::string &name, std::optional<ConfigValue> &value, ConfigValue otherwise);
  /// An entry of the file that affects training only and is ignored: `finish` returns a remark if
  /// it is neither 0 nor null.
  void leaveToTraining(const std::string &name);
  /// A remark of `finish` about the value of the file at `name`: "'name' VALUE of 'FILE' TEXT".
  void remark(const std::string &name, const std::string &text);
  /// An entry that the file must not have, or must have with a value that means the same: refused
  /// by `finish`, and as `require` by programs that read weights.
  ConfigEntry &demand(const ConfigEntry &entry);
  /// Refuses the value of the file at `name`; `expected` completes the message.
  void refuse(const std::string &name, const std::string &expected);
  /// The value of the file at `name`, "rope_scaling.factor", as JSON; empty if it is missing or
  /// null.
  std::string valueAt(const std::string &name) const;
  /// Whether the file has null at `name`.
  bool isNullAt(const std::string &name) const;

  /// Whether an entry so far is set by this option of the program.
  bool sets(const std::string &option) const;

  /// Ends reading. Throws std::exception if the file has a value that the model cannot compute
  /// with, or an option contradicts it: the message names every such entry, the value found, and
  /// the supported values. Returns remarks for the user.
  std::vector<std::string> finish();

  /// The text of the file.
  std::string text() const;

private:
  friend class Model;
  struct Source;
  template <class T, class Convert>
  ConfigEntry &takeAs(const ConfigEntry &entry, T &value, const std::string &expected,
                      Convert convert);
  std::string file;
  std::vector<ConfigEntry> entries;
  std::shared_ptr<Source> source; ///< while reading
};

} // namespace fsdp::dsl

#endif // DSL_MODELCONFIG_H
