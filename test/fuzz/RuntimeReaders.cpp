//===- RuntimeReaders.cpp - the readers of generated programs -------------===//

#include "base/Error.h"
#include "base/OptionsFile.h"
#include "runtime/job/RunIdentity.h"
#include "runtime/train/CheckpointManifest.h"
#include "runtime/train/CommandLine.h"
#include "test/fuzz/Readers.h"
#include "test/mutation/FileReaders.h"
#include "test/unit/base/TemporaryFile.h"

#include <cmath>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unistd.h>

using namespace base;
using namespace fsdp::rt;
using namespace fsdp::mutation;

namespace fsdp::fuzz {

namespace {

Outcome readFile(FileKind kind, const std::string &bytes) {
  static const char *const memory =
      access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"; // a file for every input
  const TemporaryFile file(fileName(kind), memory);
  file.write(bytes);
  const std::string part = file.folder + "/part.safetensors";
  if (kind == kIndex) {
    std::mt19937 random(1);
    const std::string zeros(36, '\0'); // 9 floats
    std::ofstream(part, std::ios::binary)
        << joinFile(kWeights, makeRight(kWeights, random).first, zeros);
  }
  const std::string words = readByProgram(kind, file.path);
  unlink(part.c_str());
  if (words == "(without a word)")
    return {false, "refused without a message"};
  return {words.empty(), ""};
}

template <FileKind kind> std::string rightFile(std::mt19937 &random) {
  const auto [header, data] = makeRight(kind, random);
  return joinFile(kind, header, data);
}

std::string rightManifest(std::mt19937 &random) {
  CheckpointManifest manifest;
  manifest.model = "mlp";
  manifest.fingerprint = "0123456789abcdef";
  manifest.mesh = "fsdp=2";
  manifest.step = random() % 1000;
  manifest.totalSteps = 1000;
  manifest.updates = manifest.step;
  manifest.seed = random();
  manifest.baseLearningRate = 0.01f;
  manifest.shuffle = random() % 2;
  if (random() % 2) {
    manifest.updateRule = "adamw";
    manifest.constants = {{"beta1", 0.9f}, {"clip", 1}};
  }
  if (random() % 2)
    manifest.sources = {{"web/*.bin", {}, 0.7, 12},
                        {"code.bin", {}, 0.3, std::int64_t(random() % 100)}};
  manifest.files = {{"model.safetensors", 1024, random(), {{"a", random()}, {"b", random()}}},
                    {"exp_avg.safetensors", 96, 7, {}}};
  return manifest.text();
}

/// A manifest that is read and written again is unchanged.
Outcome readManifestText(const std::string &bytes) {
  CheckpointManifest manifest;
  try {
    manifest =
        CheckpointManifest::parse(bytes.data(), bytes.data() + bytes.size(), "manifest.json");
  } catch (const Error &error) {
    return {false, *error.what() ? "" : "refused without a message"};
  }
  const std::string text = manifest.text();
  try {
    if (CheckpointManifest::parse(text.data(), text.data() + text.size(), "manifest.json").text() !=
        text)
      return {true, "reads as another manifest when it is written again: " + text};
  } catch (const Error &error) {
    return {true, std::string("is refused when it is written again: ") + error.what()};
  }
  if (manifest.step < 0 || manifest.totalSteps < 0 || manifest.updates < 0 ||
      manifest.samples < 0 || manifest.badSteps < 0 || !std::isfinite(manifest.baseLearningRate))
    return {true, "takes a number that is none: " + text};
  return {true, ""};
}

/// While one lives, standard output and error go nowhere: command lines are refused in words, many
/// times.
class Silence {
public:
  Silence() : kept_{dup(1), dup(2)} {
    std::fflush(nullptr);
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, 1);
    dup2(nowhere, 2);
    close(nowhere);
  }
  ~Silence() {
    std::fflush(nullptr);
    for (int i : {0, 1}) {
      dup2(kept_[i], i + 1);
      close(kept_[i]);
    }
  }

private:
  int kept_[2];
};

/// A program with everything that options may ask for.
struct Compiled {
  Compiled() {
    program.name = "mlp";
    program.report = "";
    program.communicator = "auto";
    program.inputs = inputs;
    program.evaluate.runs = runs;
  }
  Input inputs[1] = {{"x", {2}, 0, ArenaSpan<float>{0, 6}, 4, 3, {0}, 0}};
  SegmentRuns runs[1] = {{0, 1}};
  Program program{};
};

std::string rightProgramOptions(std::mt19937 &random) {
  const char *const options[] = {"--epochs=2.5",
                                 "--init=w.safetensors",
                                 "--export\nout",
                                 "--seed=18446744073709551615",
                                 "--lr=1e-3",
                                 "--val-data=v",
                                 "--eval-every=3",
                                 "--shuffle",
                                 "--log=a.jsonl\n--log-data",
                                 "--data=web/*.bin:0.7\ncode.bin:0.3",
                                 "--log-header",
                                 "--save\nroot",
                                 "--save-every=5",
                                 "--keep\n2",
                                 "--save-async",
                                 "--save-errors=warn",
                                 "--resume=latest",
                                 "--start-over",
                                 "--max-restarts=3",
                                 "--trace=t.json",
                                 "--report",
                                 "--communicator=tcp",
                                 "--timeout=2.5",
                                 "--flight-record=none",
                                 "--trust-network",
                                 "--help",
                                 "--version"};
  std::string text = "--data=file\n--steps=12";
  for (std::size_t count = random() % 5; count > 0; --count)
    text += std::string("\n") + options[random() % std::size(options)];
  return text;
}

} // namespace

