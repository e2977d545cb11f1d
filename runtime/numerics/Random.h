//===- Random.h - counter-based random numbers ------------------*- C++ -*-===//
//
// Counter-based random numbers (Philox4x32-10; Salmon, Moraes, Dror, Shaw:
// "Parallel random numbers: as easy as 1, 2, 3", SC 2011). A value is a
// function of (seed, name, step, index in the whole tensor) and of nothing
// else, so it is the same on any mesh, in any schedule, and when recomputed.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_NUMERICS_RANDOM_H
#define FSDP_RUNTIME_NUMERICS_RANDOM_H

#include "runtime/numerics/VectorMath.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fsdp::rt {

/// One block of Philox4x32-10: four words for a counter and a key.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                              std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t(0xD2511F53u) * counter[0];
    const std::uint64_t p1 = std::uint64_t(0xCD9E8D57u) * counter[2];
    counter = {std::uint32_t(p1 >> 32) ^ counter[1] ^ key[0], std::uint32_t(p1),
               std::uint32_t(p0 >> 32) ^ counter[3] ^ key[1], std::uint32_t(p0)};
    key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
  }
  return counter;
}

/// FNV-1a of a name: the same in the compiler, the runtime and generated code.
constexpr std::uint64_t hashName(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

/// The random stream of one name: four words for each group of four indices.
class Random {
public:
  constexpr Random(std::uint64_t seed, std::uint64_t name, std::uint64_t step = 0)
      : key(mix(seed + 0x9E3779B97F4A7C15u * (mix(name) | 1))), step(step) {}

  /// The words of indices [4 * group, 4 * group + 4).
  constexpr std::array<std::uint32_t, 4> words(std::uint64_t group) const {
    return philox({std::uint32_t(group), std::uint32_t(group >> 32), std::uint32_t(step),
                   std::uint32_t(step >> 32)},
                  {std::uint32_t(key), std::uint32_t(key >> 32)});
  }

  /// The words of kLanes groups from `group` on, word by word: to[w][i] is `words(group + i)[w]`,
  /// computed in vectors.
  static constexpr std::size_t kLanes = 16;
  void words(std::uint64_t group, std::uint32_t (&to)[4][kLanes]) const {
    // Words lie in the lower halves of 64 bits, where products of 32 bits take them from: the
    // contents of the upper halves are cut off.
#pragma omp simd
    for (std::size_t i = 0; i < kLanes; ++i) {
      std::uint64_t a = group + i, b = a >> 32, c = step, d = step >> 32;
      std::uint32_t k0 = std::uint32_t(key), k1 = std::uint32_t(key >> 32);
#pragma GCC unroll 10
      for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        const std::uint64_t p0 = std::uint64_t(0xD2511F53u) * (a & 0xffffffffu);
        const std::uint64_t p1 = std::uint64_t(0xCD9E8D57u) * (c & 0xffffffffu);
        a = (p1 >> 32) ^ b ^ k0;
        b = p1;
        c = (p0 >> 32) ^ d ^ k1;
        d = p0;
      }
      to[0][i] = std::uint32_t(a), to[1][i] = std::uint32_t(b);
      to[2][i] = std::uint32_t(c), to[3][i] = std::uint32_t(d);
    }
  }

  /// Uniform in [0, 1), a multiple of 2^-24, so that it is exact in float.
  float uniform(std::uint64_t index) const {
    return float(words(index / 4)[index % 4] >> 8) * 0x1p-24f;
  }

  /// Standard normals of indices [4 * group, 4 * group + 4) (Box-Muller on each pair of words).
  std::array<float, 4> normals(std::uint64_t group) const {
    const auto block = words(group);
    std::array<float, 4> values;
    for (std::size_t pair = 0; pair < 4; pair += 2)
      boxMuller(block[pair], block[pair + 1], values[pair], values[pair + 1]);
    return values;
  }

  /// Those of kLanes groups from `group` on, in order: the values of `normals`, computed in
  /// vectors.
  void normals(std::uint64_t group, float (&to)[4 * kLanes]) const {
    std::uint32_t block[4][kLanes];
    float values[4][kLanes];
    words(group, block);
    for (std::size_t pair = 0; pair < 4; pair += 2)
#pragma omp simd
      for (std::size_t i = 0; i < kLanes; ++i)
        boxMuller(block[pair][i], block[pair + 1][i], values[pair][i], values[pair + 1][i]);
#pragma omp simd
    for (std::size_t i = 0; i < kLanes; ++i) {
      to[4 * i] = values[0][i], to[4 * i + 1] = values[1][i];
      to[4 * i + 2] = values[2][i], to[4 * i + 3] = values[3][i];
    }
  }

  /// The standard normal of one index.
  float normal(std::uint64_t index) const { return normals(index / 4)[index % 4]; }

private:
  /// Two normals of two words: a radius and an angle.
  static void boxMuller(std::uint32_t first, std::uint32_t second, float &a, float &b) {
    const float radius =
        std::sqrt(-2.0f * vectorLog((static_cast<float>(first) + 1.0f) * 0x1p-32f));
    float sine, cosine;
    vectorSineCosine(second, sine, cosine);
    a = radius * cosine;
    b = radius * sine;
  }

  /// The finalizer of splitmix64: close seeds and names get unrelated keys.
  static constexpr std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }

  std::uint64_t key;
  std::uint64_t step;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_NUMERICS_RANDOM_H
