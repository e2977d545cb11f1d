#include "runtime/train/InitialWeights.h"
#include "test/unit/base/TemporaryFile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <vector>

using namespace base;
using namespace fsdp::rt;
namespace fs = std::filesystem;

namespace {

constexpr Parameter kMembers[] = {
    {"transformer.wte", nullptr, {2, 3}, {2, 3}, 0, Initializer::zeros(), true},
    {"transformer.ln.bias", "shift", {3}, {3}, 6, Initializer::zeros(), false}};
constexpr MeshAxis kAxes[] = {{"fsdp", 2}};
constexpr Storage kStorages[] = {
    {"unit", Layout::Flat, {0}, 0, 0, 9, 0, ArenaSpan<float>{0, 5}, {}, kMembers}};

Program program() {
  Program program{};
  program.storages = kStorages;
  return program;
}

struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

const Tensor kTable{"transformer.wte", {2, 3}, {1, 2, 3, 4, 5, 6}};
const Tensor kBias{"transformer.ln.bias", {3}, {7, 8, 9}};

Tensor renamed(Tensor tensor, const std::string &name) {
  tensor.name = name;
  return tensor;
}

/// A folder of weight files, removed at the end.
class Folder {
public:
  Folder() {
    char pattern[] = "/tmp/fsdp-weights-XXXXXX";
    path = mkdtemp(pattern);
  }
  ~Folder() { fs::remove_all(path); }

  void write(const std::string &name, const std::vector<Tensor> &tensors) const {
    std::vector<TensorDeclaration> declared;
    for (const Tensor &tensor : tensors)
      declared.push_back({tensor.name, tensor.shape});
    SafetensorsWriter writer(path + "/" + name, declared);
    for (const Tensor &tensor : tensors)
      writer.write(tensor.values.data(), tensor.values.size());
    writer.commit();
  }
  void writeText(const std::string &name, const std::string &text) const {
    std::ofstream(path + "/" + name) << text;
  }

