//===- RunContents.h - the files that a run reads, by content ---------------===//

#ifndef FSDP_RUNTIME_TRAIN_RUNCONTENTS_H
#define FSDP_RUNTIME_TRAIN_RUNCONTENTS_H

#include "runtime/train/CommandLine.h"
#include "runtime/train/WeightFiles.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace fsdp::rt {

/// What a file held when the run began. Digests are of samples where there is much (sampledDigest),
/// so that they take milliseconds: a file that was replaced has another, one that was changed in a
/// few places may have the same.
struct FileContent {
  std::string path; ///< as the command line has it
  std::size_t bytes = 0;
  std::uint64_t digest = 0;
  std::size_t tensors =
      0; ///< of weights, whose digest goes tensor by tensor, in the order of their names
};

/// Error: the file cannot be read.
FileContent contentOf(const std::string &path);
FileContent contentOf(const WeightFiles &weights);

/// What a run reads besides checkpoints.
struct RunContents {
  std::optional<FileContent> data, valData, init;

  /// `weights`: those of --init; may be null.
  static RunContents of(const Options &options, const WeightFiles *weights);
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_RUNCONTENTS_H
