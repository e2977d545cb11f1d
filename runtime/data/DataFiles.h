//===- DataFiles.h - the files that --data and --val-data name --*- C++ -*-===//
//
// Each word of --data is a file or a pattern of the shell (`*`, `?`, `[...]`), which denotes the
// files that it matches, sorted by their names as bytes. A weight may follow it: `web/*.bin:0.7`.
// Without weights the files of all words are one source, in the order of the words. With weights
// each word is a separate source.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_DATA_DATAFILES_H
#define FSDP_RUNTIME_DATA_DATAFILES_H

#include "base/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fsdp::rt {

/// Files whose samples are drawn as one data set.
struct DataSource {
  std::string name; ///< the word of the command line, without its weight
  std::vector<std::string> files;
  double weight = 1;        ///< the share of the samples that are drawn from it
  std::int64_t samples = 0; ///< set when the files are opened
};

/// The sources that `words` name, with weights that add up to 1. `option`: the option with the
/// words; only --data accepts weights. Errors: no file matches a pattern; a folder of a pattern
/// cannot be read; a file is named twice. Errors of the command line: a weight that is not above 0;
/// weights of some words only.
std::vector<DataSource> sourcesOf(const std::string &option, const std::vector<std::string> &words,
                                  bool takesWeights);

/// The files of all sources, in order.
std::vector<std::string> filesOf(const std::vector<DataSource> &sources);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DATA_DATAFILES_H
