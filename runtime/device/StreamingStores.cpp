#include "runtime/device/StreamingStores.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace fsdp::rt {

#ifdef __AVX512F__

namespace {

constexpr std::size_t kLine = 64;

/// Bytes up to the first whole line.
std::size_t before(const void *to, std::size_t bytes) {
  return std::min<std::size_t>(-reinterpret_cast<std::uintptr_t>(to) % kLine, bytes);
}

} // namespace

void streamCopy(void *to, const void *from, std::size_t bytes) {
  auto *target = static_cast<char *>(to);
  const auto *source = static_cast<const char *>(from);
  const std::size_t head = before(to, bytes);
  std::memcpy(target, source, head);
  std::size_t i = head;
  for (; i + kLine <= bytes; i += kLine)
    _mm512_stream_si512(reinterpret_cast<__m512i *>(target + i), _mm512_loadu_si512(source + i));
  std::memcpy(target + i, source + i, bytes - i);
  _mm_sfence(); // or another core could see a later store before these
}

void streamZeros(void *to, std::size_t bytes) {
  auto *target = static_cast<char *>(to);
  const std::size_t head = before(to, bytes);
  std::memset(target, 0, head);
  std::size_t i = head;
  for (; i + kLine <= bytes; i += kLine)
    _mm512_stream_si512(reinterpret_cast<__m512i *>(target + i), _mm512_setzero_si512());
  std::memset(target + i, 0, bytes - i);
  _mm_sfence();
}

#else

void streamCopy(void *to, const void *from, std::size_t bytes) { std::memcpy(to, from, bytes); }
void streamZeros(void *to, std::size_t bytes) { std::memset(to, 0, bytes); }

#endif

void copyBytes(void *to, const void *from, std::size_t bytes) {
  if (bytes >= kStreamingBytes)
    streamCopy(to, from, bytes);
  else
    std::memcpy(to, from, bytes);
}

} // namespace fsdp::rt