Outcome readWeights(const std::string &bytes) { return readFile(kWeights, bytes); }
Outcome readIndex(const std::string &bytes) { return readFile(kIndex, bytes); }
Outcome readSamples(const std::string &bytes) { return readFile(kData, bytes); }
Outcome readTokens(const std::string &bytes) { return readFile(kTokenFile, bytes); }

Outcome readManifest(const std::string &bytes) {
  const Outcome raw = readManifestText(bytes);
  if (raw.taken || !raw.complaint.empty() || bytes.size() > 100000)
    return raw;
  using Json = nlohmann::ordered_json;
  Json json = Json::parse(bytes, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("checksum"))
    return raw;
  json.erase("checksum");
  json["checksum"] =
      digestText(contentDigest(json.dump(-1, ' ', false, Json::error_handler_t::replace)));
  return readManifestText(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Outcome readProgramOptions(const std::string &bytes) {
  static const Compiled compiled;
  std::vector<std::string> words{"mlp"};
  std::istringstream lines(bytes);
  for (std::string line; std::getline(lines, line) && words.size() < 100;)
    words.push_back(line.c_str()); // up to its first zero byte, as the system gives it
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  Options options;
  std::optional<int> status;
  {
    const Silence silence;
    const Program *const plans[] = {&compiled.program};
    status = parseCommandLine(plans, static_cast<int>(arguments.size()), arguments.data(), options);
  }
  if (status)
    return {false, *status == kExitDone || *status == kExitBadCommandLine
                       ? ""
                       : "ends with status " + std::to_string(*status)};
  if (options.report && options.data.empty())
    return {true, ""};
  if (options.data.empty() || options.steps.has_value() == options.epochs.has_value() ||
      options.steps.value_or(1) < 1 || !(options.epochs.value_or(1) > 0) ||
      !std::isfinite(options.epochs.value_or(1)) || !(options.timeout.value_or(1) > 0) ||
      !std::isfinite(options.learningRate.value_or(0)) || options.saveEvery < 0 ||
      options.keep < 0 || options.maxRestarts < 0 || options.evalEvery < 0 ||
      (options.keep && options.save.empty()) ||
      (options.saveErrors != "stop" && options.saveErrors != "warn") ||
      (!options.exportOnly.empty() && options.exportTo.empty()) ||
      (!options.resume.empty() && !options.init.empty()))
    return {true, "takes a command line that makes no sense"};
  return {true, ""};
}

Outcome readOptionsFile(const std::string &bytes) {
  try {
    for (const base::FileOption &option : base::readOptionsFile(bytes, "file"))
      if ((option.kind == base::FileOption::Text) != (option.values.size() == 1) &&
          option.kind != base::FileOption::List)
        return {true, "takes a key without its value"};
    return {true, ""};
  } catch (const base::OptionsFileError &error) {
    return {false, *error.what() ? "" : "refused without a message"};
  }
}

static std::string rightOptionsFile(std::mt19937 &random) {
  static const char *const lines[] = {"steps = 1_000\n", "lr = 1e-3 # rate\n",
                                      "data = [\"a#b\", 'c', 3]\n", "shuffle = true\n",
                                      "log = \"\\u00e9\\\\\"\n"};
  std::string text;
  for (const char *line : lines)
    text += random() % 3 ? line : "";
  return text;
}

const std::vector<Reader> runtimeReaders = {
    {"weights", readWeights, rightFile<kWeights>, false},
    {"index", readIndex, rightFile<kIndex>, true},
    {"samples", readSamples, rightFile<kData>, false},
    {"tokens", readTokens, rightFile<kTokenFile>, false},
    {"manifest", readManifest, rightManifest, true},
    {"tokenizer", readTokenizer, rightTokenizer, true},
    {"options-file", readOptionsFile, rightOptionsFile, true},
    {"program-options", readProgramOptions, rightProgramOptions, true},
};

} // namespace fsdp::fuzz
