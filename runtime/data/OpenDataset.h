//===- OpenDataset.h - data sets in files --------------------*- C++ -*-===//

#ifndef FSDP_RUNTIME_DATA_OPENDATASET_H
#define FSDP_RUNTIME_DATA_OPENDATASET_H

#include "runtime/data/Dataset.h"

#include <memory>
#include <string>

namespace fsdp::rt {

/// Opens the data set at `path`: a safetensors file, or what `openTokens` takes if the inputs are
/// tokens. Throws an Error that names file, tensor, got and expected if a tensor of `inputs` is
/// missing or does not fit, or if a value is NaN, infinite or outside of the input's limit.
std::unique_ptr<Dataset> openDataset(const std::string &path, Table<Input> inputs);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DATA_OPENDATASET_H
