#include "runtime/train/RunFiles.h"

#include "runtime/data/OpenDataset.h"

#include "base/Error.h"
#include "base/FileSystem.h"
#include "base/PrintableText.h"
#include "runtime/files/StandardStreams.h"
#include "runtime/train/AdapterFiles.h"
#include "runtime/train/LogFile.h"
#include "runtime/train/ModelChange.h"
#include "runtime/train/ParameterNames.h"
#include "runtime/train/RunCheckpoints.h"
#include "runtime/train/RunHeader.h"
#include "runtime/train/RunStart.h"

#include <algorithm>
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

/// The data set of all files of `sources`, whose numbers of samples it sets; null without files.
std::unique_ptr<Dataset> openData(const Program &program, std::vector<DataSource> &sources) {
  if (sources.empty())
    return nullptr;
  std::vector<std::int64_t> samples; // of each file
  auto data = openDataset(filesOf(sources), program.inputs, samples);
  auto next = samples.begin();
  for (DataSource &source : sources)
    for (std::size_t i = 0; i < source.files.size(); ++i)
      source.samples += *next++;
  return data;
}

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

bool hasAdapters(const Program &program, const WeightFiles &files) {
  const std::vector<std::string> own = adapterNames(program);
  const std::vector<const FileTensor *> tensors = files.tensors();
  return std::any_of(tensors.begin(), tensors.end(), [&](const FileTensor *tensor) {
    return isNameOfAdapters(tensor->name) ||
           std::find(own.begin(), own.end(), tensor->name) != own.end();
  });
}

/// Compares the description of the model next to each file with the program. A file with a pattern
/// usually belongs to another model, and is not compared.
void checkConfigs(const Program &program, const Options &options, const InitialWeights &weights) {
  for (const InitialWeights::Source &source : weights.sources()) {
    const std::string &file = source.files.files().front();
    std::string change;
    if (hasAdapters(program, source.files))
      change = adapterChange(program, file, /*part=*/source.from.isMapped());
    if (change.empty() && !source.from.isMapped())
      change = configChange(program, file);
    if (!change.empty() && !options.allowModelChange)
      throw Error(
          change +
          "; continue with these weights and the model of this program with --allow-model-change");
    if (!change.empty())
      std::fprintf(stderr, "%s: warning: %s\n", program.name, printableMessage(change).c_str());
  }
}

/// Creates the folder of `path`, which ends with '/', if it does not exist, and returns its path
/// without that. Errors: it is a file; weights there would be read instead of those exported.
std::string prepareExportFolder(const char *option, std::string path, RunOutputs &outputs) {
  const std::string asGiven = path;
  while (path.size() > 1 && path.back() == '/')
    path.pop_back();
  if (mkdir(path.c_str(), 0777) == 0)
    outputs.created.push_back(std::make_unique<CreatedFolder>(path));
  else if (errno == ENOENT)
    throw Error(std::string(option) + ": cannot create the folder " + inQuotes(path) +
                ": there is no folder " + inQuotes(folderOf(path)) + "; create it first");
  else if (errno != EEXIST)
    throw Error("cannot create the folder '" + path + "': " + std::strerror(errno));
  else if (struct stat status; stat(path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode))
    throw Error(std::string(option) + ": got '" + asGiven + "', but '" + path +
                    "' is a file, expected a folder or nothing where a name ends with '/': leave "
                    "the '/' out to replace the file, or name a folder",
                kExitBadCommandLine);
  for (const char *other : {"model.safetensors.index.json", CheckpointManifest::kName})
    if (fileExists(path + "/" + other))
      throw Error("cannot export to the folder '" + path + "': it has '" + other +
                  "', which other weights belong to; choose another folder");
  return path;
}

} // namespace

CreatedFolder::CreatedFolder(std::string path) : path(std::move(path)), creator(getpid()) {}

CreatedFolder::~CreatedFolder() {
  if (creator == getpid()) // and not in a rank
    rmdir(path.c_str());
}

