//===- sizes.h - sizes of models that are refused up front ------*- C++ -*-===//

#ifndef MODELS_SIZES_H
#define MODELS_SIZES_H

#include <cstdint>
#include <utility>
#include <vector>

namespace fsdp::models {

/// Throws ModelError if a tensor with these dimensions, each named as the option of its size, would
/// take more than 2^48 bytes in f32. Sizes are at most dsl::kMaxSize.
void checkTensor(const std::vector<std::pair<const char *, int64_t>> &sizes);

} // namespace fsdp::models

#endif // MODELS_SIZES_H
