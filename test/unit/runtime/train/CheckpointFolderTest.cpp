// What a power failure at any moment of a save, or a call that fails, leaves of the checkpoints:
// always valid ones with the right bytes, never a manifest over wrong ones.

#include "runtime/train/CheckpointFolder.h"
#include "base/AtomicFile.h"
#include "base/Error.h"
#include "runtime/job/RunIdentity.h"
#include "runtime/train/Checkpoint.h"
#include "runtime/train/WeightFiles.h"
#include "test/unit/base/PowerLossFileSystem.h"
#include "test/unit/base/TemporaryFile.h"
#include "test/unit/runtime/train/SavedModel.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>

using namespace base;
using namespace fsdp::rt;
namespace fs = std::filesystem;

namespace {

using Fate = PowerLossFileSystem::Fate;

/// States that a power failure may leave: all of few, else the extremes, each change alone or
/// missing, and some at random.
template <class Visit>
void forEachState(const PowerLossFileSystem &system, std::mt19937 &random, Visit visit) {
  const std::size_t count = system.pending();
  constexpr Fate fates[] = {Fate::Lost, Fate::Done, Fate::FirstHalf, Fate::SecondHalf};
  std::vector<Fate> fate(count, Fate::Lost);
  if (count <= 3) {
    for (std::size_t code = 0; code < std::size_t(1) << (2 * count); ++code) {
      for (std::size_t i = 0; i < count; ++i)
        fate[i] = fates[code >> (2 * i) & 3];
      visit(fate);
    }
    return;
  }
  for (Fate rest : {Fate::Lost, Fate::Done}) {
    fate.assign(count, rest);
    visit(fate);
    for (std::size_t i = 0; i < count; ++i) {
      fate[i] = rest == Fate::Lost ? Fate::Done : Fate::Lost;
      visit(fate);
      fate[i] = rest;
    }
  }
  for (int sample = 0; sample < 6; ++sample) {
    for (Fate &one : fate)
      one = fates[random() % 4];
    visit(fate);
  }
}

class CheckpointFolderTest : public testing::Test {
protected:
  ~CheckpointFolderTest() override { fs::remove_all(file.folder); }

  /// Saves steps 1 to 3, keeping two, sets the last aside and saves another one; visits every state
  /// that a power failure may leave on the way. Returns the states, and those with a fault.
  std::pair<int, int> crashEverywhere(PowerLossFileSystem &system) {
    std::mt19937 random(1);
    std::int64_t complete = 0; // the last step whose save had returned
    int states = 0, faults = 0;
    system.crash = [&] {
      if (expectsFaults && faults) // one is enough
        return;
      forEachState(system, random, [&](const std::vector<Fate> &fate) {
        bool bad = false;
        std::int64_t latest = 0;
        for (const auto &[folder, files] : system.left(fate)) {
          const std::optional<std::int64_t> step = stepOfName(folder.substr(folder.rfind('/') + 1));
          if (!step)
            continue;
          if (files.count(CheckpointManifest::kName))
            latest = std::max(latest, *step);
          const std::string fault = faultOf(folder, files);
          bad |= !fault.empty();
          if (!fault.empty() && !expectsFaults)
            ADD_FAILURE() << folder << ": " << fault;
        }
        bad |= latest < complete;
        if (latest < complete && !expectsFaults)
          ADD_FAILURE() << "got step " << latest << ", and that of " << complete << " was complete";
        faults += bad;
        ++states;
      });
    };
    CheckpointRoot root(system, "/saves", program().extraFiles, kSizes);
    root.create();
    for (std::int64_t step : {1, 2, 3}) {
      saveStep(root, layout, step, 2);
      complete = step;
    }
    complete = 2;
    EXPECT_EQ(root.setAside(2), std::vector<std::string>{"/saves/step-00000003.1"});
    saveStep(root, layout, 4, 2);
    complete = 4;
    system.crash = nullptr;
    return {states, faults};
  }

