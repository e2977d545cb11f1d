#include "runtime/data/DataFiles.h"

#include "base/Numbers.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <glob.h>
#include <map>
#include <optional>
#include <sys/stat.h>
#include <utility>

namespace fsdp::rt {

using namespace base;

namespace {

bool exists(const std::string &path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0;
}

bool isPattern(const std::string &word) { return word.find_first_of("*?[") != word.npos; }

/// The files that a pattern matches, sorted. Error: a folder cannot be read.
std::vector<std::string> matches(const std::string &option, const std::string &pattern) {
  static thread_local std::string unreadable;
  unreadable.clear();
  glob_t found{};
  const int status = glob(
      pattern.c_str(), GLOB_NOSORT,
      [](const char *path, int reason) {
        if (reason == ENOENT) // no file, or a broken link
          return 0;
        unreadable = "'" + std::string(path) + "': " + std::strerror(reason);
        return 1;
      },
      &found);
  std::vector<std::string> files(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (status == GLOB_NOSPACE || !unreadable.empty())
    throw Error(option + ": cannot look for files that match '" + pattern +
                "': " + (unreadable.empty() ? "no memory" : unreadable));
  std::sort(files.begin(), files.end());
  return files;
}

/// The name and the weight of a word.
struct Word {
  std::string name;
  std::optional<double> weight;
};

/// A word that names an existing file has no weight, regardless of its ending.
Word takeWord(const std::string &option, const std::string &word) {
  const std::size_t colon = word.rfind(':');
  if (exists(word) || colon == word.npos || colon == 0 || word.find('/', colon) != word.npos)
    return {word, std::nullopt};
  const std::string name = word.substr(0, colon), text = word.substr(colon + 1);
  double weight = 0;
  if (parseNumber(text, {/*least=*/0, /*aboveLeast=*/true, INFINITY, /*isF32=*/false}, weight)
          .empty())
    return {name, weight};
  const auto leadsToFiles = [&](const std::string &path) {
    return exists(path) || (isPattern(path) && !matches(option, path).empty());
  };
  if (!leadsToFiles(word) && leadsToFiles(name))
    throw Error(option + ": got the weight '" + text + "' in '" + word +
                    "', expected a finite number > 0; leave out files that should not be drawn",
                kExitBadCommandLine);
  return {word, std::nullopt};
}

} // namespace

std::vector<DataSource> sourcesOf(const std::string &option, const std::vector<std::string> &words,
                                  bool takesWeights) {
  std::vector<DataSource> sources;
  std::vector<Word> taken;
  for (const std::string &word : words)
    taken.push_back(takeWord(option, word));
  const auto isWeighted = [](const Word &word) { return word.weight.has_value(); };
  const auto weighted = std::find_if(taken.begin(), taken.end(), isWeighted),
             plain = std::find_if_not(taken.begin(), taken.end(), isWeighted);
  if (weighted != taken.end() && !takesWeights)
    throw Error(option + ": got a weight for '" + weighted->name +
                    "', expected none: every sample is evaluated once",
                kExitBadCommandLine);
  if (weighted != taken.end() && plain != taken.end())
    throw Error(option + ": got a weight for '" + weighted->name + "' and none for '" +
                    plain->name + "': give every file and pattern one (FILE:WEIGHT), or none",
                kExitBadCommandLine);

  std::map<std::pair<dev_t, ino_t>, std::string> known;
  double largest = 0, total = 0;
  for (const Word &word : taken)
    largest = std::max(largest, word.weight.value_or(1));
  for (const Word &word : taken)
    if (word.weight && *word.weight < largest * 0x1p-40) // Mixture's unit
      throw Error(option + format(": got the weight %g for '", *word.weight) + word.name +
                      format("', which is less than 2^-40 of the largest, %g: it would never be "
                             "drawn; leave it out, or give it a larger weight",
                             largest),
                  kExitBadCommandLine);
  for (const Word &word : taken) {
    if (sources.empty() || word.weight)
      sources.push_back({word.name, {}, word.weight.value_or(1) / largest});
    else
      sources.back().name += " " + word.name;
    std::vector<std::string> files{word.name};
    if (isPattern(word.name) && !exists(word.name))
      files = matches(option, word.name);
    if (files.empty())
      throw Error(option + ": no file matches '" + word.name + "'");
    for (std::string &file : files) {
      struct stat status;
      if (stat(file.c_str(), &status) == 0) { // others are reported when they are opened
        const auto [first, isNew] = known.emplace(std::pair(status.st_dev, status.st_ino), file);
        if (!isNew)
          throw Error(option + ": got one file as '" + first->second + "' and as '" + file +
                          "': name each file once; a weight (FILE:WEIGHT) says how often its "
                          "samples are drawn",
                      kExitBadCommandLine);
      }
      sources.back().files.push_back(std::move(file));
    }
  }
  for (const DataSource &source : sources)
    total += source.weight;
  for (DataSource &source : sources)
    source.weight /= total;
  return sources;
}

std::vector<std::string> filesOf(const std::vector<DataSource> &sources) {
  std::vector<std::string> files;
  for (const DataSource &source : sources)
    files.insert(files.end(), source.files.begin(), source.files.end());
  return files;
}

} // namespace fsdp::rt
