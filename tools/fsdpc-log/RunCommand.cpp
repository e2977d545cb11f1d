#include "tools/fsdpc-log/RunCommand.h"

#include "base/Error.h"
#include "base/JsonObject.h"
#include "base/MappedFile.h"
#include "base/PrintableText.h"
#include "base/ShellWords.h"
#include "tools/fsdpc-log/LogReader.h"

#include <charconv>
#include <filesystem>

namespace fsdpc_log {

using base::addShellWord;
using base::Error;
using nlohmann::json;

namespace {

constexpr const char *kManifest = "manifest.json";

std::string fieldText(const json &object, const char *name) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null())
    return "";
  return found->is_string() ? found->get<std::string>()
                            : found->dump(-1, ' ', false, json::error_handler_t::replace);
}

/// A line of a comment.
std::string comment(const std::string &text) { return "# " + base::printable(text) + "\n"; }

/// A file, or many as one entry.
std::string describeFile(const char *option, const json &file) {
  const std::string path = fieldText(file, "path");
  return comment("reads " + std::string(option) + " " +
                 (path.empty() ? fieldText(file, "files") + " files" : path) + ": " +
                 fieldText(file, "bytes") + " bytes, digest " + fieldText(file, "digest"));
}

std::string describeFiles(const json &record) {
  std::string text;
  const auto files = record.find("files");
  if (files == record.end() || !files->is_object())
    return text;
  for (const auto &[option, name] :
       {std::pair("--data", "data"), std::pair("--val-data", "val_data"),
        std::pair("--init", "init")}) {
    const auto found = files->find(name);
    if (found == files->end())
      continue;
    if (!found->is_array())
      text += describeFile(option, *found);
    else
      for (const json &one : *found)
        text += describeFile(option, one);
  }
  return text;
}

/// The command that compiled the program, without where its output went.
std::string compileCommand(const json &record) {
  const auto compiler = record.find("compiler");
  const std::string name = compiler == record.end() ? "" : fieldText(*compiler, "name");
  if (name.empty())
    return "";
  std::string line = base::shellWord(name);
  if (const std::string model = fieldText(*compiler, "model_file"); !model.empty())
    addShellWord(line, model);
  const std::string options = fieldText(record, "compiled");
  // --target has a default, which is then not among the options.
  return line + (options.empty() ? "" : " " + options);
}

/// The command by which a launcher starts `ranks` ranks of a program; nothing if unknown.
std::string launch(const std::string &by, const std::string &ranks) {
  if (by == "torchrun")
    return "torchrun --nproc-per-node=" + ranks + " --no-python ";
  if (by == "Open MPI" || by == "PMI")
    return "mpirun -n " + ranks + " ";
  if (by == "Slurm")
    return "srun -n " + ranks + " ";
  return "";
}

bool takesOption(const std::string &word, const char *option, bool &isApart) {
  const std::string name = option;
  isApart = word == name;
  return isApart || word.compare(0, name.size() + 1, name + "=") == 0;
}

bool has(const std::vector<std::string> &words, const char *option) {
  bool isApart;
  for (const std::string &word : words)
    if (takesOption(word, option, isApart))
      return true;
  return false;
}

} // namespace

std::optional<std::vector<std::string>> shellWords(const std::string &line) {
  std::vector<std::string> words;
  bool inWord = false, inQuotes = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (!inQuotes && c == ' ') {
      inWord = false;
      continue;
    }
    if (!inWord)
      words.emplace_back(), inWord = true;
    if (c == '\'')
      inQuotes = !inQuotes;
    else if (!inQuotes && c == '\\' && i + 1 < line.size())
      words.back() += line[++i];
    else
      words.back() += c;
  }
  if (inQuotes)
    return std::nullopt;
  return words;
}

/// The number of "step-00000100"; nothing for another name.
static std::optional<std::int64_t> stepOf(const std::string &name) {
  constexpr std::string_view begin = "step-";
  std::int64_t step = 0;
  const char *const end = name.data() + name.size();
  if (name.compare(0, begin.size(), begin) != 0 || name.size() == begin.size())
    return std::nullopt;
  const auto [rest, fault] = std::from_chars(name.data() + begin.size(), end, step);
  return fault == std::errc() && rest == end && step >= 0 ? std::optional(step) : std::nullopt;
}

