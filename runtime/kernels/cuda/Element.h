//===- Element.h - numbers in memory and in registers ------------*- C++ -*-===//
//
// Memory holds float or bf16, arithmetic is in float. `Packed` holds the elements of one memory
// access: 16 bytes where addresses allow it, else one element.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_KERNELS_CUDA_ELEMENT_H
#define FSDP_RUNTIME_KERNELS_CUDA_ELEMENT_H

#include "runtime/program/ArenaSpan.h"

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace fsdp::rt::device {

__device__ inline float toFloat(float x) { return x; }
__device__ inline float toFloat(bf16 x) {
  return __uint_as_float(static_cast<std::uint32_t>(x.bits) << 16);
}

/// The bits of `x` rounded to bf16, to nearest with ties to even; a NaN stays one.
__device__ inline std::uint16_t bf16Bits(float x) {
#ifdef __CUDA_ARCH__
  std::uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
#else
  const std::uint32_t bits = __float_as_uint(x);
  return static_cast<std::uint16_t>(x == x ? (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16
                                           : 0x7fffu);
#endif
}

/// Two numbers as bf16, `low` at the lower address.
__device__ inline std::uint32_t bf16Pair(float low, float high) {
#ifdef __CUDA_ARCH__
  std::uint32_t bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
#else
  return bf16Bits(low) | static_cast<std::uint32_t>(bf16Bits(high)) << 16;
#endif
}

template <class T> __device__ T fromFloat(float x);
template <> __device__ inline float fromFloat<float>(float x) { return x; }
template <> __device__ inline bf16 fromFloat<bf16>(float x) {
  bf16 value; // its constructors are the host's
  value.bits = bf16Bits(x);
  return value;
}

/// 2^x to within 2 units in the last place; subnormal results are 0.
__device__ inline float powerOfTwo(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return exp2f(x);
#endif
}

/// 1 / x to within 1 unit in the last place; subnormal numbers are 0.
__device__ inline float reciprocal(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return 1 / x;
#endif
}

/// Elements of type T that 16 bytes hold.
template <class T> constexpr int kPack = 16 / sizeof(T);

/// N elements as they lie in memory: 16 or 8 bytes, or one element. Indices are constants once the
/// loops around them are unrolled, so all of it stays in registers.
template <class T, int N> struct Packed {
  static constexpr int kBytes = N * static_cast<int>(sizeof(T));
  static_assert(kBytes == 16 || kBytes == 8 || N == 1, "no single access moves this");
  std::uint32_t word[(kBytes + 3) / 4];

  /// `from` is aligned to the size of the whole.
  __device__ static Packed load(const T *from) {
    Packed p;
    if constexpr (kBytes == 16) {
      const uint4 bits = *reinterpret_cast<const uint4 *>(from);
      p.word[0] = bits.x, p.word[1] = bits.y, p.word[2] = bits.z, p.word[3] = bits.w;
    } else if constexpr (kBytes == 8) {
      const uint2 bits = *reinterpret_cast<const uint2 *>(from);
      p.word[0] = bits.x, p.word[1] = bits.y;
    } else if constexpr (sizeof(T) == 4) {
      p.word[0] = *reinterpret_cast<const std::uint32_t *>(from);
    } else {
      p.word[0] = *reinterpret_cast<const std::uint16_t *>(from);
    }
    return p;
  }
  __device__ void store(T *to) const {
    if constexpr (kBytes == 16)
#ifdef __CUDA_ARCH__ // spelled out: the compiler splits some of them
      asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};"
                   :
                   : "l"(__cvta_generic_to_global(to)), "r"(word[0]), "r"(word[1]), "r"(word[2]),
                     "r"(word[3])
                   : "memory");
#else
      *reinterpret_cast<uint4 *>(to) = make_uint4(word[0], word[1], word[2], word[3]);
#endif
    else if constexpr (kBytes == 8)
      *reinterpret_cast<uint2 *>(to) = make_uint2(word[0], word[1]);
    else if constexpr (sizeof(T) == 4)
      *reinterpret_cast<std::uint32_t *>(to) = word[0];
    else
      *reinterpret_cast<std::uint16_t *>(to) = static_cast<std::uint16_t>(word[0]);
  }

  __device__ float get(int i) const {
    if constexpr (sizeof(T) == 4)
      return __uint_as_float(word[i]);
    else
      return __uint_as_float(i % 2 ? word[i / 2] & 0xffff0000u : word[i / 2] << 16);
  }
  __device__ static Packed of(const float (&values)[N]) {
    Packed p;
    if constexpr (sizeof(T) == 4) {
#pragma unroll
      for (int i = 0; i < N; ++i)
        p.word[i] = __float_as_uint(values[i]);
    } else if constexpr (N == 1) {
      p.word[0] = bf16Bits(values[0]);
    } else {
#pragma unroll
      for (int i = 0; i < N; i += 2)
        p.word[i / 2] = bf16Pair(values[i], values[i + 1]);
    }
    return p;
  }
};

/// values[i] = from[i] in float; in one access if `aligned`.
template <class T, int N>
__device__ void loadFloats(const T *from, bool aligned, float (&values)[N]) {
  if (aligned) {
    const auto packed = Packed<T, N>::load(from);
#pragma unroll
    for (int i = 0; i < N; ++i)
      values[i] = packed.get(i);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i)
      values[i] = toFloat(from[i]);
  }
}

template <class T, int N> __device__ void storeFloats(const float (&values)[N], T *to) {
  Packed<T, N>::of(values).store(to);
}

/// True where 16-byte accesses may be used on all of the addresses; null is aligned.
template <class... T> bool aligned16(const T *...addresses) {
  return ((reinterpret_cast<std::uintptr_t>(addresses) % 16 == 0) && ...);
}

} // namespace fsdp::rt::device

#endif // FSDP_RUNTIME_KERNELS_CUDA_ELEMENT_H
