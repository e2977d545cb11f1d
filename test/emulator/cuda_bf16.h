//===- cuda_bf16.h - CUDA's bfloat16, on the CPU ---------------------------------===//
#ifndef FSDP_EMULATOR_CUDA_BF16_H
#define FSDP_EMULATOR_CUDA_BF16_H

#include "Device.h"

struct __nv_bfloat16_raw {
  unsigned short x;
};

namespace emulator {
/// To nearest, ties to even; every NaN becomes 0x7fff, as on the device.
inline unsigned short bf16Bits(float value) {
  if (value != value)
    return 0x7fff;
  const unsigned bits = bitsAs<unsigned>(value);
  return static_cast<unsigned short>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
} // namespace emulator

struct __nv_bfloat16 {
  unsigned short __x;
  __nv_bfloat16() = default;
  __nv_bfloat16(float value) : __x(::emulator::bf16Bits(value)) {}
  __nv_bfloat16(double value) : __nv_bfloat16(static_cast<float>(value)) {}
  __nv_bfloat16(__nv_bfloat16_raw raw) : __x(raw.x) {}
  operator float() const { return ::emulator::bitsAs<float>(static_cast<unsigned>(__x) << 16); }
  operator __nv_bfloat16_raw() const { return {__x}; }
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
  __nv_bfloat162() = default;
  __nv_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) : x(x), y(y) {}
};
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

inline __nv_bfloat16 __float2bfloat16(float value) { return __nv_bfloat16(value); }
inline __nv_bfloat16 __float2bfloat16_rn(float value) { return __nv_bfloat16(value); }
inline float __bfloat162float(__nv_bfloat16 value) { return float(value); }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {x, y}; }
inline __nv_bfloat162 __float22bfloat162_rn(float2 v) { return {v.x, v.y}; }
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
inline float2 __bfloat1622float2(__nv_bfloat162 v) { return {float(v.x), float(v.y)}; }
inline float __low2float(__nv_bfloat162 v) { return float(v.x); }
inline float __high2float(__nv_bfloat162 v) { return float(v.y); }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 v) { return v.__x; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  return __nv_bfloat16(__nv_bfloat16_raw{bits});
}

#endif // FSDP_EMULATOR_CUDA_BF16_H
