#include "runtime/train/AdapterFiles.h"

#include "base/Error.h"
#include "base/FileSystem.h"
#include "base/JsonEntries.h"
#include "base/OutputPath.h"
#include "base/PrintableText.h"
#include "runtime/train/ModelChange.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <iterator>
#include <sys/stat.h>

namespace fsdp::rt {

using namespace base;

namespace {

/// Entries of PEFT's LoraConfig (0.21) that must be null, false or empty, as another value makes
/// other adapters of the same tensors.
constexpr const char *kSwitches[] = {
    "use_rslora",        "use_dora",    "use_qalora",        "rank_pattern",
    "alpha_pattern",     "use_bdlora",  "layer_replication", "alora_invocation_tokens",
    "target_parameters", "kasa_config", "arrow_config",      "monteclora_config",
    "megatron_config"};
/// The same for entries about further trained and saved parameters besides A and B.
constexpr const char *kMoreTensors[] = {"modules_to_save", "bias", "lora_bias",
                                        "trainable_token_indices"};
/// Entries that may have any value: they concern loading, training, or initial values, or are
/// compared separately. Numbers and words of entries that are not listed have no effect without a
/// switch.
constexpr const char *kOthers[] = {
    "r",
    "lora_alpha",
    "peft_type",
    "fan_in_fan_out",
    "target_modules",
    "exclude_modules",
    "layers_to_transform",
    "layers_pattern",
    "init_lora_weights",
    "auto_mapping",
    "inference_mode",
    "merge_weights",
    "runtime_config",
    "ensure_weight_tying",
    "loftq_config",
    "eva_config",
    "corda_config",
    "lora_ga_config",
    "velora_config",
};
/// The words of `init_lora_weights` with which PEFT leaves the base model as it is. With the others
/// (pissa, olora, corda, loftq, …) it subtracts the first adapters from the base model each time
/// that it loads them.
constexpr const char *kInitializations[] = {"gaussian", "orthogonal", "eva", "mica"};

template <std::size_t size> bool isOneOf(std::string_view name, const char *const (&names)[size]) {
  return std::any_of(std::begin(names), std::end(names),
                     [&](const char *other) { return name == other; });
}

/// Null, false, "none", or empty.
bool isNeutral(const nlohmann::json &value) {
  return value.is_null() || value == false || value == "none" ||
         (value.is_structured() && value.empty());
}

/// PEFT's match of a module: by its name, or by a suffix of it after a dot.
bool namesModule(const nlohmann::json &list, const std::string &module) {
  return std::any_of(list.begin(), list.end(), [&](const nlohmann::json &each) {
    if (!each.is_string())
      return false;
    const std::string &name = each.get_ref<const std::string &>(), end = "." + name;
    return module == name || (module.size() > end.size() &&
                              module.compare(module.size() - end.size(), end.size(), end) == 0);
  });
}

/// The number of the block of a module: "3" for "model.layers.3.self_attn.q_proj"; "" if it is in
/// no block.
std::string blockOf(const std::string &module) {
  std::string number;
  for (std::size_t begin = 0, end = 0; (end = module.find('.', begin)) != std::string::npos;
       begin = end + 1) {
    const std::string part = module.substr(begin, end - begin);
    if (!part.empty() && std::all_of(part.begin(), part.end(),
                                     [](unsigned char digit) { return std::isdigit(digit); }))
      number = part;
  }
  return number;
}

/// adapter_config.json of a file and of the program.
class AdapterComparison {
public:
  AdapterComparison(const Program &program, const nlohmann::json &got,
                    const nlohmann::json &expected)
      : got(got), expected(expected) {
    for (const Adapter &adapter : program.adapters.products) {
      const std::string weight = adapter.weight;
      modules.push_back(weight.substr(0, weight.rfind('.')));
    }
  }

