// Weights in part: from several files, by patterns of names, drawn where no file has them, and
// exported by patterns.

#include "runtime/train/InitialWeights.h"
#include "base/Error.h"
#include "base/NamePattern.h"
#include "runtime/program/Shard.h"
#include "runtime/train/CommandLine.h"
#include "runtime/train/RunContents.h"
#include "runtime/train/RunHeader.h"
#include "test/unit/base/TemporaryFile.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <vector>

using namespace base;
using namespace fsdp::rt;
namespace fs = std::filesystem;

namespace {

constexpr Parameter kMembers[] = {
    {"student.out", nullptr, {2}, {2}, 0, Initializer::constant(5), false, 2},
    {"student.in", nullptr, {3}, {3}, 2, Initializer::normal(0, 1), false, 0},
    {"teacher.transformer.wte",
     "teacher.tok",
     {4},
     {4},
     5,
     Initializer::zeros(),
     false,
     1,
     {},
     true}};
constexpr MeshAxis kAxes[] = {{"fsdp", 2}};
constexpr Storage kStorages[] = {
    {"unit", Layout::Flat, {0}, 0, 0, 9, 0, ArenaSpan<float>{0, 5}, {}, kMembers}};

Program program() {
  Program program{};
  program.name = "distill";
  program.axes = kAxes;
  program.storages = kStorages;
  return program;
}

using Values = std::vector<float>;

class InitialWeightsTest : public testing::Test {
protected:
  std::string at(const std::string &name) const { return folder + "/" + name; }
  /// A file of vectors; returns its path.
  std::string write(const std::string &name,
                    const std::vector<std::pair<std::string, Values>> &tensors) const {
    std::vector<TensorDeclaration> declared;
    for (const auto &[tensor, values] : tensors)
      declared.push_back({tensor, {static_cast<std::int64_t>(values.size())}});
    SafetensorsWriter writer(at(name), declared);
    for (const auto &[tensor, values] : tensors)
      writer.write(values.data(), values.size());
    writer.commit();
    return at(name);
  }

  /// What both ranks hold, without padding.
  static Values loaded(const InitialWeights &weights, std::uint64_t seed = 3) {
    Values all;
    for (int rank = 0; rank < 2; ++rank) {
      Values shard(5, -1);
      loadShard(weights, kStorages[0], {kAxes, {rank}}, seed, shard.data());
      all.insert(all.end(), shard.begin(), shard.end());
    }
    EXPECT_EQ(all.back(), 0) << "padding";
    all.pop_back();
    return all;
  }
  static std::string refusal(const std::vector<InitialFile> &files, bool draws = false) {
    return messageOf([&] { InitialWeights(files).match(program(), draws); });
  }

