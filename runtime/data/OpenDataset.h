//===- OpenDataset.h - data sets in files --------------------*- C++ -*-===//
//
// Token files are those of llm.c: 256 little-endian int32 (magic, version, count of tokens, zeros),
// then the tokens.
//
//   20240520, version 1: 16 bits a token
//   20240801, version 7: 32 bits a token
//
// If the vocabulary is 256, any other file is read as bytes.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_DATA_OPENDATASET_H
#define FSDP_RUNTIME_DATA_OPENDATASET_H

#include "base/MappedFile.h"
#include "runtime/data/Dataset.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fsdp::rt {

/// Opens the data set at `path`: a safetensors file, or tokens (openTokens) if the inputs are
/// tokens and the file is not safetensors with a tensor for each of them. Errors, with file,
/// tensor, got and expected: a tensor of `inputs` is missing or does not fit; a value is NaN,
/// infinite or outside of the limit of its input.
std::unique_ptr<Dataset> openDataset(const std::string &path, Table<Input> inputs);

/// Opens several files as one data set, their samples one after another. Adds the number of samples
/// of each to `samples`. Errors: those of each file; a file is of another form than the first, as
/// files of different tokenizers are.
std::unique_ptr<Dataset> openDataset(const std::vector<std::string> &paths, Table<Input> inputs,
                                     std::vector<std::int64_t> &samples);

/// The samples of several data sets, at least one, one after another. No sample spans two of them.
std::unique_ptr<Dataset> concatenate(std::vector<std::unique_ptr<Dataset>> parts);

/// Opens tokens for `inputs`, all of which are tokens or targets of one context T. There are
/// floor((tokens - 1) / T) samples. Errors, with file, got and expected: neither kind of file; an
/// incomplete file; too short for one sample; a token outside of the vocabulary, with its position.
std::unique_ptr<Dataset> openTokens(const std::string &path, Table<Input> inputs);

/// Whether the file begins as safetensors do: how long the header is, then its brace. The first
/// eight characters of a text are a far larger number.
bool looksLikeSafetensors(const base::MappedFile &file);

/// Whether the file at `path` has the header of a token file.
bool isTokenFile(const std::string &path);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DATA_OPENDATASET_H