  /// What is wrong with what a crash has left of a step's folder: a manifest over other bytes than
  /// those of its step, or half of a save that --init would take for weights. Empty: nothing.
  std::string faultOf(const std::string &folder, const std::map<std::string, std::string> &files) {
    if (!files.count(CheckpointManifest::kName) &&
        (files.count(CheckpointManifest::kUnfinished) || !files.count("model.safetensors")))
      return ""; // nothing reads it
    std::string key = folder;
    for (const auto &[name, content] : files)
      key += '\0' + name + '\0' + content;
    const auto [known, isNew] = faults.try_emplace(std::hash<std::string>()(key));
    if (isNew) {
      const std::string left = file.folder + "/left";
      writeTree({{folder, files}}, left);
      known->second = files.count(CheckpointManifest::kName)
                          ? fsdp::rt::faultOf(left + folder, layout)
                          : faultOfWeights(left + folder);
      fs::remove_all(left);
    }
    return known->second;
  }

  std::string faultOfWeights(const std::string &folder) {
    try {
      const WeightFiles weights(folder);
      const std::int64_t step = stepOfName(folder.substr(folder.rfind('/') + 1)).value();
      for (const CheckpointTensor &tensor : layout.files()[0].tensors)
        for (std::size_t i = 0; i < tensor.elements; ++i)
          if (reinterpret_cast<const float *>(weights.find(tensor.name)->data)[i] !=
              valueOf(step, "model.safetensors", tensor.name, i))
            return "is half of a save, and --init takes it";
    } catch (const Error &) { // it is refused
    }
    return "";
  }

  std::map<std::size_t, std::string> faults; ///< by what was found
  TemporaryFile file{"x"};
  CheckpointLayout layout{program()};
  bool expectsFaults = false;
};

TEST_F(CheckpointFolderTest, TensorsAreWholeAndInTheOrderOfTheModel) {
  ASSERT_EQ(layout.files().size(), 2u);
  EXPECT_EQ(layout.files()[0].name, "model.safetensors");
  EXPECT_EQ(layout.files()[1].name, "exp_avg.safetensors");
  std::string names;
  for (const CheckpointTensor &tensor : layout.files()[0].tensors)
    names += tensor.name + " ";
  EXPECT_EQ(names, "h.bias cut h.weight whole ");
  EXPECT_EQ(layout.files()[1].tensors.size(), 2u) << "frozen parameters have no moments";
}

TEST_F(CheckpointFolderTest, RanksWriteEveryElementOnce) {
  std::map<std::pair<std::size_t, std::size_t>, std::vector<int>> written;
  for (std::size_t f = 0; f < layout.files().size(); ++f)
    for (std::size_t t = 0; t < layout.files()[f].tensors.size(); ++t)
      written[{f, t}].resize(layout.files()[f].tensors[t].elements);
  for (int data = 0; data < 2; ++data)
    for (int fsdp = 0; fsdp < 2; ++fsdp) {
      const std::vector<ShardShare> shares = layout.sharesOf({data, fsdp});
      EXPECT_FALSE(shares.empty()) << "ranks that hold the same share the work";
      for (const ShardShare &share : shares)
        for (const CheckpointPiece &piece : share.pieces)
          for (std::size_t i = 0; i < piece.count; ++i)
            ++written[{piece.file, piece.tensor}][piece.inTensor + i];
    }
  for (const auto &[tensor, counts] : written)
    for (int count : counts)
      ASSERT_EQ(count, 1) << tensor.first << ", " << tensor.second;
}

TEST_F(CheckpointFolderTest, ChecksumsOfRangesAddUpAndSeeEveryBit) {
  std::vector<float> values(100);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i % 7);
  const std::uint64_t whole = checksum(values.data(), 0, 100);
  EXPECT_EQ(whole, checksum(values.data() + 37, 37, 63) + checksum(values.data(), 0, 37));
  std::swap(values[1], values[2]);
  EXPECT_NE(whole, checksum(values.data(), 0, 100));
  std::swap(values[1], values[2]);
  for (std::size_t bit = 0; bit < 100 * 32; ++bit) {
    auto *bytes = reinterpret_cast<unsigned char *>(values.data());
    bytes[bit / 8] ^= static_cast<unsigned char>(1u << bit % 8);
    ASSERT_NE(whole, checksum(values.data(), 0, 100)) << bit;
    bytes[bit / 8] ^= static_cast<unsigned char>(1u << bit % 8);
  }
}

TEST_F(CheckpointFolderTest, APowerFailureAtAnyMomentLeavesAValidCheckpoint) {
  PowerLossFileSystem system("/");
  const auto [states, faults] = crashEverywhere(system);
  EXPECT_EQ(faults, 0);
  EXPECT_GT(states, 3000);
  std::vector<std::string> names;
  system.list("/saves", names);
  EXPECT_EQ(names, (std::vector<std::string>{"step-00000002", "step-00000003.1", "step-00000004"}));
}

