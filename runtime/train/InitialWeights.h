//===- InitialWeights.h - the weights that a run begins with ----*- C++ -*-===//

#ifndef FSDP_RUNTIME_TRAIN_INITIALWEIGHTS_H
#define FSDP_RUNTIME_TRAIN_INITIALWEIGHTS_H

#include "runtime/program/Program.h"
#include "runtime/train/WeightFiles.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fsdp::rt {

/// One value of `--init`: PATTERN=FILE, or FILE, without a pattern.
struct InitialFile {
  std::string pattern; ///< of parameters' names, with one `*` at most; "": all of them
  std::string path;

  bool isMapped() const { return !pattern.empty(); }
};

/// The tensors of the files of `--init`, and which parameter each is for. A parameter is found in a
/// file by its name, its alias, or its name with or without the prefix `transformer.` or `model.`
/// of a model's wrapper; where the file has a pattern, by the part of its name that is the `*`.
class InitialWeights {
public:
  struct Source {
    InitialFile from;
    WeightFiles files;
  };

  /// Opens the files. Errors: those of WeightFiles.
  explicit InitialWeights(const std::vector<InitialFile> &files);

  /// Finds the tensor of each parameter. Errors: a pattern matches no parameter; two files have a
  /// tensor for one parameter, or a file has none for any; a parameter is in no file, unless
  /// `drawsMissing`, or it is of the adapters and no file has any of these; a tensor has another
  /// shape than its parameter, or values that are not finite floating-point numbers; a file without
  /// a pattern has tensors of adapters that the program does not use. Returns a
  /// remark about each file that has tensors which the program does not use, besides copies of a
  /// parameter's tensor (tied weights) and buffers such as `attn.bias`.
  std::vector<std::string> match(const Program &program, bool drawsMissing = false);

  /// The tensor of a parameter; nullptr where its value is drawn. After `match`.
  const base::FileTensor *find(std::string_view parameter) const;
  /// The names of the parameters that are in no file, as the model declares them. After `match`.
  const std::vector<std::string> &drawn() const { return missing; }
  const std::vector<Source> &sources() const { return opened; }
  /// Releases the memory of the pages read so far. All tensors stay valid.
  void releasePages() const;

private:
  std::vector<Source> opened;
  std::map<std::string, const base::FileTensor *, std::less<>> byParameter;
  std::vector<std::string> missing;
};

/// Fills a shard with the tensors that `weights` has matched; a parameter without one gets the
/// values drawn from `seed`, and padding becomes zero.
void loadShard(const InitialWeights &weights, const Storage &storage, const RankPosition &position,
               std::uint64_t seed, float *shard);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TRAIN_INITIALWEIGHTS_H