  const TemporaryFile temporary;
  const std::string folder = temporary.folder;
};

void contains(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(NamePatternTest, AStarIsAnyPart) {
  for (const char *pattern :
       {"a.bc.b", "*", "a*", "*b", "a.*.b", "a.bc.b*", "*.b", "a*b*b", "**c*"})
    EXPECT_TRUE(matchesPattern(pattern, "a.bc.b")) << pattern;
  for (const char *pattern : {"", "a", "b*", "*a", "a.bc.b.", "a.*.c", "a*c", "a.bc.b*b", "?.bc.b"})
    EXPECT_FALSE(matchesPattern(pattern, "a.bc.b")) << pattern;
  EXPECT_EQ(partOfPattern("a.*", "a.bc.b"), "bc.b");
  EXPECT_EQ(partOfPattern("*.b", "a.bc.b"), "a.bc");
  EXPECT_EQ(partOfPattern("a.*.b", "a.bc.b"), "bc");
  EXPECT_EQ(partOfPattern("a.bc.b", "a.bc.b"), "a.bc.b");
  EXPECT_EQ(partOfPattern("a.b*b.b", "a.b.b"), std::nullopt) << "the ends overlap";
  EXPECT_EQ(partOfPattern("b.*", "a.bc.b"), std::nullopt);
}

TEST_F(InitialWeightsTest, SeveralFilesAddUp) {
  InitialWeights weights({{"", write("a", {{"student.in", {1, 2, 3}}, {"more", {0}}})},
                          {"teacher.*", write("t", {{"wte", {6, 7, 8, 9}}, {"student.in", {0}}})},
                          {"", write("b", {{"student.out", {4, 5}}})}});
  EXPECT_EQ(weights.match(program()),
            (std::vector<std::string>{
                "'" + at("a") + "' has 1 tensor(s) that the model does not use: 'more'",
                "'" + at("t") + "' has 1 tensor(s) that the model does not use: 'student.in'"}));
  EXPECT_EQ(loaded(weights), (Values{4, 5, 1, 2, 3, 6, 7, 8, 9}));
  EXPECT_TRUE(weights.drawn().empty());
}

TEST_F(InitialWeightsTest, ThePartOfTheStarIsTheNameInTheFile) {
  const std::string student = write("s", {{"student.in", {1, 2, 3}}, {"student.out", {4, 5}}});
  for (const auto &[pattern, name] : std::vector<std::pair<std::string, std::string>>{
           {"teacher.*", "transformer.wte"},
           {"teacher.*", "wte"},
           {"teacher.*", "tok"},
           {"teacher.transformer.*", "transformer.wte"},
           {"teacher.transformer.*", "wte"},
           {"*", "teacher.transformer.wte"},
           {"*.wte", "teacher.transformer"},
           {"teacher.transformer.wte", "teacher.transformer.wte"},
           {"teacher.tok", "teacher.tok"}}) {
    InitialWeights weights({{"", student}, {pattern, write("t", {{name, {6, 7, 8, 9}}})}});
    weights.match(program());
    EXPECT_EQ(loaded(weights), (Values{4, 5, 1, 2, 3, 6, 7, 8, 9})) << pattern << " " << name;
  }
}

TEST_F(InitialWeightsTest, MissingTensorsAreDrawn) {
  InitialWeights weights({{"teacher.*", write("t", {{"wte", {6, 7, 8, 9}}})}});
  EXPECT_TRUE(weights.match(program(), /*drawsMissing=*/true).empty());
  EXPECT_EQ(weights.drawn(), (std::vector<std::string>{"student.in", "student.out"}));
  Values expected;
  for (int rank = 0; rank < 2; ++rank) {
    Values shard(5);
    initializeShard(kStorages[0], {kAxes, {rank}}, 3, shard.data());
    expected.insert(expected.end(), shard.begin(), shard.end());
  }
  const Values got = loaded(weights);
  EXPECT_EQ(Values(got.begin(), got.begin() + 5), Values(expected.begin(), expected.begin() + 5));
  EXPECT_EQ(Values(got.begin() + 5, got.end()), (Values{6, 7, 8, 9}));
  EXPECT_NE(loaded(weights, /*seed=*/4)[2], got[2]);
}

TEST_F(InitialWeightsTest, RefusesFilesThatDoNotFitTogether) {
  const std::string a = write("a", {{"student.in", {1, 2, 3}}, {"student.out", {4, 5}}});
  const std::string b = write("b", {{"student.out", {4, 5}}, {"tok", {1, 2, 3, 4}}});
  const std::string other = write("other", {{"x", {1}}});
  contains(
      refusal({{"", a}, {"", b}}, true),
      "got parameter 'student.out' in '" + a + "' and in '" + b +
          "', expected it in one file of --init: leave a file out, or give it a pattern of the "
          "parameters that it is for (PATTERN=FILE)");
  contains(refusal({{"", a}, {"", write("t", {{"y", {1}}})}}),
           "'" + a + "', '" + at("t") +
               "': got no tensor for 1 parameter(s): 'teacher.transformer.wte'; expected one for "
               "every parameter of the model, which does not use: 'y'; with --init-missing=draw "
               "they keep the values that are drawn");
  contains(refusal({{"", a}, {"", other}}, true),
           "'" + other + "': got no tensor of a parameter, expected one at least");
  contains(refusal({{"", a}, {"teacher.*", other}}, true),
           "'" + other + "': got no tensor of a parameter that 'teacher.*' matches, expected one");
  contains(
      refusal({{"", a}, {"techer.*", b}}),
      "--init: no parameter matches 'techer.*', expected the name of one, or names with '*' for "
      "any part of them; this model has 'student.out', 'student.in', "
      "'teacher.transformer.wte'; a file whose name has '=' is written './techer.*=…'");
  contains(refusal({{"", a}, {"teacher.*", write("s", {{"wte", {1, 2}}})}}),
           "'" + at("s") + "': parameter 'teacher.transformer.wte': got shape [2], expected [4]");
}

TEST_F(InitialWeightsTest, AllAdaptersOfAFileAreUsed) {
  static constexpr Parameter members[] = {
      {"w", nullptr, {2}, {2}, 0, Initializer::zeros(), false, 0},
      {"base_model.model.w.lora_A.weight", nullptr, {2}, {2}, 2, Initializer::zeros(), false, 1},
      {"base_model.model.w.lora_B.weight", nullptr, {2}, {2}, 4, Initializer::zeros(), false, 2}};
  static constexpr Storage storages[] = {
      {"unit", Layout::Flat, {0}, 0, 0, 6, 0, ArenaSpan<float>{0, 3}, {}, members}};
  static constexpr Adapter products[] = {{"w", members[1].name, members[2].name}};
  Program with = program(), without = program();
  with.storages = storages;
  with.adapters = {{}, products};
  static constexpr Storage bare[] = {{"unit",
                                      Layout::Flat,
                                      {0},
                                      0,
                                      0,
                                      2,
                                      0,
                                      ArenaSpan<float>{0, 1},
                                      {},
                                      Table<Parameter>(members, 1)}};
  without.storages = bare;
  const auto said = [](const Program &of, const std::vector<InitialFile> &files) {
    std::string remarks;
    const std::string message = messageOf([&] {
      for (const std::string &remark : InitialWeights(files).match(of))
        remarks += remark;
    });
    return message == "no error" ? remarks : message;
  };
  const Values two = {4, 5};
  std::vector<std::pair<std::string, Values>> adapters = {{members[1].name, two},
                                                          {members[2].name, two}};
  const std::string base = write("model.safetensors", {{"w", {1, 2}}}),
                    file = write("adapter_model.safetensors", adapters);
  EXPECT_EQ(said(with, {{"", base}, {"", file}}), "");
  EXPECT_EQ(said(with, {{"", folder}}), "") << "both";
  contains(said(without, {{"", folder}}),
           "'" + file + "' has 2 tensor(s) of adapters that the program does not use: ");
  contains(said(without, {{"", folder}}),
           "; expected a model alone, as this program has no adapters (--lora of its compiler): "
           "merge them first (--export-merged of a program that has them); the model without them "
           "is --init '" +
               base + "'");
  EXPECT_EQ(said(without, {{"", base}}), "");
  // An equal tensor is no copy, and none is a buffer.
  for (const char *other : {"base_model.model.lm_head.weight", "base_model.model.v.lora_A.weight",
                            "w.lora_B.bias", "base_model.model.transformer.h.0.attn.bias"}) {
    auto more = adapters;
    more.push_back({other, two});
    write("adapter_model.safetensors", more);
    const std::string expected =
        std::string("has 1 tensor(s) of adapters that the program does not use: '") + other +
        "'; expected adapters of this program's projections alone (--lora-on of its compiler); "
        "--init '*=";
    contains(said(with, {{"", base}, {"", file}}), expected + file + "' leaves the others out");
    contains(said(with, {{"", folder}}), expected + folder + "' leaves the others out");
    EXPECT_EQ(said(with, {{"", base}, {"*", file}}).find("expected"), std::string::npos) << other;
  }
  adapters.push_back({"w", {1, 2}});
  const std::string both = write("both", adapters);
  contains(said(without, {{"", both}}), "the model without them is --init '*=" + both + "'");
  contains(said(without, {{"*", both}}), "has 2 tensor(s) that the model does not use");
}

TEST_F(InitialWeightsTest, AreRecorded) {
  Options options;
  options.init = {{"", write("a", {{"student.in", {1, 2, 3}}})},
                  {"teacher.*", write("t", {{"wte", {6, 7, 8, 9}}})}};
  InitialWeights weights(options.init);
  const Program distill = program();
  weights.match(distill, true);
  const RunContents contents = RunContents::of({}, &weights);
  const Hyperparameters rate;
  RunHeader header{distill, options, 3, rate, "fsdp=2", 2, "", "", contents};
  header.drawn = weights.drawn();
  contains(header.text(), "distill: 5 of 9 parameters trainable, 2 ranks");
  contains(header.text(),
           "--init has no tensor of 1 parameter, whose values are drawn: 'student.out'\n");
  const auto record = nlohmann::json::parse(header.record());
  EXPECT_EQ(record["parameters"], 9);
  EXPECT_EQ(record["trainable"], 5);
  EXPECT_EQ(record["drawn"], nlohmann::json({"student.out"}));
  ASSERT_EQ(record["files"]["init"].size(), 2u);
  EXPECT_EQ(record["files"]["init"][0]["path"], at("a"));
  EXPECT_FALSE(record["files"]["init"][0].contains("pattern"));
  EXPECT_EQ(record["files"]["init"][1]["pattern"], "teacher.*");
  // Many files are one entry.
  header.contents.data.assign(100, FileContent{"d", 3, 7});
  const auto ofData = [&] { return nlohmann::json::parse(header.record())["files"]["data"]; };
  const nlohmann::json before = ofData();
  EXPECT_EQ(before["files"], 100);
  EXPECT_EQ(before["bytes"], 300);
  header.contents.data[50].digest = 8;
  EXPECT_NE(ofData()["digest"], before["digest"]);
  header.contents.data.resize(3);
  EXPECT_EQ(ofData().size(), 3u);
}

TEST_F(InitialWeightsTest, RanksMustAgree) {
  // What a rank with other options or files is refused by: see JobIdentityTest.
  const Program distill = program();
  const std::string a = write("a", {{"student.in", {1, 2, 3}}}), t = write("t", {{"wte", {6, 7}}});
  const auto identity = [&](const std::vector<InitialFile> &files, const std::string &missing,
                            const std::vector<std::string> &only) {
    Options options;
    options.init = files;
    options.initMissing = missing;
    options.exportOnly = only;
    const InitialWeights weights(files);
    return identityOfTraining(distill, options, 1, {}, RunContents::of({}, &weights), "");
  };
  const auto same = [](const RunIdentity &one, const RunIdentity &other) {
    return one.differenceFrom(other, 1).empty();
  };
  const RunIdentity one = identity({{"", a}, {"x.*", t}}, "error", {});
  EXPECT_TRUE(same(one, identity({{"", a}, {"x.*", t}}, "error", {})));
  EXPECT_FALSE(same(one, identity({{"", a}, {"y.*", t}}, "error", {})));
  EXPECT_FALSE(same(one, identity({{"", a}}, "error", {})));
  EXPECT_FALSE(same(one, identity({{"", a}, {"x.*", a}}, "error", {})));
  EXPECT_FALSE(same(one, identity({{"", a}, {"x.*", t}}, "draw", {})));
  EXPECT_FALSE(same(one, identity({{"", a}, {"x.*", t}}, "error", {"x"})));
}

} // namespace
