#include "runtime/device/StreamingStores.h"
#include "runtime/device/Workers.h"

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
  // In words, so that parts are as large as those of kernels.
  constexpr std::size_t word = sizeof(float), page = 4096 / word, least = 65536;
  if (bytes < least) {
    std::memcpy(to, from, bytes);
    return;
  }
  const bool streams = bytes >= kStreamingBytes;
  forEachPart((bytes + word - 1) / word, 1, page, [&](std::size_t begin, std::size_t end) {
    char *target = static_cast<char *>(to) + begin * word;
    const char *source = static_cast<const char *>(from) + begin * word;
    const std::size_t size = std::min(end * word, bytes) - begin * word;
    if (streams)
      streamCopy(target, source, size);
    else
      std::memcpy(target, source, size);
  });
}

} // namespace fsdp::rt
