//===- EpilogueCallback.h - told of complete rows of a product --*- C++ -*-===//

#ifndef FSDP_RUNTIME_KERNELS_EPILOGUECALLBACK_H
#define FSDP_RUNTIME_KERNELS_EPILOGUECALLBACK_H

#include "runtime/program/KernelArguments.h"

#include <cstdint>

namespace fsdp::rt {

/// Called as a product continues: rows [begin, end) of c are complete, and most likely in the
/// cache. Every row is reported once. `call` is called by several threads at once for different
/// rows, in no order, or, where it adds up over the rows, by one after the other, the first ones
/// first.
struct EpilogueCallback {
  void (*call)(void *self, std::int64_t begin, std::int64_t end) = nullptr;
  void *self = nullptr;
  /// Where `call` adds up over rows: the same for all rows and a part of the columns. Once the
  /// product is complete several threads call it for different parts of the same number. Null:
  /// `call` does not add up.
  void (*callColumns)(void *self, std::int64_t rows, ColumnPart columns) = nullptr;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_EPILOGUECALLBACK_H