TEST_F(CheckpointFolderTest, PagesOfOneRankAlonePassThePageCacheWhereItCanBePassed) {
  for (const auto &[opens, writes] :
       {std::pair(false, false), std::pair(true, false), std::pair(false, true)}) {
    PowerLossFileSystem system("/");
    system.refusesDirectOpens = opens;
    system.refusesDirectWrites = writes;
    CheckpointRoot root(system, "/saves", program().extraFiles, kSizes);
    root.create();
    saveStep(root, layout, 1, 0);
    if (opens || writes)
      EXPECT_EQ(system.directWrites, 0);
    else
      EXPECT_GE(system.directWrites, 4) << "whole pages of two files and two ranks";
    const std::string left = file.folder + "/left";
    writeTree(system.tree(), left);
    EXPECT_EQ(::faultOf(left + "/saves/step-00000001", layout), "");
    fs::remove_all(left);
  }
}

TEST_F(CheckpointFolderTest, TheModelSeesMissingSyncs) {
  expectsFaults = true;
  PowerLossFileSystem withoutContent("/");
  withoutContent.losesFileSyncs = true;
  EXPECT_GT(crashEverywhere(withoutContent).second, 0);
  PowerLossFileSystem withoutNames("/");
  withoutNames.losesFolderSyncs = true;
  EXPECT_GT(crashEverywhere(withoutNames).second, 0);
}

TEST_F(CheckpointFolderTest, ACallThatFailsLeavesTheLastCheckpoint) {
  int reasons = 0;
  for (int failing = 0;; ++failing) {
    PowerLossFileSystem system("/");
    CheckpointRoot root(system, "/saves", program().extraFiles, kSizes);
    root.create();
    saveStep(root, layout, 1, 2);
    const int before = system.calls;
    system.failingCall = before + failing;
    system.failure = failing % 3 == 0 ? ENOSPC : failing % 3 == 1 ? EACCES : EROFS;
    const std::string message = messageOf([&] { saveStep(root, layout, 2, 2); });
    if (system.calls <= system.failingCall)
      break; // all calls have failed once
    system.failingCall = -1;
    if (message != "no error") {
      EXPECT_NE(message.find("cannot "), message.npos) << message;
      EXPECT_NE(message.find("'/saves"), message.npos) << message;
      EXPECT_NE(message.find(strerror(system.failure)), message.npos) << message;
      EXPECT_NE(message.find("earlier checkpoints in '/saves' are unchanged"), message.npos)
          << message;
      ++reasons;
    }
    root.discard(2);
    for (int saved = 1; saved <= 2; ++saved) {
      const std::string left = file.folder + "/left";
      writeTree(system.tree(), left);
      const std::vector<SavedStep> steps = checkpointsAt(left + "/saves");
      ASSERT_FALSE(steps.empty()) << message;
      EXPECT_EQ(steps.back().step, 1) << message;
      for (const SavedStep &step : steps)
        EXPECT_EQ(::faultOf(step.folder, layout), "") << message;
      if (saved == 2)
        EXPECT_EQ(steps.front().step, 3) << "the next save works";
      fs::remove_all(left);
      if (saved == 1)
        saveStep(root, layout, 3, 3);
    }
  }
  EXPECT_GT(reasons, 50);
}

TEST_F(CheckpointFolderTest, UnfinishedSavesDoNotPileUp) {
  PowerLossFileSystem system("/");
  CheckpointRoot root(system, "/saves", {}, kSizes);
  root.create();
  root.begin(1, layout);
  root.begin(2, layout);
  saveStep(root, layout, 3, 0);
  std::vector<std::string> names;
  system.list("/saves", names);
  EXPECT_EQ(names, std::vector<std::string>{"step-00000003"});
}

