//===- StreamingStores.h - copies that bypass the caches --------*- C++ -*-===//

#ifndef FSDP_RUNTIME_DEVICE_STREAMINGSTORES_H
#define FSDP_RUNTIME_DEVICE_STREAMINGSTORES_H

#include <cstddef>

namespace fsdp::rt {

/// A result of this size, in bytes, is evicted from the caches of a core before it is read. Stores
/// that bypass the caches do not read the lines first: a quarter to a third less memory traffic.
constexpr std::size_t kStreamingBytes = std::size_t(4) << 20;

/// memcpy that bypasses the caches. The bytes may be published as after other stores.
void streamCopy(void *to, const void *from, std::size_t bytes);
/// Writes zeros, bypassing the caches.
void streamZeros(void *to, std::size_t bytes);

/// memcpy; bypasses the caches for large sizes, which threads that help the calling one share.
void copyBytes(void *to, const void *from, std::size_t bytes);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DEVICE_STREAMINGSTORES_H
