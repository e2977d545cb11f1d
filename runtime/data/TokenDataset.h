//===- TokenDataset.h - samples from one long row of tokens -----*- C++ -*-===//
//
// Token files are those of llm.c: 256 little-endian int32 (magic, version, count of tokens, zeros),
// then the tokens.
//
//   20240520, version 1: 16 bits a token
//   20240801, version 7: 32 bits a token
//
// Where the vocabulary is 256, any other file is a row of bytes.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_DATA_TOKENDATASET_H
#define FSDP_RUNTIME_DATA_TOKENDATASET_H

#include "runtime/data/Dataset.h"

#include <memory>
#include <string>

namespace fsdp::rt {

/// Opens tokens for `inputs`, all of which are tokens or targets of one context T. There are
/// floor((tokens - 1) / T) samples. Throws an Error that names the file, got and expected if it is
/// neither kind of file, is not whole, is too short for one sample, or has a token outside of the
/// vocabulary, of which it names the position.
std::unique_ptr<Dataset> openTokens(const std::string &path, Table<Input> inputs);

/// Whether the file at `path` begins as a token file does.
bool isTokenFile(const std::string &path);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DATA_TOKENDATASET_H