  /// Every entry that differs.
  std::string differences(bool part) {
    compareEntry("peft_type", entry(expected, "peft_type", "LORA"), "");
    compareEntry("r", 8, "--lora");
    compareEntry("lora_alpha", 8, "--lora-alpha");
    // PEFT corrects it where it is missing.
    compareEntry("fan_in_fan_out", entry(expected, "fan_in_fan_out", false), "");
    for (const char *name : kSwitches)
      requireNeutral(name, "no option of the model changes it");
    if (!part)
      for (const char *name : kMoreTensors)
        requireNeutral(name, "this program has the matrices A and B alone; --init '*=FILE' takes "
                             "these of the file");
    compareInitialization();
    compareModules();
    compareUnknown();
    return all;
  }

private:
  static nlohmann::json entry(const nlohmann::json &config, const char *name,
                              const nlohmann::json &implied) {
    const nlohmann::json *found = findEntry(config, name);
    return found ? *found : implied;
  }
  void differs(const char *name, const nlohmann::json &is, const std::string &expects) {
    all += (all.empty() ? "'" : "; '") + std::string(name) + "' is " + shownEntry(is) +
           ", expected " + expects;
  }
  void compareEntry(const char *name, const nlohmann::json &implied, const std::string &option) {
    const nlohmann::json there = entry(got, name, implied), here = entry(expected, name, implied);
    if (!isSameEntry(there, here))
      differs(name, there,
              shownEntry(here) + (option.empty() ? " (no option of the model changes it)"
                                                 : " (compile the model with " + option + "=" +
                                                       shownEntry(there) + ")"));
  }
  void requireNeutral(const std::string &name, const std::string &remedy) {
    const nlohmann::json there = entry(got, name.c_str(), nullptr),
                         here = entry(expected, name.c_str(), nullptr);
    if (isSameEntry(there, here) || (isNeutral(there) && isNeutral(here)))
      return;
    const nlohmann::json neutral = !isNeutral(here)                     ? here
                                   : name == "bias"                     ? nlohmann::json("none")
                                   : there.is_boolean()                 ? nlohmann::json(false)
                                   : name.find("_pattern") != name.npos ? nlohmann::json::object()
                                                                        : nlohmann::json(nullptr);
    differs(name.c_str(), there, shownEntry(neutral) + " (" + remedy + ")");
  }
  void compareInitialization() {
    const nlohmann::json there = entry(got, "init_lora_weights", true);
    if (there.is_boolean() ||
        (there.is_string() && isOneOf(there.get_ref<const std::string &>(), kInitializations)))
      return;
    differs("init_lora_weights", there,
            "true, as it is after PEFT's conversion (the base model is changed with it: save the "
            "adapters with path_initial_model_for_weight_conversion)");
  }
  void compareModules() {
    const nlohmann::json targets = entry(got, "target_modules", nullptr),
                         excluded = entry(got, "exclude_modules", nullptr),
                         layers = entry(got, "layers_to_transform", nullptr);
    const nlohmann::json listed = layers.is_array() ? layers : nlohmann::json::array({layers});
    for (const std::string &module : modules) {
      const std::string has = "'" + module +
                              "' in it, which has an adapter in this program "
                              "(--lora-on says which have one)";
      if (targets.is_array() && !namesModule(targets, module))
        return differs("target_modules", targets, has);
      if (excluded.is_array() && namesModule(excluded, module))
        return differs("exclude_modules", excluded, "no " + has);
      if (!isNeutral(layers) &&
          std::none_of(listed.begin(), listed.end(), [&](const nlohmann::json &each) {
            return each.is_number_integer() && each.dump() == blockOf(module);
          }))
        return differs("layers_to_transform", layers, "the block of " + has);
    }
  }
  void compareUnknown() {
    for (const auto &[name, value] : got.items())
      if (!isNeutral(value) && (value == true || value.is_structured()) &&
          !isOneOf(name, kSwitches) && !isOneOf(name, kMoreTensors) && !isOneOf(name, kOthers) &&
          !(expected.contains(name) && isSameEntry(value, expected[name])))
        differs(printable(name).c_str(), value,
                "no such entry (its effect is unknown to this version)");
  }

  const nlohmann::json &got, &expected;
  std::vector<std::string> modules; ///< that have adapters in the program
  std::string all;
};

} // namespace

bool isNameOfAdapters(std::string_view tensor) {
  constexpr std::string_view wrapper = "base_model.model.";
  return tensor.substr(0, wrapper.size()) == wrapper || tensor.find(".lora_") != tensor.npos;
}

std::string adapterChange(const Program &program, const std::string &path, bool part) {
  const std::string file = folderOf(path) + "/" + kAdapterConfig;
  struct stat status;
  if (stat(file.c_str(), &status) != 0 && errno == ENOENT)
    return "";
  for (const ExtraFile &own : program.adapters.files)
    if (std::string_view(own.name) == kAdapterConfig) {
      const nlohmann::json got = readConfig(file), expected = nlohmann::json::parse(own.text);
      const std::string differences = AdapterComparison(program, got, expected).differences(part);
      if (!differences.empty())
        return "'" + file + "' describes other adapters than this program has: " + differences;
    }
  return "";
}

void requireOneKindOfWeights(const char *option, const std::string &path) {
  const std::string folder = folderOf(path), name = nameIn(path);
  const bool isModel = name == kModelWeights;
  if (!isModel && name != kAdapterWeights)
    return;
  const std::vector<const char *> others =
      isModel ? std::vector<const char *>{kAdapterConfig, kAdapterWeights, "adapter_model.bin"}
              : std::vector<const char *>{kModelWeights, "model.safetensors.index.json",
                                          "pytorch_model.bin", "pytorch_model.bin.index.json"};
  for (const char *other : others)
    if (fileExists(folder + "/" + other))
      throw Error(std::string(option) + ": the folder " + inQuotes(folder) + " has '" + other +
                  "'" +
                  (isModel ? " of adapters, expected a folder without: what reads the folder would "
                             "add these adapters to the weights"
                           : " of a whole model, expected a folder without: what reads the folder "
                             "would add the adapters to that model") +
                  "; choose another folder");
}

void requireTwoFolders(const std::string &exported, const std::string &merged) {
  if (nameIn(exported) == kAdapterWeights && nameIn(merged) == kModelWeights &&
      identityOf(folderOf(exported)) == identityOf(folderOf(merged)))
    throw Error("got the folder " + inQuotes(folderOf(merged)) +
                    " for --export and for --export-merged, expected two folders: what reads it "
                    "would add the adapters to the merged weights once more",
                kExitBadCommandLine);
}

} // namespace fsdp::rt