TEST_F(CheckpointFolderTest, TheNextSaveCompletesAnInterruptedRemoval) {
  for (int failing = 0;; ++failing) {
    PowerLossFileSystem system("/");
    CheckpointRoot root(system, "/saves", {}, kSizes);
    root.create();
    saveStep(root, layout, 1, 0);
    saveStep(root, layout, 2, 0);
    system.failingCall = system.calls + failing;
    system.failure = EIO;
    const std::string message = messageOf([&] { root.prune(2, 1); });
    if (message == "no error") {
      EXPECT_GT(failing, 8);
      break;
    }
    saveStep(root, layout, 3, 1);
    std::vector<std::string> names;
    system.list("/saves", names);
    EXPECT_EQ(names, std::vector<std::string>{"step-00000003"}) << message;
  }
}

TEST_F(CheckpointFolderTest, ACheckpointThatHoldsAFolderStaysWhole) {
  PowerLossFileSystem system("/");
  CheckpointRoot root(system, "/saves", {}, kSizes);
  root.create();
  for (int step : {1, 2, 3})
    saveStep(root, layout, step, 0);
  ASSERT_EQ(system.makeFolder("/saves/step-00000002/notes"), 0);
  EXPECT_EQ(
      messageOf([&] { root.prune(3, 1); }),
      "cannot remove '/saves/step-00000002': it holds the folder 'notes', which is not part of a "
      "checkpoint; it was not changed: move its contents elsewhere");
  std::vector<std::string> steps;
  for (const SavedStep &saved : root.saved())
    steps.push_back(saved.folder);
  EXPECT_EQ(steps, (std::vector<std::string>{"/saves/step-00000003",
                                             "/saves/step-00000002"})); // 1 is gone
}

TEST_F(CheckpointFolderTest, ChangesAreNamed) {
  PowerLossFileSystem system("/");
  CheckpointRoot root(system, "/saves", program().extraFiles, kSizes);
  root.create();
  saveStep(root, layout, 1, 0);
  const std::string left = file.folder + "/left", folder = left + "/saves/step-00000001";
  const auto after = [&](const char *name, const std::function<void(std::string &)> &change) {
    fs::remove_all(left);
    writeTree(system.tree(), left);
    std::ifstream in(folder + "/" + name, std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(in), {});
    change(bytes);
    std::ofstream(folder + "/" + name, std::ios::binary) << bytes;
    return ::faultOf(folder, layout);
  };
  EXPECT_EQ(after("model.safetensors", [](std::string &) {}), "");
  const auto contains = [](const std::string &text, const std::string &part) {
    EXPECT_NE(text.find(part), text.npos) << text;
  };
  contains(after("exp_avg.safetensors", [](std::string &bytes) { bytes.pop_back(); }),
           "exp_avg.safetensors': got 48195 bytes, expected 48196 as in the manifest beside it");
  contains(after("model.safetensors", [](std::string &bytes) { bytes.back() ^= 1; }),
           "the bytes of tensor 'whole' have been altered since they were written: got checksum ");
  contains(
      after("model.safetensors", [](std::string &bytes) { bytes[bytes.find("whole") + 1] ^= 1; }),
      "its header has been altered since it was written");
  contains(after("manifest.json",
                 [](std::string &bytes) { bytes[bytes.find("\"step\": 1") + 8] = '2'; }),
           "manifest.json' has been altered since it was written: got checksum ");
  contains(after("manifest.json", [](std::string &bytes) { bytes.resize(bytes.size() / 2); }),
           "is not the manifest of a checkpoint: it is not a JSON object");
  fs::remove_all(left);
  writeTree(system.tree(), left);
  fs::remove(folder + "/model.safetensors");
  contains(::faultOf(folder, layout), "cannot open '");
}

TEST_F(CheckpointFolderTest, EveryFlippedBitOfAManifestIsSeen) {
  CheckpointManifest manifest;
  manifest.step = 12;
  manifest.baseLearningRate = 0.1f;
  manifest.files = CheckpointManifest::filesOf(layout);
  const std::string text = manifest.text();
  const auto parse = [](const std::string &bytes) {
    return CheckpointManifest::parse(bytes.data(), bytes.data() + bytes.size(), "m");
  };
  EXPECT_EQ(parse(text).text(), text);
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_THROW(parse(flipped), Error) << "bit " << bit;
  }
  for (const std::string &blanks : {text + "\n", " " + text, text.substr(0, text.size() - 1)})
    EXPECT_NE(messageOf([&] { parse(blanks); })
                  .find("'m' has been altered since it was written: got " +
                        std::to_string(blanks.size()) + " bytes, expected the " +
                        std::to_string(text.size()) + " that its fields"),
              std::string::npos);
}