std::string recordSource(const std::string &path) {
  namespace files = std::filesystem;
  std::error_code error;
  if (!files::is_directory(path, error) || files::exists(path + "/" + kManifest, error))
    return path;
  std::int64_t latest = -1;
  std::string found;
  for (const files::directory_entry &entry : files::directory_iterator(path, error))
    if (const auto step = stepOf(entry.path().filename().string());
        step && *step > latest && files::exists(entry.path() / kManifest, error)) {
      latest = *step;
      found = entry.path().string();
    }
  if (found.empty())
    throw Error("--command: got the folder " + base::inQuotes(path) + ", which has neither a '" +
                kManifest +
                "' nor a folder 'step-…' with one; name a log, a checkpoint or the "
                "folder of a run's checkpoints");
  return found;
}

std::vector<json> readRecords(const std::string &path) {
  std::vector<json> records;
  const std::string manifest = std::filesystem::is_directory(path) ? path + "/" + kManifest : path;
  if (std::filesystem::path(manifest).filename() == kManifest) {
    const base::MappedFile file(manifest);
    json object;
    if (const std::string fault =
            base::parseJsonObject(std::string_view(file.data(), file.size()), object);
        !fault.empty())
      throw Error("'" + manifest + "' " + fault + ", expected the manifest of a checkpoint");
    if (const auto runs = object.find("runs"); runs != object.end() && runs->is_array())
      records.assign(runs->begin(), runs->end());
    if (records.empty())
      throw Error("'" + manifest + "' has no record of a run: an earlier version wrote it");
  } else {
    readLog(path, [&](const LogEntry &entry) {
      if (entry.kind == LogEntry::Run)
        records.push_back(entry.record);
    });
    if (records.empty())
      throw Error("'" + path +
                  "' has no record of a run: train with --log-header, or name a checkpoint of the "
                  "run");
  }
  std::vector<json> runs;
  for (const json &record : records)
    if (record.is_object() && (!record.contains("restart") || runs.empty()))
      runs.push_back(record);
  return runs;
}

std::string runCommand(const std::vector<json> &records, std::size_t number,
                       const std::string &path) {
  if (number < 1 || number > records.size())
    throw Error("got --run " + std::to_string(number) + ", expected 1 to " +
                    std::to_string(records.size()) + ", the runs of '" + path + "'",
                base::kExitBadCommandLine);
  const json &record = records[number - 1];
  const auto words = shellWords(fieldText(record, "arguments"));
  const std::string program = fieldText(record, "program");
  if (!words || program.empty())
    throw Error("the record of run " + std::to_string(number) + " in '" + path +
                "' lacks 'program' or 'arguments': an earlier version wrote it");
  std::string text =
      comment("run " + std::to_string(number) + " of " + std::to_string(records.size()) + " in '" +
              path + "': " + fieldText(record, "model") + ", mesh " + fieldText(record, "mesh") +
              ", seed " + fieldText(record, "seed") + ", fsdpc " + fieldText(record, "version"));
  if (const std::string compiled = compileCommand(record); !compiled.empty())
    text += comment("compiled with: " + compiled + " -o " + base::shellWord(program));
  text += describeFiles(record);
  std::string line = base::shellWord(program);
  const auto resumed = record.find("resumed");
  bool wasLatest = false;
  for (std::size_t i = 0; i < words->size(); ++i) {
    bool isApart;
    if (takesOption((*words)[i], "--resume", isApart)) { // it may name another checkpoint now
      wasLatest |= resumed == record.end();
      i += isApart;
      continue;
    }
    if ((*words)[i] == "--start-over")
      continue;
    addShellWord(line, (*words)[i]);
  }
  if (resumed != record.end()) {
    addShellWord(line, "--resume=" + fieldText(*resumed, "folder"));
    text += comment("continues from step " + fieldText(*resumed, "step") + ", digest " +
                    fieldText(*resumed, "digest"));
  } else if (wasLatest) {
    text += comment("without --resume, which found no checkpoint then");
  }
  if (!has(*words, "--plan") && fieldText(record, "compiled").find('|') != std::string::npos)
    addShellWord(line, "--plan=" + fieldText(record, "plan"));
  if (const std::string by = fieldText(record, "launcher"); !by.empty()) {
    const std::string started = launch(by, fieldText(record, "ranks"));
    text += comment("started by " + by + " as " + fieldText(record, "ranks") + " ranks" +
                    (started.empty() ? ": start each of them, with its variables"
                                     : "; on several machines, add what names them"));
    line = started + line;
  }
  std::string environment;
  if (const auto found = record.find("environment"); found != record.end() && found->is_object())
    for (const auto &[name, value] : found->items())
      environment +=
          name + "=" + base::shellWord(value.is_string() ? value.get<std::string>() : "") + " ";
  if (!environment.empty())
    line = "env " + environment + line;
  if (const std::string folder = fieldText(record, "directory"); !folder.empty())
    line = "cd " + base::shellWord(folder) + " && " + line;
  return text + line + "\n";
}

} // namespace fsdpc_log
