//===- EpilogueCallback.h - told of complete rows of a product --*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_EPILOGUECALLBACK_H
#define FSDP_RUNTIME_KERNELS_EPILOGUECALLBACK_H

#include <cstdint>

namespace fsdp::rt {

/// Told as a product goes on: rows [begin, end) of c are complete, and most likely in the cache.
/// Every row is told of once, the first ones first.
struct EpilogueCallback {
  void (*call)(void *self, std::int64_t begin, std::int64_t end) = nullptr;
  void *self = nullptr;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_EPILOGUECALLBACK_H
