//===- FileReaders.cpp ----------------------------------------------------===//

#include "test/mutation/FileReaders.h"

#include "base/Error.h"
#include "runtime/data/OpenDataset.h"
#include "runtime/train/InitialWeights.h"
#include "test/unit/base/TemporaryFile.h"

#include <algorithm>
#include <limits>

namespace fsdp::mutation {

using namespace base;
using namespace fsdp::rt;

namespace {

constexpr Parameter kMembers[] = {{"table", nullptr, {2, 3}, {2, 3}, 0, Initializer::zeros(), true},
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

std::string floats(int count, std::mt19937 &random) {
  std::vector<float> values(count);
  for (float &value : values)
    value = static_cast<float>(random() % 64) / 16;
  if (random() % 8 == 0)
    values[random() % values.size()] = random() % 2 ? std::numeric_limits<float>::quiet_NaN()
                                                    : std::numeric_limits<float>::infinity();
  return {reinterpret_cast<const char *>(values.data()), values.size() * 4};
}

} // namespace

const Table<Parameter> parametersRead(kMembers);

std::pair<std::string, std::string> makeRight(FileKind kind, std::mt19937 &random) {
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

std::string joinFile(FileKind kind, const std::string &header, const std::string &data) {
  return kind == kWeights || kind == kData ? safetensors(header, data) : header + data;
}

const char *fileName(FileKind kind) {
  return kind == kIndex       ? "model.safetensors.index.json"
         : kind == kTokenFile ? "tokens.bin"
                              : "file.safetensors";
}

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

std::string readByProgram(FileKind kind, const std::string &path) {
  Program program{};
  program.storages = kStorages;
  try {
    if (kind == kWeights || kind == kIndex) {
      InitialWeights weights({{"", path}});
      weights.match(program);
      for (int rank = 0; rank < 2; ++rank) {
        float shard[5];
        loadShard(weights, kStorages[0], {kAxes, {rank}}, 0, shard);
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

} // namespace fsdp::mutation
