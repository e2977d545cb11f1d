//===- BFloat16.h - 16-bit floats with the range of f32 ---------*- C++ -*-===//

#ifndef FSDP_RUNTIME_NUMERICS_BFLOAT16_H
#define FSDP_RUNTIME_NUMERICS_BFLOAT16_H

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fsdp::rt {

/// A number of 8 bits of precision and float's range, in 2 bytes. There is no arithmetic on it:
/// kernels widen, compute in float and round once, so that loops over it are loops over floats.
// Integers rather than the processor's own conversion, which takes subnormals for zero: the same
// bits on every machine.
struct bf16 {
  std::uint16_t bits;

  bf16() = default;
  /// To nearest, ties to even; too large values become infinite, a NaN stays a NaN.
  explicit bf16(float value) : bits(round(value)) {}
  /// The same in place: gcc vectorizes a loop over stores of bits, not one over objects.
  bf16 &operator=(float value) {
    bits = round(value);
    return *this;
  }

  /// Exact.
  operator float() const {
    const std::uint32_t wide = std::uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &wide, sizeof(value));
    return value;
  }

  static bf16 fromBits(std::uint16_t bits) {
    bf16 value;
    value.bits = bits;
    return value;
  }

private:
  static std::uint16_t round(float value) {
    std::uint32_t wide;
    std::memcpy(&wide, &value, sizeof(wide));
    const std::uint32_t rounded = (wide + 0x7fffu + ((wide >> 16) & 1u)) >> 16;
    const std::uint32_t quiet = (wide >> 16) | 0x40u;
    return static_cast<std::uint16_t>((wide & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
  }
};

static_assert(sizeof(bf16) == 2, "a bf16 is two bytes in memory and in files");

/// to[i] = from[i], rounded where `To` is bf16; both are bf16 or float. They do not overlap.
template <class To, class From>
void convert(const From *__restrict from, std::size_t count, To *__restrict to) {
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i)
    to[i] = static_cast<float>(from[i]);
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_NUMERICS_BFLOAT16_H
