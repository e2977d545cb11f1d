//===- StreamingStores.h - results that pass the caches by ------*- C++ -*-===//

#ifndef FSDP_RUNTIME_DEVICE_STREAMINGSTORES_H
#define FSDP_RUNTIME_DEVICE_STREAMINGSTORES_H

#include <cstddef>

namespace fsdp::rt {

/// A result of so many bytes is gone from the caches near a core before anyone reads it. Written
/// past them, its lines need not be read first: a quarter to a third less traffic.
constexpr std::size_t kStreamingBytes = std::size_t(4) << 20;

/// memcpy past the caches. The bytes may be published as after any other store.
void streamCopy(void *to, const void *from, std::size_t bytes);
/// Zeros past the caches.
void streamZeros(void *to, std::size_t bytes);

/// memcpy, past the caches if it is large.
void copyBytes(void *to, const void *from, std::size_t bytes);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DEVICE_STREAMINGSTORES_H
