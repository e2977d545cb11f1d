//===- RunFiles.h - opens the files of a run ------------------------------===//

#ifndef FSDP_RUNTIME_TRAIN_RUNFILES_H
#define FSDP_RUNTIME_TRAIN_RUNFILES_H

#include "base/OutputPath.h"
#include "runtime/data/Dataset.h"
#include "runtime/program/Program.h"
#include "runtime/train/BesideFiles.h"
#include "runtime/train/CheckpointFolder.h"
#include "runtime/train/CommandLine.h"
#include "runtime/train/InitialWeights.h"
#include "runtime/train/RunContents.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fsdp::rt {

class LogFile;
struct RunHeader;
class RunStart;

/// The inputs, opened and checked once before the ranks are started.
struct RunSources {
  std::unique_ptr<Dataset> data;
  std::unique_ptr<Dataset> valData;
  std::unique_ptr<InitialWeights> weights;
  std::vector<SavedStep> checkpoints; ///< to continue from, the latest first; not all may be valid
  RunData files;                      ///< of `data` and `valData`
  RunContents contents;               ///< if they are recorded or compared
  BesideFiles carried;                ///< of a folder of `weights` or of a checkpoint
};

/// A folder that this run has created for its weights. Its destructor, in the process that created
/// it, removes it if it is empty: a run that is refused or fails leaves no folder behind.
class CreatedFolder {
public:
  explicit CreatedFolder(std::string path);
  ~CreatedFolder();
  CreatedFolder(const CreatedFolder &) = delete;
  CreatedFolder &operator=(const CreatedFolder &) = delete;

private:
  std::string path;
  std::int64_t creator;
};

/// The outputs; streams are opened before the ranks are started.
struct RunOutputs {
  base::OutputPath exported, merged, trace, log, scores;
  std::string exportFolder, mergedFolder; ///< of `exported` and `merged`, where these are folders
  std::vector<std::string> exportOnly;    ///< the tensors that --export writes, for `exportWeights`
  bool exportsAdapters = false;           ///< and these are the adapters
  std::vector<std::unique_ptr<CreatedFolder>> created;
};

/// Opens and checks the inputs of `options`, of which `files` are those of data. Error: an input
/// does not fit `program`.
RunSources openSources(const Program &program, const Options &options, RunData files);

/// Checks the outputs. Errors: one could not be written after the last step, or would replace an
/// input. Fills `files` with the files of the command line.
RunOutputs openOutputs(const Program &program, const Options &options, const RunData &data,
                       std::vector<base::NamedFile> &files);

/// Opens `log` if the run has --log: a new one, or that of the previous run or of the attempt
/// before a restart; prints the new name of an existing file, or the number of steps that it drops,
/// and writes the lines before that of the first step. Errors: those of LogFile.
void openRunLog(std::optional<LogFile> &log, const RunHeader &header, const RunOutputs &outputs,
                RunStart &runStart);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_RUNFILES_H
