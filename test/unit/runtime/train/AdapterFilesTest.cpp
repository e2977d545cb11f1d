//===- AdapterFilesTest.cpp - adapters of PEFT, and where they lie --------===//

#include "runtime/train/AdapterFiles.h"

#include "test/unit/base/TemporaryFile.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

using namespace fsdp::rt;
namespace fs = std::filesystem;

namespace {

class AdapterFilesTest : public testing::Test {
protected:
  std::string write(const std::string &name, const std::string &text) const {
    std::ofstream(folder + "/" + name) << text;
    return folder + "/" + name;
  }
  /// What differs from a program with adapters of two blocks where adapter_config.json has these
  /// entries, and r and lora_alpha.
  std::string change(const std::string &entries, bool part = false, bool transposed = false) const {
    const std::string rank = entries.find("\"r\"") == entries.npos ? R"("r": 2, )" : "";
    write(kAdapterConfig,
          "{" + rank + R"("lora_alpha": 6.0)" + (entries.empty() ? "" : ", " + entries) + "}");
    const std::string own =
        std::string(R"({"r": 2, "lora_alpha": 6, "peft_type": "LORA", "bias": "none", )") +
        R"("fan_in_fan_out": )" + (transposed ? "true}" : "false}");
    const ExtraFile files[] = {{kAdapterConfig, own.c_str()}};
    static constexpr Adapter products[] = {{"model.layers.0.self_attn.q_proj.weight", "a", "b"},
                                           {"model.layers.11.self_attn.q_proj.weight", "c", "d"}};
    Program program{};
    program.adapters = {files, products};
    return adapterChange(program, folder + "/" + kAdapterWeights, part);
  }

