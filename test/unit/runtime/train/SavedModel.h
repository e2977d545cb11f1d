// A small model of three storages on four ranks, the checkpoints that its ranks save, and what is
// wrong with one of them.

#ifndef FSDP_TEST_UNIT_RUNTIME_SAVEDMODEL_H
#define FSDP_TEST_UNIT_RUNTIME_SAVEDMODEL_H

#include "base/Error.h"
#include "runtime/train/Checkpoint.h"
#include "runtime/train/CheckpointFolder.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace fsdp::rt {

using namespace base;

// A unit that is flat over two of four ranks, with moments; a frozen one that is cut along a
// dimension; one that every rank has whole. The model declares them in another order.
inline constexpr ArenaSpan<float> kFlat{0, 6016}, kFlatMoment{32768, 6016}, kCut{65536, 12},
    kWhole{69632, 2100};
inline constexpr State flatStates[] = {{"exp_avg", kFlatMoment}};
inline constexpr Parameter flatMembers[] = {
    {"h.weight", nullptr, {120, 100}, {12000}, 0, Initializer::zeros(), true, 2},
    {"h.bias", nullptr, {7}, {7}, 12000, Initializer::zeros(), false, 0}};
inline constexpr Parameter cutMembers[] = {
    {"cut", nullptr, {3, 7}, {3, 7}, 0, Initializer::zeros(), true, 1}};
inline constexpr Parameter wholeMembers[] = {
    {"whole", nullptr, {2100}, {2100}, 0, Initializer::zeros(), true, 3}};
inline constexpr Storage storages[] = {
    {"h", Layout::Flat, {1}, 0, 0, 12007, 0, kFlat, flatStates, flatMembers},
    {"cut", Layout::Dimension, {1}, 0, 1, 21, 2, kCut, {}, cutMembers},
    {"whole", Layout::Replicated, {}, -1, 0, 2100, 3, kWhole, {}, wholeMembers}};
inline constexpr MeshAxis axes[] = {{"data", 2}, {"fsdp", 2}};
inline constexpr ExtraFile extras[] = {{"config.json", "{\"of\": \"the model\"}\n"}};

inline const Program &program() {
  static const Program program = [] {
    Program made{};
    made.name = "test";
    made.axes = axes;
    made.storages = storages;
    made.extraFiles = extras;
    return made;
  }();
  return program;
}

/// So that the small files here have pages that are written past the page cache.
inline constexpr RangeWriter::Sizes kSizes{2 * FileSystem::kDirectAlignment, 1};

/// An element of a tensor after a step.
inline float valueOf(std::int64_t step, const std::string &file, const std::string &tensor,
                     std::size_t i) {
  return static_cast<float>(step * 1000 +
                            static_cast<std::int64_t>(file.size() * 31 + tensor.size())) +
         static_cast<float>(i) / 4096;
}

/// The shard of a share as the rank has it after a step.
inline std::vector<float> shardOf(const CheckpointLayout &layout, const ShardShare &share,
                                  std::int64_t step) {
  std::vector<float> shard(share.shard.count);
  for (const CheckpointPiece &piece : share.pieces) {
    const CheckpointFile &file = layout.files()[piece.file];
    for (std::size_t i = 0; i < piece.count; ++i)
      shard[piece.inShard + i] =
          valueOf(step, file.name, file.tensors[piece.tensor].name, piece.inTensor + i);
  }
  return shard;
}

/// What the four ranks do to save a step, one after another.
inline void saveStep(CheckpointRoot &root, const CheckpointLayout &layout, std::int64_t step,
                     std::int64_t keep) {
  root.begin(step, layout);
  CheckpointManifest manifest;
  manifest.step = step;
  manifest.files = CheckpointManifest::filesOf(layout);
  std::vector<std::uint64_t> sums(6);
  for (int data = 0; data < 2; ++data)
    for (int fsdp = 0; fsdp < 2; ++fsdp) {
      const std::vector<ShardShare> shares = layout.sharesOf({data, fsdp});
      std::vector<std::vector<float>> shards;
      for (const ShardShare &share : shares)
        shards.push_back(shardOf(layout, share, step));
      root.write(step, layout, shares, [&](std::size_t i) { return shards[i].data(); }, sums);
    }
  auto sum = sums.begin();
  for (CheckpointManifest::File &file : manifest.files)
    for (CheckpointManifest::Tensor &tensor : file.tensors)
      tensor.checksum = *sum++;
  ASSERT_EQ(sum, sums.end());
  root.commit(step, manifest);
  root.prune(step, keep);
}

/// What is wrong with a folder that has a manifest: not a checkpoint of the step in its manifest,
/// byte for byte. Empty: nothing.
inline std::string faultOf(const std::string &folder, const CheckpointLayout &layout) {
  try {
    const Checkpoint checkpoint(folder, layout);
    for (const CheckpointManifest::File &file : checkpoint.manifest().files) {
      const auto opened = openCheckpointFile(folder, file);
      for (const CheckpointManifest::Tensor &tensor : file.tensors) {
        const base::FileTensor &found = *opened->find(tensor.name);
        const auto *values = reinterpret_cast<const float *>(found.data);
        requireChecksum(opened->path(), tensor.name, checksum(values, 0, found.elements()),
                        tensor.checksum);
        for (std::size_t i = 0; i < found.elements(); ++i)
          if (values[i] != valueOf(checkpoint.manifest().step, file.name, tensor.name, i))
            return file.name + ": " + tensor.name + " has a wrong element " + std::to_string(i);
      }
    }
    std::ifstream config(folder + "/config.json");
    if (std::string(std::istreambuf_iterator<char>(config), {}) != extras[0].text)
      return "config.json is not whole";
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

} // namespace fsdp::rt

#endif // FSDP_TEST_UNIT_RUNTIME_SAVEDMODEL_H