TEST_F(CheckpointFolderTest, OtherModelsAreRefused) {
  PowerLossFileSystem system("/");
  CheckpointRoot root(system, "/saves", program().extraFiles, kSizes);
  root.create();
  saveStep(root, layout, 1, 0);
  const std::string left = file.folder + "/left", folder = left + "/saves/step-00000001";
  writeTree(system.tree(), left);
  Program smaller = program();
  smaller.storages = Table<Storage>(storages, 2);
  EXPECT_EQ(
      messageOf([&] { Checkpoint(folder, CheckpointLayout(smaller)); }),
      "'" + folder +
          "/model.safetensors': got 4 parameters, expected 3 as this program has: resume with "
          "the model that wrote it, or start from its weights with --init");
  static constexpr Parameter others[] = {
      {"other", nullptr, {2100}, {2100}, 0, Initializer::zeros(), true, 3}};
  static constexpr Storage otherStorages[] = {
      {"other", Layout::Replicated, {}, -1, 0, 2100, 0, kWhole, {}, others}};
  Program other = program();
  other.storages = otherStorages;
  EXPECT_EQ(
      messageOf([&] { Checkpoint(folder, CheckpointLayout(other)); }),
      "'" + folder +
          "/model.safetensors': got no tensor 'other', expected one for every parameter: resume "
          "with the model that wrote it, or start from its weights with --init");
}

TEST_F(CheckpointFolderTest, FilesThatTheModelPutsThereAreChecked) {
  CheckpointManifest manifest;
  manifest.extraFiles = CheckpointManifest::extrasOf(BesideFiles(extras));
  const std::string text = manifest.text(), folder = file.folder + "/step",
                    path = folder + "/config.json";
  manifest = CheckpointManifest::parse(text.data(), text.data() + text.size(), "m");
  fs::create_directory(folder);
  const auto write = [&](const std::string &content) { std::ofstream(path) << content; };
  write(extras[0].text);
  EXPECT_TRUE(alteredExtras(folder, manifest).empty());
  write("{\"of\": \"the Model\"}\n"); // as long
  ASSERT_EQ(alteredExtras(folder, manifest).size(), 1u);
  EXPECT_EQ(alteredExtras(folder, manifest)[0].find(
                "'" + path + "' has been altered since it was written: got 20 bytes, digest "),
            0u)
      << alteredExtras(folder, manifest)[0];
  fs::remove(path);
  ASSERT_EQ(alteredExtras(folder, manifest).size(), 1u);
  EXPECT_NE(alteredExtras(folder, manifest)[0].find("config.json"), std::string::npos);
}

