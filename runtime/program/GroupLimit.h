//===- GroupLimit.h - the most collectives of a group -----------*- C++ -*-===//
//
// As Limits.h, for compiler and runtime; apart, so that kernels do not depend on it.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_PROGRAM_GROUPLIMIT_H
#define FSDP_RUNTIME_PROGRAM_GROUPLIMIT_H

#include <cstddef>

namespace limits {

/// Collectives in one call at most: their layouts and addresses then fit a slot of a stream
/// (Stream.h).
constexpr std::size_t kMaxGroupedCollectives = 8;

} // namespace limits

#endif // FSDP_RUNTIME_PROGRAM_GROUPLIMIT_H
