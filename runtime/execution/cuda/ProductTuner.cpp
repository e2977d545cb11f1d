#include "runtime/execution/cuda/ProductTuner.h"

#include "base/AtomicFile.h"
#include "base/EnvironmentFlag.h"
#include "base/Error.h"
#include "base/FileSystem.h"
#include "base/MappedFile.h"
#include "base/OutputPath.h"
#include "base/PrintableText.h"
#include "runtime/job/RunIdentity.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace fsdp::rt {

using namespace base;

namespace {

constexpr const char *kFormat = "fsdpc product 1\n";

/// All of a cache file but the choice, which follows.
std::string headerOf(const std::string &machine, const std::string &product, int candidates) {
  return kFormat + ("machine " + machine) + "\nproduct " + product +
         format("\nalgorithms %d\nchoice ", candidates);
}

/// The number that `text` begins and a line end ends, if it is from 0 to less than `limit`, else
/// -1.
int numberOf(std::string_view text, int limit) {
  int number = 0;
  if (text.size() < 2 || text.size() > 4 || text.back() != '\n')
    return -1;
  for (char digit : text.substr(0, text.size() - 1)) {
    if (digit < '0' || digit > '9')
      return -1;
    number = 10 * number + (digit - '0');
  }
  return number < limit ? number : -1;
}

} // namespace

ProductTuner::ProductTuner(Setting setting) : setting_(std::move(setting)) {
  choices_.machine = setting_.machine;
}

bool ProductTuner::isAsked() {
  return environmentFlag("FSDP_TUNE", "measures which of cuBLASLt's algorithms is the fastest for "
                                      "each product")
      .value_or(false);
}

std::string ProductTuner::folderOfEnvironment() {
  if (const char *folder = std::getenv("FSDP_TUNE_CACHE"))
    return folder;
  if (const char *cache = std::getenv("XDG_CACHE_HOME"); cache && *cache == '/')
    return std::string(cache) + "/fsdp/products";
  const char *home = std::getenv("HOME");
  return home && *home == '/' ? std::string(home) + "/.cache/fsdp/products" : "";
}

std::string ProductTuner::cacheName(const std::string &machine, const std::string &product) {
  return digestText(contentDigest(product, contentDigest(machine))) + ".product";
}

void ProductTuner::adopt(const ProductChoices &stored) {
  if (stored.machine.empty())
    return;
  if (stored.machine == setting_.machine)
    stored_ = stored.algorithms;
  else if (setting_.rank == 0)
    std::fprintf(stderr,
                 "note: the checkpoint has algorithms of products for %s, and this is %s: they are "
                 "not used\n",
                 printable(stored.machine).c_str(), printable(setting_.machine).c_str());
}

int ProductTuner::choose(const std::string &product, int candidates,
                         const std::function<std::vector<float>()> &measure) {
  int choice = setting_.rank == 0 ? decide(product, candidates, measure) : 0;
  setting_.broadcast(choice);
  choices_.algorithms[product] = choice;
  return choice;
}

int ProductTuner::decide(const std::string &product, int candidates,
                         const std::function<std::vector<float>()> &measure) {
  if (const auto found = stored_.find(product);
      found != stored_.end() && found->second < candidates)
    return found->second;
  if (const int found = cached(product, candidates); found >= 0)
    return found;
  const std::vector<float> times = measure();
  if (times.empty()) {
    std::fprintf(stderr, "product %s: algorithm 0 of %d, as no memory is free to measure others\n",
                 product.c_str(), candidates);
    return 0;
  }
  const auto fastest =
      static_cast<std::size_t>(std::min_element(times.begin(), times.end()) - times.begin());
  const int choice = times[fastest] < kGain * times[0] ? static_cast<int>(fastest) : 0;
  std::fprintf(stderr, "product %s: algorithm %d of %d, %.4g ms (the first: %.4g ms)\n",
               product.c_str(), choice, candidates,
               static_cast<double>(times[static_cast<std::size_t>(choice)]),
               static_cast<double>(times[0]));
  keep(product, candidates, choice);
  return choice;
}

//===----------------------------------------------------------------------===//
// The cache
//===----------------------------------------------------------------------===//

void ProductTuner::remark(const std::string &text) {
  if (!std::exchange(remarked_, true))
    std::fprintf(stderr, "note: %s; further faults of the cache are not listed\n",
                 printable(text).c_str());
}

/// The choice in the cache; -1: it has none. A file that is not as keep() writes it counts as none,
/// and is replaced.
int ProductTuner::cached(const std::string &product, int candidates) {
  if (setting_.folder.empty())
    return -1;
  const std::string path = setting_.folder + "/" + cacheName(setting_.machine, product);
  if (!fileExists(path))
    return -1;
  try {
    const MappedFile file(path);
    const std::string_view text(file.data(), file.size());
    const std::string header = headerOf(setting_.machine, product, candidates);
    if (text.substr(0, header.size()) == header)
      if (const int choice = numberOf(text.substr(header.size()), candidates); choice >= 0)
        return choice;
    remark("'" + path + "' got other text than the choice of one of " +
           format("%d algorithms for %s on %s, as expected", candidates, product.c_str(),
                  setting_.machine.c_str()) +
           ": it is ignored, the product is measured and the file replaced");
  } catch (const Error &error) {
    remark(std::string(error.what()) + ": the product is measured");
  }
  return -1;
}

void ProductTuner::keep(const std::string &product, int candidates, int choice) {
  if (setting_.folder.empty())
    return;
  try {
    std::error_code fault;
    std::filesystem::create_directories(setting_.folder, fault);
    if (fault)
      throw Error("cannot create the folder '" + setting_.folder + "': " + fault.message());
    const std::string text =
        headerOf(setting_.machine, product, candidates) + format("%d\n", choice);
    AtomicFile file(OutputPath(setting_.folder + "/" + cacheName(setting_.machine, product)),
                    FileSystem::real(), {.flushed = false});
    file.write(text.data(), text.size());
    file.commit();
  } catch (const Error &error) {
    remark(std::string(error.what()) +
           ": choices of algorithms are not kept (FSDP_TUNE_CACHE names "
           "another folder, or none)");
  }
}

} // namespace fsdp::rt
