//===- CheckpointManifest.h - the manifest of a checkpoint ----------------===//

#ifndef FSDP_RUNTIME_TRAIN_CHECKPOINTMANIFEST_H
#define FSDP_RUNTIME_TRAIN_CHECKPOINTMANIFEST_H

#include "base/ParameterGroups.h"
#include "base/Safetensors.h"
#include "runtime/data/DataFiles.h"
#include "runtime/device/ProductChoices.h"
#include "runtime/program/StepState.h"
#include "runtime/train/BesideFiles.h"
#include "runtime/train/CheckpointLayout.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fsdp::rt {

/// The kind with a name of kScheduleNames.
std::optional<Schedule::Kind> scheduleNamed(const std::string &name);

/// The content of `manifest.json`: the state of training, and a description of the files beside it.
/// Its last field is a digest of the others.
struct CheckpointManifest {
  static constexpr int kVersion = 1;
  static constexpr const char *kName = "manifest.json";
  /// Its name until the checkpoint is complete.
  static constexpr const char *kUnfinished = "manifest.json.tmp";

  struct Tensor {
    std::string name;
    std::uint64_t checksum; ///< see checksum()
  };
  struct File {
    std::string name;
    std::uint64_t bytes;
    std::uint64_t header; ///< digest of the bytes before the tensors
    std::vector<Tensor> tensors;
  };

  /// A file that belongs to the model and that training does not read.
  struct Extra {
    std::string name;
    std::uint64_t bytes;
    std::uint64_t digest; ///< of its content
  };

  std::string model;       ///< name of the program
  std::string fingerprint; ///< CheckpointLayout::fingerprint
  std::string modelDigest; ///< Program::modelDigest; empty if unknown
  std::string mesh;        ///< the mesh that wrote it, for messages
  std::int64_t step = 0;
  std::int64_t totalSteps = 0;
  std::int64_t updates = 0;
  std::uint64_t seed = 0;
  float baseLearningRate = 0;
  std::optional<ScheduleOptions> schedule; ///< nothing: older versions did not write it
  std::int64_t scheduleSteps = 0; ///< of --schedule-steps; 0: the schedule ends with the run
  /// A setting of the update rule, or "clip".
  struct Constant {
    std::string name;
    float value;
  };
  std::string updateRule;          ///< "adamw"; empty: older versions did not write it
  std::vector<Constant> constants; ///< of it, as the run that wrote this used them
  base::GroupOptions groups;       ///< nothing: older versions did not write them
  std::int32_t badSteps = 0;
  std::vector<float> losses, gradNorms; ///< StepHistory; older versions did not write them
  std::int64_t samples =
      0; ///< data position: number of samples of all steps so far, over all epochs
  bool shuffle = false;
  std::int64_t datasetSamples = 0; ///< 0: no data set
  std::vector<DataSource> sources; ///< of the data set if it has several, without their files
  ProductChoices products;         ///< none where nothing was measured
  std::vector<File> files;
  std::vector<Extra> extraFiles;
  /// RunHeader::record of each program run that led to this checkpoint, in order.
  std::vector<std::string> runs;

  /// The entries of the files of a program, without checksums of tensors.
  static std::vector<File> filesOf(const CheckpointLayout &layout);
  static std::vector<Extra> extrasOf(const BesideFiles &files);

  /// Calls `visit(name, field)` for the fields of training, in the order of the text. `Manifest` is
  /// this type, const or not.
  template <class Manifest, class Visit> static void visitFields(Manifest &manifest, Visit visit) {
    visit("model", manifest.model);
    visit("fingerprint", manifest.fingerprint);
    visit("model_digest", manifest.modelDigest);
    visit("mesh", manifest.mesh);
    visit("step", manifest.step);
    visit("total_steps", manifest.totalSteps);
    visit("updates", manifest.updates);
    visit("seed", manifest.seed);
    visit("base_learning_rate", manifest.baseLearningRate);
    visit("bad_steps", manifest.badSteps);
    visit("samples", manifest.samples);
    visit("shuffle", manifest.shuffle);
    visit("dataset_samples", manifest.datasetSamples);
  }

  std::string text() const;
  /// Errors, which name `path`: not a manifest, another version, altered since it was written.
  static CheckpointManifest parse(const char *begin, const char *end, const std::string &path);
  /// Reads the manifest of a step's folder. Errors: it cannot be opened; those of parse().
  static CheckpointManifest read(const std::string &folder);
};

/// Maps a tensor file of a checkpoint. Errors: size, header or tensors are not those of the
/// manifest.
std::unique_ptr<base::SafetensorsFile> openCheckpointFile(const std::string &folder,
                                                          const CheckpointManifest::File &file);

/// For each extra file in `folder` that is missing or altered: a text with its name, got and
/// expected.
std::vector<std::string> alteredExtras(const std::string &folder,
                                       const CheckpointManifest &manifest);

/// Error if the bytes of a tensor have changed since they were written.
void requireChecksum(const std::string &path, const std::string &tensor, std::uint64_t got,
                     std::uint64_t expected);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_CHECKPOINTMANIFEST_H
