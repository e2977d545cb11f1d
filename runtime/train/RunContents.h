//===- RunContents.h - digests of the input files of a run ----------------===//

#ifndef FSDP_RUNTIME_TRAIN_RUNCONTENTS_H
#define FSDP_RUNTIME_TRAIN_RUNCONTENTS_H

#include "runtime/data/DataFiles.h"
#include "runtime/job/RunIdentity.h"
#include "runtime/train/CommandLine.h"
#include "runtime/train/InitialWeights.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fsdp::rt {

/// The files of --data and --val-data.
struct RunData {
  std::vector<DataSource> training;
  std::vector<DataSource> validation; ///< one source, or none

  /// Errors: those of sourcesOf().
  static RunData of(const Options &options);
  bool isMixed() const { return training.size() > 1; }
};

/// The content of a file when the run began. Digests of large files cover samples (sampledDigest),
/// so that they take milliseconds: another file has another digest, but a file that differs in a
/// few places may have the same.
struct FileContent {
  std::string path; ///< as on the command line
  std::size_t bytes = 0;
  std::uint64_t digest = 0;
  std::size_t tensors =
      0; ///< number of tensors of weights, whose digest covers them in the order of their names
  std::string pattern = {}; ///< of --init PATTERN=FILE
};

/// Error: the file cannot be read.
FileContent contentOf(const std::string &path);
FileContent contentOf(const WeightFiles &weights);
/// Of several files as one, with a digest of theirs.
FileContent sumOf(const std::vector<FileContent> &contents);

/// The files that a run reads besides checkpoints.
struct RunContents {
  std::vector<FileContent> data, valData, init;

  /// `weights`: of --init; may be null.
  static RunContents of(const RunData &data, const InitialWeights *weights);
};

/// The compiled program, the options, and the contents of the files, which must be the same on
/// every rank. Paths are not compared, as a machine may have its copy anywhere. Contents are
/// digests of data files, and of weights by tensor; those of large files cover samples
/// (sampledDigest). For `--export` and `--trace` only their presence is compared, as all ranks take
/// part; `--log` is used by rank 0 only. `resumed` describes the checkpoint from which training
/// continues.
RunIdentity identityOfTraining(const Program &program, const Options &options, std::int64_t steps,
                               const RunData &data, const RunContents &contents,
                               const std::string &resumed);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_RUNCONTENTS_H
