//===- FileMutationTest.cpp - no file brings a program down ---------------===//
//
// Weights, indices, data sets and token files are changed at random, and read by what generated programs
// and fsdp-run read them with. Each is taken or refused with a message, in bounded time and memory;
// and what fsdp-run takes as parameters, the program takes too.
//
//===----------------------------------------------------------------------===//

#include "interpreter/Safetensors.h"
#include "mlir/IR/MLIRContext.h"
#include "runtime/data/Dataset.h"
#include "runtime/Error.h"
#include "runtime/train/Weights.h"
#include "test/mutation/Batches.h"
#include "test/mutation/Seeds.h"
#include "test/mutation/TextMutator.h"
#include "test/unit/runtime/TemporaryFile.h"

#include <cmath>
#include <filesystem>
#include <gtest/gtest.h>
#include <limits>

using namespace fsdp::rt;
using namespace fsdp::mutation;

namespace {

constexpr Parameter kMembers[] = {
    {"table", nullptr, {2, 3}, {2, 3}, 0, Initializer::zeros(), true},
    {"bias", nullptr, {3}, {3}, 6, Initializer::zeros(), false}};
constexpr MeshAxis kAxes[] = {{"fsdp", 2}};
constexpr Storage kStorages[] = {
    {"unit", Layout::Flat, {0}, 0, 0, 9, 0, ArenaSpan<float>{0, 5}, {}, kMembers}};
constexpr Input kTensors[] = {
    {"x", {2}, 0, ArenaSpan<float>{0, 6}, 4, 3, {0}, 0},
    {"label", {}, 0, ArenaSpan<std::int32_t>{64, 3}, 4, 3, {0}, 3},
};
constexpr Input kTokens[] = {
    {"tokens", {4}, 0, ArenaSpan<std::int32_t>{0, 8}, 2, 2, {}, 61, Source::Tokens},
    {"targets", {4}, 0, ArenaSpan<std::int32_t>{64, 8}, 2, 2, {}, 61, Source::Targets},
};

enum Kind { kWeights, kIndex, kData, kTokenFile, kKinds };
enum Counter { kTaken, kRefused };

std::string floats(int count, std::mt19937 &random) {
  std::vector<float> values(count);
  for (float &value : values)
    value = static_cast<float>(random() % 64) / 16;
  if (random() % 8 == 0)
    values[random() % values.size()] = random() % 2 ? std::numeric_limits<float>::quiet_NaN()
                                                    : std::numeric_limits<float>::infinity();
  return {reinterpret_cast<const char *>(values.data()), values.size() * 4};
}

/// The header and the data of a right file.
std::pair<std::string, std::string> makeRight(Kind kind, std::mt19937 &random) {
  switch (kind) {
  case kWeights:
    return {R"({"table": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, )"
            R"("bias": {"dtype": "F32", "shape": [3], "data_offsets": [24, 36]}, )"
            R"("__metadata__": {"format": "pt"}})",
            floats(9, random)};
  case kIndex:
    return {R"({"metadata": {"total_size": 36}, "weight_map": {"table": "part.safetensors", )"
            R"("bias": "part.safetensors"}})",
            ""};
  case kData:
    return {R"({"x": {"dtype": "F32", "shape": [5, 2], "data_offsets": [0, 40]}, )"
            R"("label": {"dtype": "I64", "shape": [5], "data_offsets": [40, 80]}})",
            floats(10, random) + bytesOf<std::int64_t>({0, 1, 2, 0, 1})};
  default: {
    std::vector<std::int32_t> header(256);
    header[0] = 20240520;
    header[1] = 1;
    header[2] = 20;
    std::string tokens;
    for (int i = 0; i < 20; ++i)
      tokens += bytesOf<std::uint16_t>({static_cast<std::uint16_t>(random() % 61)});
    return {std::string(reinterpret_cast<const char *>(header.data()), 1024), tokens};
  }
  }
}

/// Changes some bytes, or the length.
void mutateBytes(std::string &bytes, std::mt19937 &random) {
  auto draw = [&](size_t below) { return random() % below; };
  for (int changes = 1 + static_cast<int>(draw(3)); changes > 0 && !bytes.empty(); --changes)
    switch (draw(6)) {
    case 0:
      bytes[draw(bytes.size())] ^= static_cast<char>(1 << draw(8));
      break;
    case 1:
      bytes[draw(std::min<size_t>(bytes.size(), 16))] = static_cast<char>(draw(256));
      break;
    case 2:
      bytes.resize(draw(bytes.size() + 1));
      break;
    case 3:
      bytes += std::string(1 + draw(40), static_cast<char>(draw(256)));
      break;
    case 4: {
      size_t begin = draw(bytes.size());
      bytes.insert(draw(bytes.size()), bytes.substr(begin, draw(16)));
      break;
    }
    default:
      bytes.erase(draw(bytes.size()), 1 + draw(8));
    }
}

std::string makeMutant(Kind kind, std::mt19937 &random) {
  auto [header, data] = makeRight(kind, random);
  bool isText = kind != kTokenFile;
  switch (random() % 8) {
  case 0:
    break; // its own values only
  case 1:
  case 2:
    if (isText && random() % 8 == 0) { // nothing but depth
      size_t depth = 1 + random() % 2'000'000;
      header.insert(header.size() - 1, ", \"deep\": " + std::string(depth, "[{\""[random() % 3]));
    }
    mutateBytes(header, random);
    break;
  case 3:
    mutateBytes(data, random);
    break;
  default:
    if (isText)
      header = mutateText(header, header, random);
    else
      mutateBytes(header, random);
  }
  std::string bytes = kind == kWeights || kind == kData ? safetensors(header, data) : header + data;
  if (random() % 8 == 0)
    mutateBytes(bytes, random);
  return bytes;
}

/// Takes the file as a generated program does; its words where it refuses, "" where it takes it.
std::string readByProgram(Kind kind, const std::string &path) {
  Program program{};
  program.storages = kStorages;
  try {
    if (kind == kWeights || kind == kIndex) {
      WeightFiles weights(path);
      checkWeights(weights, program);
      for (int rank = 0; rank < 2; ++rank) {
        float shard[5];
        loadShard(weights, kStorages[0], {kAxes, {rank}}, shard);
      }
      return "";
    }
    Table<Input> inputs = kind == kData ? Table<Input>(kTensors) : Table<Input>(kTokens);
    auto data = openDataset(path, inputs);
    std::vector<char> room(64);
    for (std::int64_t sample = 0; sample < std::min<std::int64_t>(data->samples(), 1000); ++sample)
      for (size_t input = 0; input < 2; ++input)
        data->read(input, sample, room.data());
    return "";
  } catch (const Error &error) {
    return *error.what() ? error.what() : "(without a word)";
  }
}

/// True where fsdp-run would take the file as parameters.
bool isTakenByInterpreter(const std::string &path, mlir::MLIRContext &context) {
  auto file = mlir::fsdp::interpreter::readSafetensors(path, &context);
  if (!file) {
    llvm::consumeError(file.takeError());
    return false;
  }
  for (const Parameter &parameter : kMembers) {
    auto found = file->find(parameter.name);
    if (found == file->end() || !found->second.isFloat())
      return false;
    auto shape = found->second.getType().getShape();
    if (!std::equal(shape.begin(), shape.end(), parameter.fileShape.begin(),
                    parameter.fileShape.end()))
      return false;
    for (int64_t i = 0; i < found->second.size(); ++i)
      if (!std::isfinite(found->second.getFloat(i)))
        return false;
  }
  return true;
}

TEST(FileMutationTest, ProgramsTakeOrRefuseEveryFile) {
  constexpr int64_t kMutants = 6000;
  Limits limits;
  limits.bytes = int64_t(2) << 30;
  mlir::MLIRContext context;
  Outcome outcome = runBatches(
      getNumMutants(kMutants), limits, [&](int64_t number, int64_t *counters) -> std::string {
        std::mt19937 random = randomFor(number);
        Kind kind = static_cast<Kind>(random() % kKinds);
        TemporaryFile file(kind == kIndex       ? "model.safetensors.index.json"
                           : kind == kTokenFile ? "tokens.bin"
                                                : "file.safetensors");
        file.write(makeMutant(kind, random));
        std::string part = file.folder + "/part.safetensors";
        if (kind == kIndex) {
          auto [header, data] = makeRight(kWeights, random);
          std::ofstream(part, std::ios::binary) << safetensors(header, data);
        }
        std::string words = readByProgram(kind, file.path);
        ++counters[words.empty() ? kTaken : kRefused];
        bool taken = kind == kWeights && isTakenByInterpreter(file.path, context);
        unlink(part.c_str());
        return taken && !words.empty() ? "fsdp-run takes what the program refuses: " + words : "";
      });
  std::printf("%lld mutants: %lld taken, %lld refused\n",
              static_cast<long long>(getNumMutants(kMutants)),
              static_cast<long long>(outcome.counters[kTaken]),
              static_cast<long long>(outcome.counters[kRefused]));
  for (const auto &[number, what] : outcome.findings)
    ADD_FAILURE() << "mutant " << number << " " << what;
}

} // namespace