  const TemporaryFile temporary;
  const std::string folder = temporary.folder;
};

void contains(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

// What LoraConfig of PEFT 0.21 writes without options.
constexpr const char *kUsual = R"(
  "alora_invocation_tokens": null, "alpha_pattern": {}, "arrow_config": null, "auto_mapping": null,
  "base_model_name_or_path": "small", "bias": "none", "corda_config": null,
  "ensure_weight_tying": false, "eva_config": null, "exclude_modules": null,
  "fan_in_fan_out": false, "inference_mode": true, "init_lora_weights": true, "kasa_config": null,
  "layer_replication": null, "layers_pattern": null, "layers_to_transform": null,
  "loftq_config": {}, "lora_bias": false, "lora_dropout": 0.0, "lora_ga_config": null,
  "megatron_config": null, "megatron_core": "megatron.core", "modules_to_save": null,
  "monteclora_config": null, "peft_type": "LORA", "peft_version": "0.21.2",
  "qalora_group_size": 16, "rank_pattern": {}, "revision": null,
  "target_modules": ["v_proj", "q_proj"], "target_parameters": null, "task_type": "CAUSAL_LM",
  "trainable_token_indices": null, "use_bdlora": null, "use_dora": false, "use_qalora": false,
  "use_rslora": false, "velora_config": null)";

TEST_F(AdapterFilesTest, AcceptsEquivalentConfigurations) {
  for (const char *entries :
       {"", kUsual, R"("lora_dropout": 0.1, "task_type": "SEQ_CLS")", R"("inference_mode": false)",
        R"("init_lora_weights": false)", R"("init_lora_weights": "gaussian")",
        R"("init_lora_weights": "eva", "eva_config": {"rho": 2.0})",
        R"("auto_mapping": {"unsloth_fixed": true})", R"("rank_pattern": null)",
        R"("modules_to_save": [])", R"("target_modules": "all-linear")",
        R"("target_modules": ["model.layers.0.self_attn.q_proj", "11.self_attn.q_proj"])",
        R"("exclude_modules": ["_proj", "layers", "lm_head"])", R"("layers_to_transform": [11, 0])",
        R"("layers_to_transform": [])", R"("some_size": 3, "some_word": "x", "some_list": [])"})
    EXPECT_EQ(change(entries), "") << entries;
}

TEST_F(AdapterFilesTest, RefusesOtherConfigurations) {
  const struct {
    const char *entry, *expected;
  } cases[] = {
      {R"("r": 4)", "'r' is 4, expected 2 (compile the model with --lora=4)"},
      {R"("r": null)", "'r' is 8, expected 2"},
      {R"("peft_type": "IA3")",
       R"('peft_type' is "IA3", expected "LORA" (no option of the model changes it))"},
      {R"("fan_in_fan_out": true)", "'fan_in_fan_out' is true, expected false (no option"},
      {R"("use_rslora": true)", "'use_rslora' is true, expected false (no option"},
      {R"("use_dora": true)", "'use_dora' is true, expected false"},
      {R"("use_qalora": true)", "'use_qalora' is true, expected false"},
      {R"("rank_pattern": {"q": 3})", R"('rank_pattern' is {"q":3}, expected {} ()"},
      {R"("alpha_pattern": {"q": 3})", R"('alpha_pattern' is {"q":3}, expected {} ()"},
      {R"("use_bdlora": {"x": 1})", R"('use_bdlora' is {"x":1}, expected null)"},
      {R"("layer_replication": [[0, 1]])", "'layer_replication' is [[0,1]], expected null"},
      {R"("alora_invocation_tokens": [1])", "'alora_invocation_tokens' is [1], expected null"},
      {R"("target_parameters": ["x"])", R"('target_parameters' is ["x"], expected null)"},
      {R"("kasa_config": {"x": 1})", R"('kasa_config' is {"x":1}, expected null (no option)"},
      {R"("arrow_config": {"x": 3})", R"('arrow_config' is {"x":3}, expected null (no option)"},
      {R"("monteclora_config": {"x": 3})", R"('monteclora_config' is {"x":3}, expected null (no)"},
      {R"("megatron_config": {"x": 3})", R"('megatron_config' is {"x":3}, expected null (no)"},
      {R"("init_lora_weights": "pissa")",
       R"('init_lora_weights' is "pissa", expected true, as it is after PEFT's conversion (the )"
       R"(base model is changed with it: save the adapters with )"
       R"(path_initial_model_for_weight_conversion))"},
      {R"("init_lora_weights": "olora")", R"('init_lora_weights' is "olora", expected true)"},
      {R"("target_modules": ["v_proj", "j_proj"])",
       R"('target_modules' is ["v_proj","j_proj"], expected 'model.layers.0.self_attn.q_proj' in )"
       R"(it, which has an adapter in this program (--lora-on says which have one))"},
      {R"("target_modules": ["0.self_attn.q_proj", 3])",
       "expected 'model.layers.11.self_attn.q_proj' in it"},
      {R"("exclude_modules": ["self_attn.q_proj"])",
       "expected no 'model.layers.0.self_attn.q_proj' in it"},
      {R"("layers_to_transform": [0, 1])",
       "'layers_to_transform' is [0,1], expected the block of 'model.layers.11.self_attn.q_proj'"},
      {R"("layers_to_transform": 11)", "expected the block of 'model.layers.0.self_attn.q_proj'"},
      {R"("use_what_comes": true)",
       "'use_what_comes' is true, expected no such entry (its effect is unknown to this version)"},
      {R"("what_config": {"x": 1})", R"('what_config' is {"x":1}, expected no such entry)"},
  };
  for (const auto &[entry, expected] : cases)
    for (bool part : {false, true}) {
      const std::string got = change(entry, part);
      contains(got, expected);
      contains(got, "adapter_config.json' describes other adapters than this program has: '");
    }
  contains(change(R"("fan_in_fan_out": false)", false, /*transposed=*/true),
           "'fan_in_fan_out' is false, expected true");
  EXPECT_EQ(change(R"("fan_in_fan_out": true)", false, /*transposed=*/true), "") << "Conv1D";
}

TEST_F(AdapterFilesTest, MoreThanAdaptersIsRefusedUnlessAPartIsRead) {
  for (const auto &[entry, expected] : std::vector<std::pair<std::string, std::string>>{
           {R"("modules_to_save": ["lm_head"])",
            R"('modules_to_save' is ["lm_head"], expected null (this program has the matrices A )"
            R"(and B alone; --init '*=FILE' takes these of the file))"},
           {R"("bias": "lora_only")", R"('bias' is "lora_only", expected "none" (this program)"},
           {R"("lora_bias": true)", "'lora_bias' is true, expected false"},
           {R"("trainable_token_indices": [1, 2])",
            "'trainable_token_indices' is [1,2], expected null"}}) {
    contains(change(entry), expected);
    EXPECT_EQ(change(entry, /*part=*/true), "") << entry;
  }
}

TEST_F(AdapterFilesTest, NamesOfTensors) {
  for (const char *name : {"base_model.model.lm_head.weight", "model.q_proj.lora_A.weight",
                           "base_model.model.model.norm.ia3_l"})
    EXPECT_TRUE(isNameOfAdapters(name)) << name;
  for (const char *name : {"lm_head.weight", "model.base_model.model.x", "lora.weight", ""})
    EXPECT_FALSE(isNameOfAdapters(name)) << name;
}

TEST_F(AdapterFilesTest, NeverLieInAFolderWithOtherWeights) {
  const auto refusal = [&](const char *option, const std::string &path) {
    return messageOf([&] { requireOneKindOfWeights(option, path); });
  };
  const std::string model = folder + "/" + kModelWeights, adapters = folder + "/" + kAdapterWeights;
  EXPECT_EQ(refusal("--export", adapters), "no error");
  EXPECT_EQ(refusal("--export-merged", model), "no error");
  for (const char *name :
       {"adapter_config.json", "adapter_model.safetensors", "adapter_model.bin"}) {
    const std::string other = write(name, "");
    EXPECT_EQ(refusal("--export-merged", model),
              "--export-merged: the folder '" + folder + "' has '" + name +
                  "' of adapters, expected a folder without: what reads the folder would add these "
                  "adapters to the weights; choose another folder");
    EXPECT_EQ(refusal("--export", adapters), "no error") << "replaced";
    EXPECT_EQ(refusal("--export-merged", folder + "/tuned.safetensors"), "no error");
    fs::remove(other);
  }
  for (const char *name : {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                           "pytorch_model.bin.index.json"}) {
    const std::string other = write(name, "");
    EXPECT_EQ(refusal("--export", adapters),
              "--export: the folder '" + folder + "' has '" + name +
                  "' of a whole model, expected a folder without: what reads the folder would add "
                  "the adapters to that model; choose another folder");
    EXPECT_EQ(refusal("--export", model), "no error") << "replaced";
    fs::remove(other);
  }
}

TEST_F(AdapterFilesTest, OneRunWritesTwoFolders) {
  fs::create_directory(folder + "/a");
  fs::create_directory(folder + "/b");
  fs::create_directory_symlink(folder + "/a", folder + "/link");
  const auto refusal = [&](const std::string &exported, const std::string &merged) {
    return messageOf([&] { requireTwoFolders(folder + exported, folder + merged); });
  };
  for (const std::string other : {"/a", "/b/../a", "/link"})
    EXPECT_EQ(refusal("/a/adapter_model.safetensors", other + "/model.safetensors"),
              "got the folder '" + folder + other +
                  "' for --export and for --export-merged, expected two folders: what reads it "
                  "would add the adapters to the merged weights once more");
  EXPECT_EQ(refusal("/a/adapter_model.safetensors", "/b/model.safetensors"), "no error");
  EXPECT_EQ(refusal("/a/adapters.safetensors", "/a/model.safetensors"), "no error");
  EXPECT_EQ(messageOf([] { requireTwoFolders("", ""); }), "no error");
}

} // namespace
