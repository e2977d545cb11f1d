//===- CheckpointManifest.h - what makes a folder a checkpoint ------------===//

#ifndef FSDP_RUNTIME_TRAIN_CHECKPOINTMANIFEST_H
#define FSDP_RUNTIME_TRAIN_CHECKPOINTMANIFEST_H

#include "base/Safetensors.h"
#include "runtime/train/CheckpointLayout.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fsdp::rt {

/// What `manifest.json` says: where training stands, and what the files beside it hold. Its last
/// field is a digest of the others.
struct CheckpointManifest {
  static constexpr int kVersion = 1;
  static constexpr const char *kName = "manifest.json";
  /// Its name until the checkpoint is complete. A folder that has it is being written, or was left
  /// so.
  static constexpr const char *kUnfinished = "manifest.json.tmp";

  struct Tensor {
    std::string name;
    std::uint64_t checksum; ///< see checksum()
  };
  struct File {
    std::string name;
    std::uint64_t bytes;
    std::uint64_t header; ///< digest of what stands before the tensors
    std::vector<Tensor> tensors;
  };

  /// A file that the model puts beside its weights, which training does not read.
  struct Extra {
    std::string name;
    std::uint64_t bytes;
    std::uint64_t digest; ///< of its content
  };

  std::string model;       ///< name of the program
  std::string fingerprint; ///< CheckpointLayout::fingerprint
  std::string modelDigest; ///< Program::modelDigest; empty where it was not known
  std::string mesh;        ///< for people: where it was written
  std::int64_t step = 0;
  std::int64_t totalSteps = 0;
  std::int64_t updates = 0;
  std::uint64_t seed = 0;
  float baseLearningRate = 0;
  std::int32_t badSteps = 0;
  std::int64_t samples =
      0; ///< data position: those that the steps so far have taken, over all epochs
  bool shuffle = false;
  std::int64_t datasetSamples = 0; ///< 0: no data set
  std::vector<File> files;
  std::vector<Extra> extraFiles;
  /// RunHeader::record of each start of a program that led here, the first one first.
  std::vector<std::string> runs;

  /// The entries of the files of a program, without checksums of tensors.
  static std::vector<File> filesOf(const CheckpointLayout &layout);
  static std::vector<Extra> extrasOf(Table<ExtraFile> files);

  std::string text() const;
  /// Errors name `path`: not such a text, another version, altered since it was written.
  static CheckpointManifest parse(const char *begin, const char *end, const std::string &path);
  /// Reads the manifest of a step's folder. Errors: it cannot be opened; those of `parse`.
  static CheckpointManifest read(const std::string &folder);
};

/// A tensor file of a checkpoint, mapped, its size and header as the manifest says. Errors name the
/// file, got and expected.
std::unique_ptr<base::SafetensorsFile> openCheckpointFile(const std::string &folder,
                                                          const CheckpointManifest::File &file);

/// For each extra file that is not in `folder` as it was written: which, got and expected.
std::vector<std::string> alteredExtras(const std::string &folder,
                                       const CheckpointManifest &manifest);

/// Error where the bytes of a tensor have changed since they were written.
void requireChecksum(const std::string &path, const std::string &tensor, std::uint64_t got,
                     std::uint64_t expected);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_CHECKPOINTMANIFEST_H