TEST_F(CheckpointFolderTest, ContradictoryManifestsAreRefused) {
  using Json = nlohmann::ordered_json;
  CheckpointManifest manifest;
  manifest.files = CheckpointManifest::filesOf(layout);
  const auto after = [&](const std::function<void(Json &)> &change) {
    Json json = Json::parse(manifest.text());
    json.erase("checksum");
    change(json);
    json["checksum"] = digestText(contentDigest(json.dump()));
    const std::string text = json.dump(1) + "\n";
    return messageOf(
        [&] { CheckpointManifest::parse(text.data(), text.data() + text.size(), "m"); });
  };
  EXPECT_EQ(after([](Json &) {}), "no error");
  const std::string start = "'m' is not the manifest of a checkpoint: ";
  EXPECT_EQ(after([](Json &json) { json.erase("step"); }), start + "it has no 'step'");
  EXPECT_EQ(after([](Json &json) { json["step"] = -1; }),
            start + "got 'step' -1, expected a whole number from 0 to 9223372036854775807");
  EXPECT_EQ(after([](Json &json) { json["bad_steps"] = 1e3; }),
            start + "got 'bad_steps' 1000.0, expected a whole number from 0 to 2147483647");
  EXPECT_EQ(after([](Json &json) { json["shuffle"] = 1; }),
            start + "got 'shuffle' 1, expected true or false");
  EXPECT_EQ(after([](Json &json) { json["mesh"] = 1; }), start + "got 'mesh' 1, expected a text");
  EXPECT_EQ(after([](Json &json) { json["base_learning_rate"] = "1"; }),
            start + "got 'base_learning_rate' \"1\", expected a finite number");
  EXPECT_EQ(after([](Json &json) { json["format"] = "other"; }),
            start + "got format 'other', expected 'fsdpc checkpoint'");
  EXPECT_EQ(after([](Json &json) { json["version"] = 2; }),
            "'m': got version 2, expected 1: use the fsdpc that wrote it");
  EXPECT_EQ(after([](Json &json) { json["files"] = 1; }), start + "got 'files' that is not a list");
  EXPECT_EQ(after([](Json &json) { json["files"][0] = 1; }),
            start + "got a file that is not an object");
  EXPECT_EQ(after([](Json &json) { json["files"][1]["name"] = "../model.safetensors"; }),
            start + "got a file '../model.safetensors', expected one beside it");
  EXPECT_EQ(after([](Json &json) { json["files"][1] = json["files"][0]; }),
            start + "it names 'model.safetensors' twice");
  EXPECT_EQ(after([](Json &json) { json["files"][0]["header"] = "12"; }),
            start + "got 'header' \"12\", expected 16 hexadecimal digits");
  EXPECT_EQ(after([](Json &json) { json["files"][0]["tensors"] = 1; }),
            start + "got 'tensors' of 'model.safetensors' that is not an object");
  EXPECT_EQ(after([](Json &json) { json["extra_files"] = 1; }),
            start + "got 'extra_files' that is not a list");
  EXPECT_EQ(after([](Json &json) { json["runs"] = 1; }), start + "got 'runs' that is not a list");
  EXPECT_EQ(after([](Json &json) { json["model_digest"] = 1; }),
            start + "got 'model_digest' 1, expected a text");
  manifest.schedule = ScheduleOptions{Schedule::Wsd, 3, 0.01f, 0.25f};
  manifest.scheduleSteps = 9;
  manifest.updateRule = "adamw";
  manifest.constants = {{"beta1", 0.9f}, {"clip", 0.1f}};
  manifest.groups.rateScales = {{"wte.*", 0.1}, {"h.*", 2}};
  manifest.groups.noDecay.emplace();
  const std::string text = manifest.text();
  const CheckpointManifest read =
      CheckpointManifest::parse(text.data(), text.data() + text.size(), "m");
  EXPECT_EQ(read.groups.over({}).rateScaleTexts(),
            (std::vector<std::string>{"wte.*=0.1", "h.*=2"}));
  EXPECT_TRUE(read.groups.noDecay && read.groups.noDecay->empty()) << "none is not unknown";
  for (const char *field : {"lr_scale", "no_decay"}) {
    EXPECT_EQ(after([&](Json &json) { json.erase(field); }), "no error")
        << "of before there was the field";
    for (const Json &wrong : {Json("a"), Json{{"a", "b"}}, Json{1}})
      EXPECT_EQ(after([&](Json &json) { json[field] = wrong; }),
                start + "got '" + field + "' " + wrong.dump() + ", expected a list of texts");
  }
  EXPECT_EQ(after([](Json &json) { json["lr_scale"] = {"wte.*"}; }),
            start + "got 'lr_scale': got 'wte.*', expected PATTERN=X, X a finite f32 number >= 0");
  EXPECT_EQ(read.schedule->kind, Schedule::Wsd);
  EXPECT_EQ(read.schedule->warmup, 3);
  EXPECT_EQ(read.schedule->minimum, 0.01f);
  EXPECT_EQ(read.schedule->decayShare, 0.25f);
  EXPECT_EQ(read.scheduleSteps, 9);
  EXPECT_EQ(read.updateRule, "adamw");
  ASSERT_EQ(read.constants.size(), 2u);
  EXPECT_EQ(read.constants[0].name, "beta1");
  EXPECT_EQ(read.constants[1].value, 0.1f);
  EXPECT_EQ(after([](Json &json) { json.erase("optimizer"); }), "no error")
      << "of before there was the field";
  for (const Json &wrong : {Json(1), Json{{"rule", "sgd"}}, Json{{"constants", 1}}})
    EXPECT_EQ(after([&](Json &json) { json["optimizer"] = wrong; }),
              start + "got 'optimizer' that is not an object with constants");
  EXPECT_EQ(after([](Json &json) { json["optimizer"]["constants"]["beta1"] = -1; }),
            start + "got 'beta1' -1, expected at least 0");
  EXPECT_EQ(after([](Json &json) { json["optimizer"]["constants"]["beta1"] = "a"; }),
            start + "got 'beta1' \"a\", expected a finite number");
  EXPECT_FALSE(Json::parse(text).contains("products")) << "of a run that measured none";
  manifest.products = {"a GPU", {{"8 x 8 x 8", 3}}};
  EXPECT_FALSE(Json::parse(text).contains("history")) << "of step 0";
  manifest.losses = {2.5f, 0.1f, 1e-20f};
  manifest.gradNorms = {1, 1.0f / 3, 3e38f};
  const std::string later = manifest.text();
  EXPECT_EQ(Json::parse(later)["history"]["loss"], "2.5 0.1 1e-20");
  const CheckpointManifest again =
      CheckpointManifest::parse(later.data(), later.data() + later.size(), "m");
  EXPECT_EQ(again.products.machine, "a GPU");
  EXPECT_EQ(again.products.algorithms, manifest.products.algorithms);
  EXPECT_EQ(after([](Json &json) { json["products"] = 1; }),
            start + "got 'products' that is not an object with algorithms");
  EXPECT_EQ(after([](Json &json) { json["products"]["algorithms"]["8 x 8 x 8"] = -1; }),
            start + "got '8 x 8 x 8' -1, expected a whole number from 0 to 2147483647");
  EXPECT_EQ(again.losses, manifest.losses);
  EXPECT_EQ(again.gradNorms, manifest.gradNorms);
  EXPECT_EQ(after([](Json &json) { json.erase("history"); }), "no error")
      << "of before there was the field";
  EXPECT_EQ(after([](Json &json) { json["history"] = 1; }),
            start + "got 'history' that is not an object");
  for (const char *wrong : {"2.5 a 1", "inf 1 2", "1 2 ", "1,2 3 4", " 1 2 3"})
    EXPECT_EQ(after([&](Json &json) { json["history"]["loss"] = wrong; }),
              start + "got 'loss' \"" + wrong + "\", expected finite numbers");
  EXPECT_EQ(after([](Json &json) { json["history"]["loss"] = "1 2"; }),
            start + "got 2 losses and 3 norms in 'history', expected as many");
  EXPECT_EQ(after([](Json &json) { json.erase("schedule"); }), "no error")
      << "of before there was the field";
  EXPECT_EQ(after([](Json &json) { json["schedule"] = 1; }),
            start + "got 'schedule' that is not an object");
  EXPECT_EQ(after([](Json &json) { json["schedule"]["kind"] = "stairs"; }),
            start + "got the schedule 'stairs', which this version does not support");
  EXPECT_EQ(after([](Json &json) { json["schedule"]["min_lr"] = -1; }),
            start + "got 'min_lr' -1, expected at least 0");
  EXPECT_EQ(after([](Json &json) { json["schedule"]["decay_share"] = 1; }),
            start + "got 'decay_share' 1, expected a number in [0, 1)");
  EXPECT_EQ(after([](Json &json) { json["extra_files"] = {1}; }),
            start + "got an extra file that is not an object");
  EXPECT_EQ(after([](Json &json) { json.erase("extra_files"); }), "no error")
      << "of before there was the field";
  std::string deep(20, '[');
  EXPECT_EQ(
      messageOf([&] { CheckpointManifest::parse(deep.data(), deep.data() + deep.size(), "m"); }),
      start + "it is nested deeper than 8 levels");
}

TEST_F(CheckpointFolderTest, AnExportIsOldOrNewAfterAPowerFailure) {
  PowerLossFileSystem system(file.folder);
  std::mt19937 random(2);
  int states = 0;
  std::set<std::string> allowed = {"", "old bytes"}; // "": no file
  system.crash = [&] {
    forEachState(system, random, [&](const std::vector<Fate> &fate) {
      const PowerLossFileSystem::Tree left = system.left(fate);
      const auto found = left.at("").find("out");
      EXPECT_EQ(allowed.count(found == left.at("").end() ? "" : found->second), 1u);
      ++states;
    });
  };
  for (const char *text : {"old bytes", "newer bytes"}) {
    AtomicFile out(file.folder + "/out", system);
    out.write(text, 5);
    out.write(text + 5, std::strlen(text) - 5);
    out.commit();
    allowed = {text, "newer bytes"};
  }
  system.crash();
  EXPECT_GT(states, 20);
}

} // namespace
