#include "runtime/train/BesideFiles.h"

#include "base/AtomicFile.h"
#include "base/MappedFile.h"

#include <algorithm>
#include <sys/stat.h>

namespace fsdp::rt {

using namespace base;

namespace {

/// As the libraries that load weights name them.
constexpr const char *kCarried[] = {
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "vocab.json",
    "merges.txt",
    "added_tokens.json",
    "special_tokens_map.json",
    "generation_config.json",
    "chat_template.jinja",
};

} // namespace

BesideFiles::BesideFiles(Table<ExtraFile> files) {
  for (const ExtraFile &file : files)
    push_back({file.name, file.text, ""});
}

BesideFiles filesToCarry(const std::string &folder) {
  BesideFiles files;
  for (const char *name : kCarried) {
    const std::string path = folder + "/" + name;
    struct stat status;
    if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode))
      continue;
    const MappedFile bytes(path);
    files.push_back({name, std::string(bytes.data(), bytes.size()), path});
  }
  return files;
}

BesideFiles filesBeside(const Program &program, const BesideFiles &carried) {
  BesideFiles files(program.extraFiles);
  for (const BesideFile &file : carried)
    if (std::none_of(files.begin(), files.end(),
                     [&](const BesideFile &own) { return own.name == file.name; }))
      files.push_back(file);
  return files;
}

void writeFiles(const BesideFiles &files, const std::string &folder) {
  for (const BesideFile &file : files) {
    AtomicFile to(OutputPath(folder + "/" + file.name));
    to.write(file.text.data(), file.text.size());
    to.commit();
  }
}

} // namespace fsdp::rt