  std::string path;
};

/// The remark, or the refusal; where there is none, the shards must be right.
std::string remarkOn(const std::string &path) {
  std::string remark;
  const std::string message = messageOf([&] {
    InitialWeights files({{"", path}});
    for (const std::string &each : files.match(program()))
      remark += each;
    std::vector<float> shard(5, -1);
    loadShard(files, kStorages[0], {kAxes, {0}}, 0, shard.data());
    EXPECT_EQ(shard, (std::vector<float>{1, 2, 3, 4, 5}));
    loadShard(files, kStorages[0], {kAxes, {1}}, 0, shard.data());
    EXPECT_EQ(shard, (std::vector<float>{6, 7, 8, 9, 0}));
  });
  return message == "no error" ? remark : message;
}

std::string remarkOn(const std::vector<Tensor> &tensors) {
  const Folder folder;
  folder.write("weights", tensors);
  return remarkOn(folder.path + "/weights");
}

void contains(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(WeightFilesTest, NamesMayLackTheWrapper) {
  EXPECT_EQ(remarkOn({kTable, kBias}), "");
  EXPECT_EQ(remarkOn({renamed(kTable, "wte"), renamed(kBias, "ln.bias")}), "");
  EXPECT_EQ(remarkOn({kTable, renamed(kBias, "shift")}), "") << "an alias";
}

TEST(WeightFilesTest, TiedTensorsAndBuffersAreNotWorthARemark) {
  EXPECT_EQ(remarkOn({kTable,
                      kBias,
                      renamed(kTable, "lm_head.weight"),
                      {"transformer.h.0.attn.bias", {1, 1}, {1}},
                      {"attn.masked_bias", {}, {-1e4f}},
                      {"h.0.self_attn.rotary_emb.inv_freq", {1}, {1}}}),
            "");
  Tensor other = renamed(kTable, "lm_head.weight");
  other.values[5] = 0;
  contains(remarkOn({kTable, kBias, other, {"h.0.attn.c_attn.bias", {1}, {1}}}),
           "has 2 tensor(s) that the model does not use: 'h.0.attn.c_attn.bias', 'lm_head.weight'");
}

TEST(WeightFilesTest, ATiedHeadIsTheEmbedding) {
  static const ConfigEntry entries[] = {{"vocab_size", "2"}, {"tie_word_embeddings", "true"}};
  Program tied = program();
  tied.config = {"config.json", entries};
  Tensor head = renamed(kTable, "lm_head.weight");
  const auto refusal = [&] {
    const Folder folder;
    folder.write("weights", {kTable, kBias, head});
    return messageOf([&] { InitialWeights({{"", folder.path + "/weights"}}).match(tied); });
  };
  EXPECT_EQ(refusal(), "no error");
  head.values[5] = 0;
  contains(refusal(), "'lm_head.weight' is not the weight of the embedding, with which the head of "
                      "this model is tied; expected equal tensors, or a model with a separate head "
                      "('tie_word_embeddings' false)");
}

TEST(WeightFilesTest, NamesMissingFiles) {
  contains(remarkOn({renamed(kTable, "wt"), renamed(kBias, "bias")}),
           "got no tensor for 2 parameter(s): 'transformer.wte', 'transformer.ln.bias'; expected "
           "one for every parameter of the model, which does not use: 'bias', 'wt'");
  contains(remarkOn({kTable}), "got no tensor for 1 parameter(s): 'transformer.ln.bias'; expected "
                               "one for every parameter of the model");
}

TEST(WeightFilesTest, ReadsTheFilesOfAnIndex) {
  const Folder folder;
  folder.write("model-00001-of-00002.safetensors", {kTable});
  folder.write("model-00002-of-00002.safetensors", {kBias, {"not.in.the.index", {1}, {1}}});
  const std::string index = R"({"metadata": {"total_size": 36}, "weight_map": {)"
                            R"("transformer.wte": "model-00001-of-00002.safetensors",)"
                            R"("transformer.ln.bias": "model-00002-of-00002.safetensors"}})";
  folder.writeText("model.safetensors.index.json", index);
  EXPECT_EQ(remarkOn(folder.path), "");
  EXPECT_EQ(remarkOn(folder.path + "/model.safetensors.index.json"), "");

  fs::remove(folder.path + "/model-00002-of-00002.safetensors");
  contains(remarkOn(folder.path), "/model-00002-of-00002.safetensors': No such file");
  folder.write("model-00002-of-00002.safetensors", {renamed(kBias, "other")});
  contains(remarkOn(folder.path), "model-00002-of-00002.safetensors': got no tensor "
                                  "'transformer.ln.bias', expected it there as '");
}

TEST(WeightFilesTest, ReadsTheOneFileOfAFolder) {
  const Folder folder;
  contains(remarkOn(folder.path), "has no 'model.safetensors', no "
                                  "'model.safetensors.index.json' and no "
                                  "'adapter_model.safetensors'; name the file itself");
  folder.write("adapter_model.safetensors", {kTable, kBias});
  EXPECT_EQ(remarkOn(folder.path), "");
  fs::remove(folder.path + "/adapter_model.safetensors");
  folder.write("model.safetensors", {kTable, kBias});
  EXPECT_EQ(remarkOn(folder.path), "");
}

TEST(WeightFilesTest, ReadsAModelAndItsAdaptersOfAFolder) {
  const Folder folder;
  const std::string model = folder.path + "/model.safetensors",
                    adapters = folder.path + "/adapter_model.safetensors";
  folder.write("model.safetensors", {kTable});
  folder.write("adapter_model.safetensors", {kBias});
  EXPECT_EQ(remarkOn(folder.path), "");
  EXPECT_EQ(WeightFiles(folder.path).files(), (std::vector<std::string>{model, adapters}));
  folder.write("adapter_model.safetensors", {kBias, kTable});
  contains(remarkOn(folder.path), "'" + adapters +
                                      "': got the tensor 'transformer.wte', which is in '" + model +
                                      "' too, expected names of adapters; name one of the files");
  fs::remove(adapters);
  folder.writeText("adapter_config.json", "{}");
  contains(remarkOn(folder.path),
           "has 'adapter_config.json' and no 'adapter_model.safetensors', expected the adapters "
           "beside the model, or neither; for the model alone name its file, '" +
               model + "'");
  contains(remarkOn(model), "got no tensor for 1 parameter(s): 'transformer.ln.bias'");
}

TEST(WeightFilesTest, RefusesInvalidIndices) {
  const Folder folder;
  const std::string path = folder.path + "/model.safetensors.index.json";
  for (const char *text : {"", "[]", "{\"weight_map\""}) {
    folder.writeText("model.safetensors.index.json", text);
    contains(remarkOn(path), "is not an index of safetensors files: it is not a JSON object");
  }
  folder.writeText("model.safetensors.index.json", "{\n  \"weight_map\": {,}}");
  contains(remarkOn(path), "it is not a JSON object (line 2, column 18: unexpected ','");
  for (const char *text : {"{}", R"({"weight_map": 3})"}) {
    folder.writeText("model.safetensors.index.json", text);
    contains(remarkOn(path), "is not an index of safetensors files: it has no object 'weight_map'");
  }
  folder.writeText("model.safetensors.index.json", std::string(1'000'000, '['));
  contains(remarkOn(path),
           "is not an index of safetensors files: it is nested deeper than 8 levels");
  for (const char *text : {R"({"weight_map": {"a": "../x"}})", R"({"weight_map": {"a": 3}})"}) {
    folder.writeText("model.safetensors.index.json", text);
    contains(remarkOn(path), "tensor 'a' is not in a file beside it");
  }
}

TEST(WeightFilesTest, ReadsHalves) {
  // 1, -2, the largest, the smallest normal, the largest and the smallest subnormal, -0, 1/3.
  const std::string halves = bytesOf<std::uint16_t>(
      {0x3c00, 0xc000, 0x7bff, 0x0400, 0x03ff, 0x0001, 0x8000, 0x3555, 0x7c00, 0xfe00});
  TemporaryFile file;
  file.write(safetensors(R"({"a":{"dtype":"F16","shape":[10],"data_offsets":[0,20]}})", halves));
  const SafetensorsFile weights(file.path);
  std::vector<float> values(10);
  weights.find("a")->readFloats(0, 10, values.data());
  EXPECT_EQ(std::vector<float>(values.begin(), values.begin() + 9),
            (std::vector<float>{1, -2, 65504, 0x1p-14f, 0x1.ff8p-15f, 0x1p-24f, 0, 0x1.554p-2f,
                                INFINITY}));
  EXPECT_TRUE(std::signbit(values[6]));
  EXPECT_TRUE(std::isnan(values[9]));
  EXPECT_EQ(weights.find("a")->firstNonfinite(), 8u);
}

} // namespace