RunSources openSources(const Program &program, const Options &options, RunData files) {
  RunSources sources;
  for (const std::string &pattern : options.exportOnly)
    requireMatch(program, "--export-only", pattern);
  sources.data = openData(program, files.training);
  sources.valData = openData(program, files.validation);
  if (sources.valData)
    checkWholeBatches(program, files.validation.front().name, *sources.valData);
  sources.files = std::move(files);
  sources.checkpoints = findCheckpoints(program, options);
  if (!options.init.empty()) {
    sources.weights = std::make_unique<InitialWeights>(options.init);
    checkConfigs(program, options, *sources.weights);
    for (const std::string &remark : sources.weights->match(program, options.initMissing == "draw"))
      std::fprintf(stderr, "note: %s\n", printableMessage(remark).c_str());
    sources.weights->releasePages(); // checked; ranks read their parts
    for (const InitialWeights::Source &source : sources.weights->sources())
      if (!source.from.isMapped() && sources.carried.empty())
        sources.carried = filesToCarry(folderOf(source.files.files().front()));
  }
  for (const SavedStep &saved : sources.checkpoints)
    if (sources.carried.empty())
      sources.carried = filesToCarry(saved.folder);
  if (!options.tokenizer.empty()) {
    sources.carried = filesToCarry(options.tokenizer);
    if (std::none_of(sources.carried.begin(), sources.carried.end(),
                     [](const BesideFile &file) { return file.name == "tokenizer.json"; }))
      throw Error("--tokenizer: '" + options.tokenizer +
                      "' has no tokenizer.json; name the folder of the model's tokenizer",
                  kExitBadCommandLine);
  }
  return sources;
}

RunOutputs openOutputs(const Program &program, const Options &options, const RunData &data,
                       std::vector<NamedFile> &files) {
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
  for (const std::string &path : filesOf(data.training))
    input("--data", path);
  for (const std::string &path : filesOf(data.validation))
    input("--val-data", path);
  for (const InitialFile &file : options.init)
    input("--init", file.path);
  // For a program with adapters only those, unless others are requested.
  outputs.exportOnly = options.exportOnly;
  if (options.exportOnly.empty())
    outputs.exportOnly = adapterNames(program);
  outputs.exportsAdapters = options.exportOnly.empty() && !outputs.exportOnly.empty();
  const auto openExport = [&](const char *option, std::string path, const char *name,
                              OutputPath &to, std::string &exportFolder) {
    if (!path.empty() && path.back() == '/') {
      exportFolder = prepareExportFolder(option, path, outputs);
      path = exportFolder + "/" + name;
    }
    open(option, path, to);
    requireOneKindOfWeights(option, path);
  };
  openExport("--export", options.exportTo,
             outputs.exportsAdapters ? kAdapterWeights : kModelWeights, outputs.exported,
             outputs.exportFolder);
  openExport("--export-merged", options.exportMerged, kModelWeights, outputs.merged,
             outputs.mergedFolder);
  requireTwoFolders(outputs.exported.name(), outputs.merged.name());
  open("--log", options.log, outputs.log);
  open("--trace", options.trace, outputs.trace);
  if (options.generation)
    open("--scores", options.generation->scores, outputs.scores);
  checkDistinct(files);
  for (const OutputPath *replaced :
       {&outputs.exported, &outputs.merged, &outputs.trace, &outputs.scores})
    requireNoLogOfARun(*replaced);
  keepOutputOutOf(files);
  return outputs;
}

void openRunLog(std::optional<LogFile> &log, const RunHeader &header, const RunOutputs &outputs,
                RunStart &runStart) {
  if (outputs.log.empty())
    return runStart.noteOpened({});
  const Options &options = header.options;
  const std::int64_t first = header.from.step; // training begins after it
  const std::string name = printable(outputs.log.name());
  const bool goesOn = runStart.hasOpened() ? runStart.owns(outputs.log.identity())
                                           : first > 0 && !options.onlyEvaluates();
  log.emplace(outputs.log,
              std::vector<FileIdentity>{outputs.exported.identity(), outputs.merged.identity(),
                                        outputs.trace.identity(), identityOf(options.flightRecord)},
              goesOn ? std::optional(first) : std::nullopt);
  runStart.noteOpened(log->identity());
  if (options.evaluates())
    log->holdsResult();
  if (!log->previous().empty())
    std::printf("kept the existing log as '%s'\n", printable(log->previous()).c_str());
  if (log->dropped())
    std::printf("dropped %lld steps after step %lld from the log '%s'\n", 0LL + log->dropped(),
                0LL + first, name.c_str());
  if (log->lastStep() && *log->lastStep() < first)
    std::fprintf(stderr,
                 "%s: warning: the log '%s' has no step %lld, after which training continues\n",
                 header.program.name, name.c_str(), static_cast<long long>(first));
  if (options.restarts)
    log->writeHeader(restartLine(options.restarts, first, header.mesh, options.restartCause));
  if (options.logHeader)
    log->writeHeader(header.line());
  showOutput();
}

} // namespace fsdp::rt
