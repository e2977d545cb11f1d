#include "runtime/train/RunFiles.h"

#include "runtime/data/OpenDataset.h"

#include "base/Error.h"
#include "base/PrintableText.h"
#include "runtime/files/StandardStreams.h"
#include "runtime/train/LogFile.h"
#include "runtime/train/ModelChange.h"
#include "runtime/train/RunCheckpoints.h"
#include "runtime/train/Weights.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace fsdp::rt {

using namespace base;

namespace {

/// Error: a validation set does not fill its last batch, and the model needs full batches.
void checkWholeBatches(const Program &program, const std::string &path, const Dataset &data) {
  const std::int64_t batch = globalBatch(program), rest = data.samples() % batch;
  if (rest && !program.evaluate.countsSamples)
    throw Error(format("'%s': got %lld samples to evaluate on, expected a multiple of the batch, "
                       "%lld: the model mixes the samples of a batch, so it can only be "
                       "evaluated on full batches; remove the last %lld samples",
                       path.c_str(), static_cast<long long>(data.samples()),
                       static_cast<long long>(batch), static_cast<long long>(rest)));
}

/// Creates the folder of `path`, which ends with '/', if it does not exist, and returns its path
/// without that. Error: weights there would be read instead of those exported.
std::string prepareExportFolder(std::string path) {
  while (path.size() > 1 && path.back() == '/')
    path.pop_back();
  if (mkdir(path.c_str(), 0777) != 0 && errno != EEXIST)
    throw Error("cannot create the folder '" + path + "': " + std::strerror(errno));
  for (const char *other : {"model.safetensors.index.json", CheckpointManifest::kName})
    if (access((path + "/" + other).c_str(), F_OK) == 0)
      throw Error("cannot export to the folder '" + path + "': it has '" + other +
                  "', which other weights belong to; choose another folder");
  return path;
}

} // namespace

RunSources openSources(const Program &program, const Options &options) {
  RunSources sources;
  if (!options.data.empty())
    sources.data = openDataset(options.data, program.inputs);
  if (!options.valData.empty())
    sources.valData = openDataset(options.valData, program.inputs);
  if (sources.valData)
    checkWholeBatches(program, options.valData, *sources.valData);
  sources.checkpoints = findCheckpoints(program, options);
  if (!options.init.empty()) {
    sources.weights = std::make_unique<WeightFiles>(options.init);
    const std::string change = configChange(program, sources.weights->files().front());
    if (!change.empty() && !options.allowModelChange)
      throw Error(
          change +
          "; continue with these weights and the model of this program with --allow-model-change");
    if (!change.empty())
      std::fprintf(stderr, "%s: warning: %s\n", program.name, printableMessage(change).c_str());
    const std::string remark = checkWeights(*sources.weights, program);
    if (!remark.empty())
      std::fprintf(stderr, "note: %s\n", printableMessage(remark).c_str());
    sources.weights->releasePages(); // checked; ranks read their parts
    sources.carried = filesToCarry(folderOf(sources.weights->files().front()));
  }
  for (const SavedStep &saved : sources.checkpoints)
    if (sources.carried.empty())
      sources.carried = filesToCarry(saved.folder);
  return sources;
}

RunOutputs openOutputs(const Options &options, std::vector<NamedFile> &files) {
  RunOutputs outputs;
  const auto input = [&](const char *option, const std::string &path) {
    if (!path.empty())
      files.push_back(NamedFile::input(option, path));
  };
  const auto open = [&](const char *option, const std::string &path, OutputPath &to) {
    if (path.empty())
      return;
    to = OutputPath(path);
    files.push_back(NamedFile::output(option, to));
  };
  input("--data", options.data);
  input("--val-data", options.valData);
  input("--init", options.init);
  std::string exported = options.exportTo;
  if (!exported.empty() && exported.back() == '/') {
    outputs.exportFolder = prepareExportFolder(exported);
    exported = outputs.exportFolder + "/model.safetensors";
  }
  open("--export", exported, outputs.exported);
  open("--log", options.log, outputs.log);
  open("--trace", options.trace, outputs.trace);
  checkDistinct(files);
  for (const OutputPath *replaced : {&outputs.exported, &outputs.trace})
    requireNoLogOfARun(*replaced);
  keepOutputOutOf(files);
  return outputs;
}

} // namespace fsdp::rt
